"""Sequences of one position: there TreeCRF is XGBoost's softmax, and LogitBoost.

Of independent positions gamma is 2, and XGBoost's curvature is 2 p (1 - p). Values are integers, so
that both have a bin for each; weights keep apart splits that would gain the same.
"""

import numpy as np
import pytest
import xgboost

from hedgerow import TreeCRF
from reference.boosting import tree_of

SHARED = {"learning_rate": 0.3, "reg_lambda": 1.0, "min_child_weight": 1.0}
PEER = {
    "eta": 0.3,
    "reg_lambda": 1.0,
    "min_child_weight": 1.0,
    "objective": "multi:softprob",
    "tree_method": "hist",
    "max_bin": 256,
    "base_score": 0.5,
    "nthread": 1,
    "seed": 0,
}
# How trees grow: parameters of both.
GROWTHS = {
    "by depth": ({"max_depth": 4}, {"max_depth": 4, "grow_policy": "depthwise"}),
    "by leaves": (
        {"max_depth": None, "max_leaves": 8},
        {"max_depth": 0, "max_leaves": 8, "grow_policy": "lossguide"},
    ),
    "by both": (
        {"max_depth": 3, "max_leaves": 6},
        {"max_depth": 3, "max_leaves": 6, "grow_policy": "lossguide"},
    ),
}


def make_rows(n_labels, missing, seed, n_rows=300):
    """Integers, labels that follow them loosely, and weights."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 20, (n_rows, 4)).astype(np.float64)
    scores = rows @ rng.normal(size=(4, n_labels)) * 0.15
    scores += rng.gumbel(size=scores.shape) - scores.mean(axis=0)
    labels, weights = scores.argmax(axis=1), rng.uniform(0.5, 2, n_rows)
    if missing:
        rows[rng.random(rows.shape) < 0.2] = np.nan
    return rows, labels, weights


def fit_both(data, ours, theirs, n_rounds=20):
    """Probabilities of labels by TreeCRF and by XGBoost, and TreeCRF."""
    rows, labels, weights = data
    crf = TreeCRF(n_rounds=n_rounds, trim=0, max_step=None, n_jobs=1, **ours)
    crf.fit(rows[:, None], labels[:, None], weights)
    matrix = xgboost.DMatrix(rows, labels, weight=weights)
    peer = xgboost.train({"num_class": len(crf.classes_), **theirs}, matrix, n_rounds)
    return crf.predict_proba(rows[:, None]), peer.predict(matrix), crf


@pytest.mark.parametrize(("n_labels", "order"), [(2, 0), (3, 1), (5, 2)])
@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize("growth", GROWTHS)
def test_the_same_probabilities(growth, missing, n_labels, order):
    ours, theirs = GROWTHS[growth]
    found, expected, crf = fit_both(
        make_rows(n_labels, missing, seed=n_labels + 10 * order),
        SHARED | ours | {"min_split_gain": 0.1, "order": order},
        PEER | theirs | {"gamma": 0.1},
    )
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert crf.n_rounds_ == 20
    assert np.abs(expected - 1 / n_labels).max() > 0.4


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"learning_rate": 1.0}, {"eta": 1.0}),
        ({"learning_rate": 0.05}, {"eta": 0.05}),
        ({"reg_lambda": 0.0}, {"reg_lambda": 0.0}),
        ({"reg_lambda": 20.0}, {"reg_lambda": 20.0}),
        ({"min_child_weight": 0.0}, {"min_child_weight": 0.0}),
        ({"min_child_weight": 15.0}, {"min_child_weight": 15.0}),
        ({"min_split_gain": 3.0}, {"gamma": 3.0}),
    ],
    ids=str,
)
def test_parameters_mean_the_same(ours, theirs):
    data, depth = make_rows(3, missing=True, seed=1), {"max_depth": 3}
    found, expected, _ = fit_both(data, SHARED | depth | ours, PEER | depth | theirs, 12)
    np.testing.assert_allclose(found, expected, atol=1e-4)


# Worked by hand: four rows of which the column tells the label, at first all as probable.

ROWS, LABELS = np.array([[1.0], [1.0], [1.0], [5.0]]), np.array(["a", "a", "a", "b"])


def fit_once(**parameters):
    """One round without neighbours in which nothing binds."""
    options = {"n_rounds": 1, "order": 0, "learning_rate": 0.5, "min_child_weight": 0, "trim": 0}
    return TreeCRF(**options, **parameters).fit(ROWS, LABELS)


@pytest.mark.parametrize("newton", [True, False])
@pytest.mark.parametrize("reg_lambda", [0.0, 2.0])
def test_the_first_trees(newton, reg_lambda):
    crf = fit_once(newton=newton, reg_lambda=reg_lambda, max_step=None)
    # Slopes of the score of "a" are -1/2 where it is seen and 1/2 where it is not. Curvature is
    # 2 * 1/2 * 1/2 per row, and 1 without it: sum(delta) / (N + lambda).
    curvature = 0.5 if newton else 1.0
    low = 0.5 * 1.5 / (3 * curvature + reg_lambda)
    high = 0.5 * -0.5 / (curvature + reg_lambda)
    assert tree_of(crf, 0) == pytest.approx((0, 0, low, high), rel=1e-6)
    assert tree_of(crf, 1) == pytest.approx((0, 0, -low, -high), rel=1e-6)
    odds = np.exp(2 * low)
    assert crf.predict_proba(ROWS[:1])[0] == pytest.approx([odds / (1 + odds), 1 / (1 + odds)])


def test_the_first_step_of_transitions_in_first_order_boosting():
    # Labels a b a, nothing else: three pairs of neighbours in two sequences, all as probable. Gamma
    # is 2 for a pair by itself, 4 for each of two that share a label.
    crf = TreeCRF(
        n_rounds=1,
        newton=False,
        learning_rate=1.0,
        reg_lambda=1.0,
        pattern_lambda=None,
        trim=0,
        max_step=None,
    ).fit([[{}] * 3, [{}] * 2], [["a", "b", "a"], ["a", "b"]])
    expected = {("a", "a"): -0.75, ("a", "b"): 2 - 0.75, ("b", "a"): 1 - 0.75, ("b", "b"): -0.75}
    table = crf.transition_weights()
    found = dict(zip(zip(table["from"], table["to"], strict=True), table["weight"], strict=True))
    assert found == pytest.approx(
        {pair: step / ((2 + 4 + 4) * 3 / 16 + 1) for pair, step in expected.items()}
    )


def test_max_step_limits_what_a_leaf_adds():
    crf = fit_once(reg_lambda=0.0, max_step=0.25)
    assert tree_of(crf, 0) == (0, 0, 0.125, -0.125)
