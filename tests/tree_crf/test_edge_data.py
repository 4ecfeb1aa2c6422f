"""Edge cases of training data."""

import numpy as np
import pandas as pd
import pytest

from hedgerow import TreeCRF
from reference.linear import make_data, to_dicts

X, Y = make_data(n_sequences=20, longest=6)


def make(**parameters):
    return TreeCRF(**{"n_rounds": 5, "min_child_weight": 0, "n_jobs": 1, **parameters})


def test_columns_that_tell_nothing_do_not_matter():
    more = [
        np.column_stack([np.full(len(x), np.nan), x, np.full(len(x), 7.0), np.zeros(len(x))])
        for x in X
    ]
    crf, plain = make().fit(more, Y), make().fit(X, Y)
    assert crf.history_ == plain.history_
    np.testing.assert_array_equal(crf.predict_proba(more), plain.predict_proba(X))
    assert crf.feature_importances_[[0, 4, 5]].tolist() == [0, 0, 0]
    other = [np.column_stack([np.ones(len(x)), x, -x[:, 0], x[:, 1]]) for x in X]
    np.testing.assert_array_equal(crf.predict_proba(other), plain.predict_proba(X))


def test_whether_a_value_is_missing_can_be_all_that_tells():
    x = np.where(np.arange(40) % 3 == 0, np.nan, 1.0)
    labels = np.where(np.isnan(x), "gone", "there")
    crf = make(order=0).fit(x[:, None], labels)
    assert crf.score(x[:, None], labels) == 1
    assert crf.predict([[np.nan], [5.0], [-5.0]]).tolist() == ["gone", "there", "there"]


def test_values_missing_only_in_prediction():
    crf = make().fit(X, Y)
    gaps = [np.full_like(x, np.nan) for x in X]
    assert np.isfinite(crf.predict_proba(gaps)).all()


@pytest.mark.parametrize("order", [0, 2])
def test_three_hundred_labels(order):
    labels = np.arange(900) % 300
    rows = np.column_stack([labels // 20, labels % 20]).astype(np.float64)
    groups = np.arange(900) // 9
    crf = make(
        n_rounds=2,
        order=order,
        learning_rate=1.0,
        reg_lambda=0.1,
        pattern_lambda=None,
        trim=0,
        max_step=None,
    ).fit(rows, labels, groups=groups)
    assert crf.classes_.tolist() == list(range(300))
    assert crf.score(rows, labels, groups=groups) > 0.9
    assert (np.diff(crf.history_["loss"]) <= 0).all()
    assert crf.predict_proba(rows, groups=groups).sum(axis=1) == pytest.approx(1)


def test_sequences_of_one_position_have_no_transitions_to_learn():
    rows, labels = np.concatenate(X)[:, None], np.concatenate(Y)[:, None]
    crf, order_0 = make().fit(rows, labels), make(order=0).fit(rows, labels)
    assert not crf.transition_weights()["weight"].any()
    expected = order_0.predict_proba(rows)
    np.testing.assert_allclose(crf.predict_proba(rows), expected, rtol=1e-12)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1, 700]])
def test_two_labels(labels):
    y = [[labels[label == "a"] for label in sequence] for sequence in Y]
    crf = make(n_rounds=20).fit(X, y)
    assert crf.classes_.tolist() == labels
    assert crf.score(X, y) > 0.9
    assert crf.predict(X)[0].dtype == crf.classes_.dtype
    first, second = (
        crf._trees.forest.values[crf._trees.forest.tree_offsets[i] :][:1] for i in (0, 1)
    )
    np.testing.assert_allclose(first, -second, rtol=1e-5)  # the trees mirror each other


def test_empty_dicts():
    items = [[{}] * len(labels) for labels in Y]
    crf = make().fit(items, Y)
    assert crf.feature_importances_.shape == (0,)
    assert crf.loss_ < np.log(3)
    np.testing.assert_array_equal(crf.predict_proba(to_dicts(X)), crf.predict_proba(items))
    some = [[{"p": 1.0} if label == "a" else {} for label in labels] for labels in Y]
    assert make(n_rounds=30).fit(some, Y).loss_ < crf.loss_


def test_a_column_whose_every_text_is_new():
    frame = pd.DataFrame({"id": [f"id{n}" for n in range(1000)], "x": np.arange(1000) % 2})
    labels = np.where(frame["x"] == 1, "p", "q")
    crf = make(order=0, min_child_weight=5.0).fit(frame, labels)
    assert crf.feature_importances_.tolist() == [0, 1]
    assert crf.score(frame.assign(id="other"), labels) == 1
