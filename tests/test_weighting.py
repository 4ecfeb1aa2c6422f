"""Weights of sequences and labels."""

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from reference.estimators import assert_same_model, group_ids, refuses, small
from reference.linear import hide, make_data

X, Y = make_data(n_sequences=20)
ROWS, LABELS, GROUPS = np.concatenate(X), np.concatenate(Y), group_ids(X)
# All values are in any part of it, so that columns have the same bins.
COARSE = [np.sign(x) for x in X]
PATTERNS = [("a", "b"), ("b", "c"), ("a", "b", "c"), ("c", "c", "a")]
# Weights at their minimum, far beyond the usual tolerance; trees that nothing else holds back.
USUAL = {
    LinearCRF: {"tol": 0, "max_iter": 500, "all_pairs": True, "n_jobs": 1},
    TreeCRF: {
        "n_rounds": 8,
        "learning_rate": 0.3,
        "max_depth": 3,
        "min_child_weight": 0.1,
        "min_split_gain": 1e-6,  # less is never enough
        "trim": 1e-9,  # slopes of unknown labels are 0 up to rounding
        "max_step": None,
        "n_jobs": 1,
    },
}
EDGES = {"transition_attributes": True}
LINEAR = [{}, EDGES, {"order": 0}, {"order": 2}, {"order": 2, **EDGES}, {"reg_alpha": 0.1}]
TREES = [
    *({}, {"order": 0}, {"order": 0, "newton": False}, {"newton": False}),
    *({"transition_step": "exact"}, {"label_patterns": PATTERNS}),
]
some_kinds = pytest.mark.parametrize(
    ("estimator", "parameters"),
    [*((LinearCRF, kind) for kind in LINEAR[3:]), *((TreeCRF, kind) for kind in TREES[3:])],
)
of_linear = pytest.mark.parametrize("parameters", LINEAR[3:], ids=str)


def fit(estimator, X, y, sample_weight=None, **parameters):
    return estimator(**USUAL[estimator] | parameters).fit(X, y, sample_weight)


def assert_same(first, second, factor=1):
    """The same model up to rounding; the loss of a linear model may be a multiple."""
    if isinstance(first, TreeCRF):
        assert first.loss_ == pytest.approx(second.loss_, rel=1e-6)
        np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-6)
        return
    assert first.loss_ == pytest.approx(factor * second.loss_, rel=1e-9)
    for table in ("weights", "transition_weights", "patterns"):
        one, two = getattr(first, table)(), getattr(second, table)()
        for name in set(one) - {"weight"}:
            np.testing.assert_array_equal(one[name], two[name])
        np.testing.assert_allclose(one["weight"], two["weight"], atol=1e-6)


@pytest.mark.parametrize(
    ("estimator", "parameters", "what"),
    [
        *((LinearCRF, kind, "all") for kind in LINEAR),
        *((TreeCRF, kind, "all") for kind in TREES),
        *((each, {"order": order}, "gaps") for each in (LinearCRF, TreeCRF) for order in (1, 2)),
        *((each, {}, "class weights") for each in (LinearCRF, TreeCRF)),
        (LinearCRF, {"order": 2, **EDGES}, "class weights"),
        (TreeCRF, {"label_patterns": PATTERNS}, "class weights"),
    ],
)
def test_whole_weights_equal_repeated_sequences(estimator, parameters, what):
    y, more = hide(Y) if what == "gaps" else Y, {}
    if what == "class weights":
        more = {"class_weight": {"a": 2.0}}
    counts = np.arange(len(X)) % 4 + 1
    weighted = fit(estimator, COARSE, y, counts, **parameters, **more)
    s = np.repeat(np.arange(len(X)), counts)
    repeated = fit(estimator, [COARSE[i] for i in s], [y[i] for i in s], **parameters, **more)
    assert_same(weighted, repeated)


@some_kinds
def test_a_weight_of_zero_leaves_a_sequence_out(estimator, parameters):
    weights = np.array([0.0 if 3 <= s < 9 else 1.0 for s in range(len(X))])
    rest = np.flatnonzero(weights)
    assert set().union(*(Y[s] for s in rest)) == {"a", "b", "c"}
    weighted = fit(estimator, COARSE, Y, weights, **parameters)
    without = fit(estimator, [COARSE[s] for s in rest], [Y[s] for s in rest], **parameters)
    assert_same(weighted, without)


