"""Training sets: classes from the labels or given, and codes of labels."""

import re

import numpy as np
import pytest

from hedgerow import LinearCRF, _core
from hedgerow.encode import encode
from hedgerow.labels import Labels
from hedgerow.objectives import Likelihood
from hedgerow.training.label_parameters import check_label_parameters
from hedgerow.training.labelled import read_labelled
from hedgerow.training.training_set import TrainingSet

SEQUENCES = encode([np.zeros((3, 1)), np.zeros((1, 1))])
Y = [["b", "c", "b"], ["c"]]
KNOWN = Labels(np.array(["a", "b", "c"]))


def read(y=Y, sample_weight=None, *, labels=None, has_edges=False, **parameters):
    crf, index, objective = LinearCRF(**parameters), _core.StringIndex(), Likelihood()
    labelled = read_labelled(
        crf, SEQUENCES, index, y, sample_weight, objective=objective, labels=labels
    )
    return TrainingSet.learn(crf, labelled, objective=objective, has_edges=has_edges)


def test_what_is_learnt_from_labels():
    data = read(missing_label="?", y=[["b", "?", "b"], ["c"]])
    assert data.schema == SEQUENCES.schema
    assert data.labels.classes.tolist() == ["b", "c"]
    assert data.targets.codes.tolist() == [0, -1, 0, 1]
    assert data.targets.offsets.tolist() == [0, 3, 4]
    assert len(data.grammar.patterns) == 4


def test_classes_that_are_known_keep_their_codes():
    data = read(labels=KNOWN, order=2)
    assert data.labels is KNOWN
    assert data.targets.n_labels == data.grammar.n_labels == 3
    assert data.targets.codes.tolist() == [1, 2, 1, 2]
    assert list(data.grammar.patterns) == [(1, 2), (2, 1), (1, 2, 1)]


def test_constraints_may_name_classes_that_do_not_occur():
    constraints = read(labels=KNOWN, forbidden=[("a", "b")]).grammar.constraints
    assert not constraints.allowed[0, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["b", "d", "b"], ["c"]], "unknown label 'd' at y[0][1]; known labels: 'a', 'b', 'c'"),
        ([[None] * 3, [None]], "y has no label at any of its 4 positions: all are missing (None)"),
    ],
)
def test_labels_that_known_classes_cannot_take(y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read(y, labels=KNOWN)


def test_labels_that_break_a_constraint():
    with pytest.raises(ValueError, match=re.escape("y[0][1] is 'c' after 'b', which")):
        read(labels=KNOWN, forbidden=[("b", "c")])


@pytest.mark.parametrize("labels", [None, KNOWN], ids=["learnt", "known"])
def test_weights_of_positions(labels):
    y = [["b", "b", "b"], ["c"]]
    data = read(y, [2.0, 1.0], labels=labels, class_weight="balanced")
    np.testing.assert_allclose(data.targets.position_weights, [4 / 3, 4 / 3, 4 / 3, 2])
    np.testing.assert_array_equal(data.targets.sequence_weights, [2, 1])
    data = read(y, labels=labels, class_weight={"c": 3.0})
    np.testing.assert_array_equal(data.targets.position_weights, [1, 1, 1, 3])
    assert read(y, labels=labels).targets.weights is None


@pytest.mark.parametrize("has_edges", [False, True])
def test_the_grammar_knows_whether_pairs_have_scores_of_their_own(has_edges):
    assert read(has_edges=has_edges).grammar.has_edges is has_edges


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"verbose": -1}, "verbose is -1; expected an integer of at least 0"),
        ({"order": 1.5}, "order is 1.5; expected an integer of at least 0"),
        ({"min_pattern_count": -1}, "min_pattern_count is -1; expected an integer of at least 0"),
        ({"pattern_lambda": [1.0, -1.0]}, "pattern_lambda[1] is -1.0; expected a finite number of"),
        ({"pattern_lambda": [None]}, "pattern_lambda[0] is None; expected a finite number of at"),
        ({"order": 2, "label_patterns": []}, "order is 2 and label_patterns are given"),
        ({"class_weight": "equal"}, "class_weight is 'equal'; expected 'balanced' or None"),
    ],
)
def test_parameters_that_are_wrong_whatever_the_data(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        check_label_parameters(LinearCRF(**parameters))


def test_parameters_that_are_right():
    check_label_parameters(LinearCRF(verbose=True, label_patterns=[("a", "b")]))
