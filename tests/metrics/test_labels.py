from itertools import chain

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from hedgerow.metrics import Scores, label_scores

pair = st.tuples(st.integers(0, 3), st.integers(0, 4))
labellings = st.lists(st.lists(pair, max_size=6), max_size=3)


@settings(max_examples=40, deadline=None)
@given(labellings)
def test_scores_equal_those_of_scikit_learn(labellings):
    y_true = [[true for true, _ in sequence] for sequence in labellings]
    y_pred = [[predicted for _, predicted in sequence] for sequence in labellings]
    true, predicted = list(chain(*y_true)), list(chain(*y_pred))
    scores = label_scores(y_true, y_pred)
    assert scores.n_positions == len(true)
    assert scores.labels == sorted({*true, *predicted})
    if true:
        assert scores.accuracy == accuracy_score(true, predicted)
        matrix = confusion_matrix(true, predicted, labels=[*scores.labels, -1])[:-1, :-1]
        assert scores.confusion.tolist() == matrix.tolist()
        expected = precision_recall_fscore_support(true, predicted, zero_division=0)
        found = [(s.precision, s.recall, s.f1, s.n_true) for s in scores.by_label.values()]
        np.testing.assert_allclose(np.array(found).T, expected)
        whole = [one == other for one, other in zip(y_true, y_pred, strict=True) if one]
        assert scores.sequence_accuracy == np.mean(whole)


def test_a_label_on_one_side_counts_as_a_mistake():
    scores = label_scores([["A", "new", "A"]], [["A", "A", "odd"]])
    assert scores.labels == ["A", "new", "odd"]
    assert scores.accuracy == 1 / 3
    assert scores.by_label["new"] == Scores(0.0, 0.0, 0.0, 1, 0, 0)
    assert scores.by_label["odd"] == Scores(0.0, 0.0, 0.0, 0, 1, 0)


@pytest.mark.parametrize("unknown", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_positions_without_a_true_label_are_left_out(unknown):
    scores = label_scores([["A", unknown], [unknown]], [["A", "B"], ["A"]])
    assert (scores.n_positions, scores.labels) == (1, ["A"])
    assert (scores.accuracy, scores.sequence_accuracy) == (1.0, 1.0)


@pytest.mark.parametrize("y", [[], [[]], [[None]]])
def test_nothing_to_compare(y):
    scores = label_scores(y, y)
    assert (scores.accuracy, scores.sequence_accuracy, scores.n_positions) == (0.0, 0.0, 0)
    assert scores.confusion.shape == (0, 0)


def test_labels_of_numpy_are_plain_and_may_be_of_two_kinds():
    scores = label_scores([np.array([1, 2])], [[np.int64(1), np.str_("x")]])
    assert scores.labels == [1, 2, "x"]
    assert [type(label) for label in scores.labels] == [int, int, str]
    assert label_scores([["2", 1, 2]], [["1", "2", 1]]).labels == [1, "1", 2, "2"]


def test_wrong_lengths_and_flat_labels():
    with pytest.raises(TypeError, match="y_true is None; expected a list with one list of labels"):
        label_scores(None, [["A"]])
    with pytest.raises(ValueError, match="y_true has 2 sequences but y_pred has 1"):
        label_scores([[1], [2]], [[1]])
    with pytest.raises(ValueError, match="sequence 0 has 1 label in y_true but 2 in y_pred"):
        label_scores([[1]], [[1, 2]])
    with pytest.raises(TypeError, match="sequence 0 is a string; expected lists of labels"):
        label_scores(["AB"], ["AB"])
    with pytest.raises(TypeError, match="sequence 0 is 1; expected lists of labels: wrap flat"):
        label_scores([1, 2], [1, 2])
