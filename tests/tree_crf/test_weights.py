"""Weights of sequences and of labels, and what the order of labels alone can tell."""

import numpy as np
import pytest

from hedgerow import TreeCRF
from reference.boosting import assert_same_model
from reference.linear import make_data

X, Y = make_data(n_sequences=20, longest=5)
# All values are in any part of it, so that columns have the same bins.
COARSE = [np.sign(x) for x in X]
PATTERNS = [("a", "b"), ("b", "c"), ("a", "b", "c"), ("c", "c", "a")]


def make(**parameters):
    return TreeCRF(
        **{
            "n_rounds": 8,
            "learning_rate": 0.3,
            "max_depth": 3,
            "min_child_weight": 0.1,
            "trim": 0,
            "max_step": None,
            "n_jobs": 1,
            **parameters,
        }
    )


# Weights.


WEIGHTING = [
    *({}, {"order": 0}, {"order": 0, "newton": False}, {"newton": False}),
    {"transition_step": "exact"},
    {"label_patterns": PATTERNS},
]


@pytest.mark.parametrize("parameters", WEIGHTING, ids=str)
def test_a_weight_of_two_is_a_sequence_twice(parameters):
    weights = np.ones(len(X))
    weights[:5] = 2
    weighted = make(**parameters).fit(COARSE, Y, weights)
    twice = make(**parameters).fit([*COARSE, *COARSE[:5]], [*Y, *Y[:5]])
    assert weighted.loss_ == pytest.approx(twice.loss_, rel=1e-5)
    np.testing.assert_allclose(weighted.predict_proba(X), twice.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("parameters", WEIGHTING, ids=str)
def test_a_weight_of_zero_leaves_a_sequence_out(parameters):
    weights = np.array([0.0 if 3 <= s < 9 else 1.0 for s in range(len(X))])
    kept = np.flatnonzero(weights)
    weighted = make(**parameters).fit(COARSE, Y, weights)
    without = make(**parameters).fit([COARSE[s] for s in kept], [Y[s] for s in kept])
    assert weighted.loss_ == pytest.approx(without.loss_, rel=1e-5)
    np.testing.assert_allclose(weighted.predict_proba(X), without.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("parameters", [*WEIGHTING, {"label_patterns": PATTERNS}], ids=str)
def test_equal_weights_matter_only_beside_lambda(parameters):
    plain = make(reg_lambda=1.0, **parameters).fit(X, Y)
    more = {"reg_lambda": 8.0, "min_child_weight": 0.8, "min_split_gain": 8e-6}
    heavy = make(**more, **parameters).fit(X, Y, np.full(len(X), 8.0))
    assert heavy.loss_ == pytest.approx(plain.loss_, rel=1e-5)
    np.testing.assert_allclose(heavy.predict_proba(X), plain.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("order", [1, 2])
def test_equal_class_weights_matter_only_beside_lambda(order):
    plain = make(reg_lambda=1.0, order=order).fit(X, Y)
    more = {"reg_lambda": 8.0, "min_child_weight": 0.8, "min_split_gain": 8e-6}
    heavy = make(class_weight=dict.fromkeys("abc", 8.0), order=order, **more).fit(X, Y)
    np.testing.assert_allclose(heavy.predict_proba(X), plain.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_class_weights_move_the_balance(order):
    counts = {}
    for weight in (0.1, 1.0, 10.0):
        crf = make(order=order, class_weight={"a": weight}).fit(X, Y)
        counts[weight] = crf.predict_proba(X)[:, 0].sum()
    assert counts[0.1] < counts[1.0] < counts[10.0]


def test_class_weights_of_one_are_none():
    plain, same = make().fit(X, Y), make(class_weight={"a": 1, "b": 1.0}).fit(X, Y)
    assert same.loss_ == pytest.approx(plain.loss_, rel=1e-6)
    np.testing.assert_allclose(same.predict_proba(X), plain.predict_proba(X), atol=1e-6)
    counts = np.unique(np.concatenate(Y), return_counts=True)[1]
    balanced = {label: sum(counts) / (3 * n) for label, n in zip("abc", counts, strict=True)}
    assert_same_model(
        make(class_weight="balanced").fit(X, Y), make(class_weight=balanced).fit(X, Y)
    )


def test_class_weights_without_order_are_weights_of_rows():
    rows, labels = np.concatenate(X)[:, None], np.concatenate(Y)[:, None]
    by_class = make(order=0, class_weight={"a": 3.0, "b": 0.5}).fit(X, Y)
    weights = np.select([labels[:, 0] == "a", labels[:, 0] == "b"], [3.0, 0.5], 1.0)
    by_row = make(order=0).fit(rows, labels, weights)
    assert by_class.loss_ == pytest.approx(by_row.loss_, rel=1e-6)
    np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(rows), atol=1e-6)


def test_order_learns_what_labels_alone_tell():
    # Two labels that follow their grandfathers; X says nothing.
    rng = np.random.default_rng(0)
    y = []
    for _ in range(60):
        labels = rng.integers(0, 2, 2).tolist()
        for _ in range(10):
            labels.append(labels[-2] if rng.random() < 0.9 else 1 - labels[-2])
        y.append(labels)
    blank = [np.zeros((12, 1))] * 60
    losses = [
        make(order=order, n_rounds=25, transition_step="exact").fit(blank, y).loss_
        for order in (0, 1, 2)
    ]
    assert losses[1] > 0.95 * losses[0]
    assert losses[2] < 0.7 * losses[0]
