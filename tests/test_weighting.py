"""How much sequences and labels count."""

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from reference.estimators import group_ids, refuses
from reference.linear import make_data

X, Y = make_data(n_sequences=10)
KINDS = pytest.mark.parametrize(
    "parameters",
    [{}, {"transition_attributes": True}, {"order": 2}],
    ids=["plain", "edges", "order-2"],
)


def fit(X, y, sample_weight=None, **parameters):
    """A model at its minimum, far beyond the usual tolerance."""
    return LinearCRF(tol=0, max_iter=500, **parameters).fit(X, y, sample_weight)


def assert_same(first, second, tolerance=1e-6):
    assert first.loss_ == pytest.approx(second.loss_, rel=1e-9)
    for table in ("weights", "transitions", "patterns"):
        one, two = getattr(first, table)(), getattr(second, table)()
        for name in set(one) - {"weight"}:
            np.testing.assert_array_equal(one[name], two[name])
        np.testing.assert_allclose(one["weight"], two["weight"], atol=tolerance)


@KINDS
@pytest.mark.parametrize("class_weight", [None, {"a": 2.0}])
def test_whole_weights_equal_repeated_sequences(parameters, class_weight):
    counts = np.arange(len(X)) % 4 + 1
    parameters = {"class_weight": class_weight, **parameters}
    weighted = fit(X, Y, counts, **parameters)
    where = np.repeat(np.arange(len(X)), counts)
    repeated = fit([X[s] for s in where], [Y[s] for s in where], **parameters)
    assert_same(weighted, repeated)


@KINDS
def test_a_weight_of_zero_leaves_a_sequence_out(parameters):
    weights = np.ones(len(X))
    weights[[3, 5]] = 0
    rest = [s for s in range(len(X)) if weights[s]]
    assert set().union(*(Y[s] for s in rest)) == {"a", "b", "c"}
    weighted = fit(X, Y, weights, all_pairs=True, **parameters)
    without = fit([X[s] for s in rest], [Y[s] for s in rest], all_pairs=True, **parameters)
    assert_same(weighted, without)


def test_weights_of_one_change_nothing():
    assert_same(LinearCRF().fit(X, Y, np.ones(len(X))), LinearCRF().fit(X, Y))
    ones = dict.fromkeys("abc", 1.0)
    assert_same(fit(X, Y, class_weight=ones), fit(X, Y))
    assert_same(fit(X, Y, class_weight={}), fit(X, Y))


def test_all_weights_times_ten_are_a_penalty_of_a_tenth():
    heavy = fit(X, Y, np.full(len(X), 10.0), reg_lambda=1.0)
    light = fit(X, Y, reg_lambda=0.1)
    np.testing.assert_allclose(heavy.weights()["weight"], light.weights()["weight"], atol=1e-5)
    assert heavy.loss_ == pytest.approx(10 * light.loss_, rel=1e-9)


@KINDS
def test_on_single_positions_class_weight_equals_sample_weight(parameters):
    rows = [x[t : t + 1] for x in X for t in range(len(x))]
    labels = [[label] for sequence in Y for label in sequence]
    by_label = {"a": 3.0, "c": 0.25}
    sample_weight = [by_label.get(label, 1.0) for (label,) in labels]
    by_class = fit(rows, labels, class_weight=by_label, **parameters)
    assert_same(by_class, fit(rows, labels, sample_weight, **parameters))
    both = fit(rows, labels, sample_weight, class_weight=by_label, **parameters)
    assert_same(both, fit(rows, labels, np.square(sample_weight), **parameters))


def test_balanced_weights_are_inverse_to_counts():
    labels = [label for sequence in Y for label in sequence]
    by_label = {label: len(labels) / (3 * labels.count(label)) for label in "abc"}
    assert_same(fit(X, Y, class_weight="balanced"), fit(X, Y, class_weight=by_label))


def test_class_weight_by_integers_and_bools():
    as_numbers = [["abc".index(label) for label in labels] for labels in Y]
    named = fit(X, Y, class_weight={"a": 2.0})
    for key in (0, np.int64(0)):
        numbered = fit(X, as_numbers, class_weight={key: 2.0})
        np.testing.assert_allclose(numbered.weights()["weight"], named.weights()["weight"])
    is_a = [[label == "a" for label in labels] for labels in Y]
    heavy = fit(X, is_a, class_weight={True: 50.0})
    assert np.concatenate(heavy.predict(X)).mean() > np.concatenate(is_a).mean()


def test_a_heavy_label_is_predicted_more_often():
    counts = [
        (np.concatenate(fit(X, Y, class_weight={"a": weight}).predict(X)) == "a").sum()
        for weight in (0.01, 1.0, 100.0)
    ]
    assert counts[0] < counts[1] < counts[2]