@some_kinds
def test_equal_weights_matter_only_beside_the_penalty(estimator, parameters):
    parameters = {"pattern_lambda": 0.5, **parameters}
    plain = fit(estimator, X, Y, **parameters)
    for name in ("reg_lambda", "reg_alpha", "pattern_lambda", "min_child_weight", "min_split_gain"):
        if hasattr(plain, name):
            parameters = {**parameters, name: 8 * getattr(plain, name)}
    assert_same(fit(estimator, X, Y, np.full(len(X), 8.0), **parameters), plain, factor=8)
    parameters = {**parameters, "class_weight": dict.fromkeys("abc", 8.0)}
    assert_same(fit(estimator, X, Y, **parameters), plain, factor=8)


@some_kinds
def test_on_single_positions_class_weight_equals_sample_weight(estimator, parameters):
    rows, labels = ROWS[:, None], LABELS[:, None]
    by_label = {"a": 3.0, "c": 0.25}
    weights = [by_label.get(label, 1.0) for label in LABELS]
    by_class = fit(estimator, rows, labels, class_weight=by_label, **parameters)
    assert_same(by_class, fit(estimator, rows, labels, weights, **parameters))
    both = fit(estimator, rows, labels, weights, class_weight=by_label, **parameters)
    assert_same(both, fit(estimator, rows, labels, np.square(weights), **parameters))


def test_without_order_sequences_are_rows(estimator):
    by_label = {"a": 3.0, "b": 0.5}
    listed = fit(estimator, X, Y, order=0, class_weight=by_label)
    apart = fit(estimator, ROWS[:, None], LABELS[:, None], order=0, class_weight=by_label)
    assert_same(listed, apart)


def test_balanced_weights_are_inverse_to_counts(estimator):
    labels, counts = np.unique(LABELS, return_counts=True)
    by_label = dict(zip(labels.tolist(), len(LABELS) / (3 * counts), strict=True))
    balanced = fit(estimator, X, Y, class_weight="balanced")
    assert_same_model(balanced, fit(estimator, X, Y, class_weight=by_label))


def test_class_weight_by_integers_and_bools():
    as_numbers = [["abc".index(label) for label in labels] for labels in Y]
    named = fit(LinearCRF, X, Y, class_weight={"a": 2.0})
    for key in (0, np.int64(0)):
        numbered = fit(LinearCRF, X, as_numbers, class_weight={key: 2.0})
        np.testing.assert_allclose(numbered.weights()["weight"], named.weights()["weight"])
    is_a = [[label == "a" for label in labels] for labels in Y]
    heavy = fit(LinearCRF, X, is_a, class_weight={True: 50.0})
    assert np.concatenate(heavy.predict(X)).mean() > np.concatenate(is_a).mean()


@of_linear
def test_weights_of_rows_that_agree_within_sequences_are_weights_of_sequences(parameters):
    weights = np.arange(len(X)) % 4 + 0.5
    crf = LinearCRF(**parameters)
    expected = crf.fit(ROWS, LABELS, weights, GROUPS).loss_
    assert crf.fit(ROWS, LABELS, weights[GROUPS], GROUPS).loss_ == expected
    assert crf.fit(X, Y, weights).loss_ == expected


@of_linear
def test_weights_of_rows_multiply_with_weights_of_classes(parameters):
    class_weight = {"b": 0.5}
    by_label = {"a": 3.0, "b": 1.0, "c": 0.25}
    of_rows = np.array([by_label[label] for label in LABELS])
    parameters = {"class_weight": class_weight, **parameters}
    weighted = LinearCRF(**parameters).fit(ROWS, LABELS, of_rows, GROUPS)
    by_label["b"] *= 0.5
    by_class = LinearCRF(**parameters | {"class_weight": by_label}).fit(X, Y)
    assert_same(weighted, by_class)


def test_trees_weigh_rows_as_they_weigh_classes():
    crf = TreeCRF(n_rounds=3, n_jobs=1)
    weighted = crf.fit(ROWS, LABELS, np.where(LABELS == "a", 3.0, 1.0), GROUPS).loss_
    assert weighted == crf.set_params(class_weight={"a": 3.0}).fit(X, Y).loss_