def test_a_heavy_sequence_is_learnt_better():
    weights = np.ones(len(X))
    weights[0] = 20
    gain = fit(X, Y, weights).log_likelihood(X, Y) - fit(X, Y).log_likelihood(X, Y)
    assert gain[0] > 0


ROWS, LABELS, GROUPS = np.concatenate(X), np.concatenate(Y), group_ids(X)


@KINDS
def test_weights_of_rows_that_agree_within_sequences_are_weights_of_sequences(parameters):
    weights = np.arange(len(X)) % 4 + 0.5
    crf = LinearCRF(**parameters)
    expected = crf.fit(ROWS, LABELS, weights, GROUPS).loss_
    assert crf.fit(ROWS, LABELS, weights[GROUPS], GROUPS).loss_ == expected
    assert crf.fit(X, Y, weights).loss_ == expected


@KINDS
@pytest.mark.parametrize("class_weight", [None, {"b": 0.5}])
def test_weights_of_rows_multiply_with_weights_of_classes(parameters, class_weight):
    by_label = {"a": 3.0, "b": 1.0, "c": 0.25}
    of_rows = np.array([by_label[label] for label in LABELS])
    parameters = {"class_weight": class_weight, **parameters}
    weighted = LinearCRF(**parameters).fit(ROWS, LABELS, of_rows, GROUPS)
    for label, weight in (class_weight or {}).items():
        by_label[label] *= weight
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
            f"sample_weight has shape (11,) but X has 10 sequences and {len(ROWS)} rows; pass one "
            "weight for each sequence, or one for each row",
        ),
        (np.zeros(len(ROWS)), "sample_weight is zero for every row; at least one must count"),
        (["much"] * 10, "sample_weight is not an array of numbers: could not convert string"),
    ],
)
def test_bad_weights_for_a_flat_input(make, sample_weight, message):
    refuses(ValueError, message, make().fit, ROWS, LABELS, sample_weight, GROUPS)


def test_rows_that_differ_in_weight_need_labels(make):
    gaps = np.where(GROUPS == 3, None, LABELS)
    message = f"sample_weight weighs every row on its own, but y[{np.argmax(GROUPS == 3)}] is"
    refuses(ValueError, message, make().fit, ROWS, gaps, np.arange(len(ROWS)), GROUPS)
    assert make().fit(ROWS, gaps, np.ones(len(ROWS)), GROUPS).loss_ > 0


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.ones(9), "sample_weight has shape (9,) but X has 10 sequences; pass one weight for"),
        (np.ones((10, 1)), "sample_weight has shape (10, 1) but X has 10 sequences"),
        (2.0, "sample_weight has shape () but X has 10 sequences"),
        ([1.0] * 3 + [-0.5] + [1.0] * 6, "sample_weight[3] is -0.5; weights must be finite and"),
        ([np.nan] + [1.0] * 9, "sample_weight[0] is nan; weights must be finite and not negative"),
        ([1.0] * 9 + [np.inf], "sample_weight[9] is inf; weights must be finite and not negative"),
        (np.zeros(10), "sample_weight is zero for every sequence; at least one must count"),
    ],
)
def test_bad_sample_weights(make, sample_weight, message):
    refuses(ValueError, message, make().fit, X, Y, sample_weight)
    refuses(ValueError, message, make().fit(X, Y).score, X, Y, sample_weight)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ([1.0, 2.0, 1.0], "class_weight is of type list; expected a dict of weights by label, "),
        (2.0, "class_weight is of type float; expected a dict of weights by label, 'balanced' or"),
        ("heavy", "class_weight is 'heavy'; expected 'balanced' or None"),
        ({"d": 1.0}, "class_weight has the label 'd', which does not occur in y; its labels are"),
        ({0: 1.0}, "class_weight has the label 0, which does not occur in y; its labels are 'a',"),
        ({"b": -2.0}, "class_weight['b'] is -2.0; expected a finite number of at least 0"),
        ({"b": np.nan}, "class_weight['b'] is nan; expected a finite number of at least 0"),
        ({"b": None}, "class_weight['b'] is None; expected a finite number of at least 0"),
    ],
)
def test_bad_class_weights(make, class_weight, message):
    refuses(ValueError, message, make(class_weight=class_weight).fit, X, Y)


def test_many_labels_are_not_all_listed():
    y = [list(range(12))]
    with pytest.raises(ValueError, match=r"its labels are 0, 1, .*, 9, \.\.\.$"):
        LinearCRF(class_weight={12: 1}).fit([np.eye(12)], y)