def test_score_weighs_sequences_and_rows(make):
    crf = make(reg_lambda=5).fit(X, Y)
    right = crf.predict(ROWS, groups=GROUPS) == LABELS
    assert crf.score(X, Y) == pytest.approx(right.mean())
    weights = np.linspace(0, 2, len(X))
    expected = np.average(right, weights=weights[GROUPS])
    assert crf.score(X, Y, weights) == pytest.approx(expected)
    assert crf.score(X, Y, np.arange(len(X)) == 4) == right[GROUPS == 4].mean()
    weights = np.linspace(0, 2, len(ROWS))
    found = crf.score(ROWS, LABELS, weights, groups=GROUPS)
    assert found == pytest.approx(np.average(right, weights=weights))


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (
            np.ones(11),
            f"sample_weight has shape (11,) but X has 20 sequences and {len(ROWS)} rows; pass one "
            "weight for each sequence, or one for each row",
        ),
        (np.zeros(len(ROWS)), "sample_weight is zero for every row; at least one must be positive"),
        (["much"] * 20, "sample_weight is not an array of numbers: could not convert string"),
    ],
)
def test_bad_weights_for_a_flat_input(sample_weight, message):
    refuses(ValueError, message, LinearCRF().fit, ROWS, LABELS, sample_weight, GROUPS)


def test_rows_that_differ_in_weight_need_labels(make):
    gaps = np.where(GROUPS == 3, None, LABELS)
    first = np.argmax(GROUPS == 3)
    message = f"different weights in a sequence needs all labels, but y[{first}] is"
    refuses(ValueError, message, make().fit, ROWS, gaps, np.arange(len(ROWS)), GROUPS)
    assert make().fit(ROWS, gaps, np.ones(len(ROWS)), GROUPS).loss_ > 0


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.ones(9), "sample_weight has shape (9,) but X has 20 sequences; pass one weight for"),
        (np.ones((20, 1)), "sample_weight has shape (20, 1) but X has 20 sequences"),
        (2.0, "sample_weight has shape () but X has 20 sequences"),
        ([1.0] * 3 + [-0.5] + [1.0] * 16, "sample_weight[3] is -0.5; weights must be finite and"),
        ([np.nan] + [1.0] * 19, "sample_weight[0] is nan; weights must be finite and not neg"),
        ([1.0] * 19 + [np.inf], "sample_weight[19] is inf; weights must be finite and not neg"),
        (np.zeros(20), "sample_weight is zero for every sequence; at least one must be positive"),
    ],
)
def test_bad_sample_weights(sample_weight, message):
    crf = small(LinearCRF).fit(X, Y)
    refuses(ValueError, message, crf.fit, X, Y, sample_weight)
    refuses(ValueError, message, crf.score, X, Y, sample_weight)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ([1.0, 2.0, 1.0], "class_weight is of type list; expected a dict of weights by label, "),
        (2.0, "class_weight is of type float; expected a dict of weights by label, 'balanced' or"),
        ("heavy", "class_weight is 'heavy'; expected 'balanced' or None"),
        (
            {"d": 1.0},
            "class_weight has the label 'd', which does not occur in y; the labels of y are",
        ),
        (
            {0: 1.0},
            "class_weight has the label 0, which does not occur in y; the labels of y are 'a',",
        ),
        ({"b": -2.0}, "class_weight['b'] is -2.0; expected a finite number of at least 0"),
        ({"b": np.nan}, "class_weight['b'] is nan; expected a finite number of at least 0"),
        ({"b": None}, "class_weight['b'] is None; expected a finite number of at least 0"),
    ],
)
def test_bad_class_weights(class_weight, message):
    refuses(ValueError, message, LinearCRF(class_weight=class_weight).fit, X, Y)


def test_many_labels_are_not_all_listed():
    y = [list(range(12))]
    with pytest.raises(ValueError, match=r"the labels of y are 0, 1, .*, 9, \.\.\.$"):
        LinearCRF(class_weight={12: 1}).fit([np.eye(12)], y)
