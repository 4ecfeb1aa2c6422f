"""Errors of the estimators; and unusual input that they accept."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from hedgerow import LinearCRF, TreeCRF
from reference.estimators import ESTIMATORS, every_prediction, refuses, small, tables
from reference.linear import make_data, to_dicts

X, Y = make_data()
DICTS = to_dicts(X)
ROWS, LABELS = np.concatenate(X), np.concatenate(Y)
UNKNOWN = [[None] * len(labels) for labels in Y]


def of_both(*kinds):
    """Parameters for either estimator."""
    return [(estimator, parameters) for estimator in ESTIMATORS for parameters in kinds]


@pytest.fixture(scope="module")
def fitted(make):
    return make().fit(X, Y)


def spoil(value):
    """X with a value at position 1, column 2 of its first sequence."""
    spoilt = [x.copy() for x in X]
    spoilt[0][1, 2] = value
    return spoilt


# Parameters.

NUMBER = "expected a finite number of at least 0"
COUNT = "expected an integer of at least 0"
COUNT_FROM_1 = "expected an integer of at least 1"
BOOL = "expected True or False"
PREFIX = "expected True, False, or a "
ABOVE_0 = "expected a finite number greater than 0"
RATE = "expected a number greater than 0 and at most 1e+06"
SHARE = "expected a number greater than 0 and at most 1"
BINS = "expected an integer from 2 to 255"
WINDOW = "expected an integer from 0 to 255, the number of positions"
CURVATURE = "expected 'mixing', 'exact' or 'length'"
# What is expected of a parameter, and values that are something else.
OF_BOTH = [
    ("early_stopping_rounds", COUNT_FROM_1, [0, 2.0]),
    ("early_stopping_metric", "expected 'loss', 'accuracy' or None", ["f1"]),
    ("validation_fraction", "expected a number greater than 0 and less", [0, 1, "x"]),
    ("reg_lambda", NUMBER, [-1, np.nan, "1", None]),
    ("order", COUNT, [-1, 1.0, "2", None, True]),
    ("min_pattern_count", COUNT, [-1, 0.5]),
    ("pattern_lambda", NUMBER, [-1, np.nan]),
    ("pattern_lambda", "expected a number, a list of numbers", ["gone", [], {}]),
    ("constraints", "expected 'BIO', 'IOB1', 'BILOU',", ["IOB2"]),
    ("forbidden", "expected a list of pairs (label before, label)", ["ab"]),
    ("missing_label", "expected a string, an integer or a bool, as", [0.5]),
    ("n_jobs", "expected the number of threads, a positive integer; None", [0, 1.5]),
    ("verbose", COUNT, [-1, "loud"]),
    ("random_state", "expected an integer from 0 to 2**32 - 1", ["seed"]),
]
OF_LINEAR = [
    ("reg_alpha", NUMBER, [-0.5, np.inf, True]),
    ("max_iter", COUNT_FROM_1, [0, 10.0]),
    ("tol", NUMBER, [-1e-3]),
    ("min_count", COUNT, [-1, 1.5]),
    ("all_pairs", BOOL, ["yes", None]),
    ("transition_attributes", PREFIX, [2, ""]),
    ("pattern_attributes", PREFIX, [None, ""]),
]
OF_TREES = [
    ("n_rounds", COUNT_FROM_1, [0, 10.0, None, True]),
    ("learning_rate", RATE, [-1, 0, np.inf, 1e308, "fast"]),
    ("max_depth", f"{COUNT_FROM_1}, or None", [-1, 0, 2.5]),
    ("max_leaves", "expected an integer from 1 to 32768, or None", [0, 32769]),
    ("min_child_weight", NUMBER, [-1, np.nan]),
    ("min_split_gain", NUMBER, [-1e-9]),
    ("trim", NUMBER, [-0.01, "none"]),
    ("max_step", ABOVE_0, [-1, 0, np.inf]),
    ("negative_ratio", ABOVE_0, [-2, 0, None]),
    ("max_bins", BINS, [1, 256, 16.0, True]),
    ("window", WINDOW, [-1, 1.5, "1", None, (1, -2), (1, 2, 3), (), 256, (0, 300), np.array(1.0)]),
    *(
        (name, SHARE, [0, -0.5, 1.01, np.nan, None, "half", True])
        for name in ("subsample", "colsample_bytree", "colsample_bynode")
    ),
    ("newton", BOOL, ["yes", None]),
    ("stratified", BOOL, [2]),
    ("sampling_method", "expected 'uniform' or 'gradient_based'", ["goss", None]),
    ("negative_weight", "expected 'unbiased', 'none' or 'balanced'", [None, 1.0]),
    ("curvature", CURVATURE, ["none", None]),
    ("transition_step", "expected 'auto', 'bound' or 'exact'", ["long"]),
    ("transitions", "expected 'weights' or 'trees'", ["pairs", None]),
    ("missing", "expected 'learned', 'fractional', 'surrogate', 'impute' or 'indicator'", ["mean"]),
    ("max_literals", "expected an integer from 1 to 6", [0, 7, 2.5, None]),
]


@pytest.mark.parametrize(
    ("estimator", "name", "expected", "values"),
    [
        *((LinearCRF, *case) for case in (*OF_BOTH, *OF_LINEAR)),
        *((TreeCRF, name, expected, values[:1]) for name, expected, values in OF_BOTH),
        *((TreeCRF, *case) for case in OF_TREES),
    ],
)
def test_bad_parameters(estimator, name, expected, values):
    for value in values:
        message = f"{name} is {value!r}; {expected}"
        refuses(ValueError, message, small(estimator, **{name: value}).fit, X, Y)


@pytest.mark.parametrize(("name", "value"), [("order", 0), ("order", 2), ("min_pattern_count", 2)])
def test_what_label_patterns_take_the_place_of(make, name, value):
    message = f"{name} is {value} and label_patterns are given, which replace"
    refuses(ValueError, message, make(label_patterns=[("a", "b")], **{name: value}).fit, X, Y)


# Training data.


NEED = {
    LinearCRF: "LinearCRF needs finite numbers",
    TreeCRF: "TreeCRF needs finite numbers, or NaN for missing ones: clip or drop it",
}


@pytest.mark.parametrize(
    ("estimator", "value"),
    [
        *((estimator, value) for estimator in ESTIMATORS for value in (np.inf, -np.inf)),
        (LinearCRF, np.nan),
    ],
)
def test_numbers_that_are_not_finite_are_named(estimator, value):
    what, need = "NaN" if np.isnan(value) else value, NEED[estimator]
    crf, fitted, bad = small(estimator), small(estimator).fit(X, Y), spoil(value)
    message = f"X[0] has {what} at position 1, column 2; {need}"
    refuses(ValueError, message, crf.fit, bad, Y)
    refuses(ValueError, f"in eval_set: {message}", crf.fit, X, Y, eval_set=(bad, Y))
    refuses(ValueError, message, crf.fit, bad, Y, init=fitted)
    refuses(ValueError, message, crf.fit, [sparse.csr_array(x) for x in bad], Y)
    for method in every_prediction(fitted):
        refuses(ValueError, message, method, bad)
    for method in (fitted.score, fitted.log_likelihood):
        refuses(ValueError, message, method, bad, Y)
    message = f"X has {what} at row 1, column 2; {need}"
    refuses(ValueError, message, fitted.predict, np.concatenate(bad))
    frame = pd.DataFrame({"width": [1.0, 2.0], "height": [1.0, value]})
    message = f"X[0] has {what} at position 1, column 'height'; {need}"
    refuses(ValueError, message, crf.fit, [frame], [["a", "b"]])


def test_missing_numbers_are_welcome_to_trees():
    for crf in (small(TreeCRF).fit(spoil(np.nan), Y), small(TreeCRF).fit(X, Y)):
        assert np.isfinite(crf.predict_proba(spoil(np.nan))).all()


def test_bad_init(make, estimator):
    name = estimator.__name__
    (other,) = set(ESTIMATORS) - {estimator}
    for init in ({}, other()):
        message = f"init is of type {type(init).__name__}; expected a fitted {name}"
        refuses(TypeError, message, make().fit, X, Y, init=init)
    message = "init is not fitted yet; fit it first, or leave init out"
    refuses(NotFittedError, message, make().fit, X, Y, init=make())


def test_a_refused_fit_leaves_the_model_as_it_was(make):
    crf = make().fit(X, Y)
    kept = crf.predict_proba(X), *tables(crf).values()
    told = crf.loss_, crf.history_, crf.label_patterns_
    for given in ((spoil(np.inf), Y), (X, Y[:-1]), (DICTS, [[1]])):
        with pytest.raises(ValueError, match=r"^(X|y)"):
            crf.fit(*given)
    with pytest.raises(ValueError, match="in eval_set"):
        crf.fit(DICTS, Y, eval_set=(X, Y))
    crf.reg_lambda = -1
    with pytest.raises(ValueError, match="reg_lambda"):
        crf.fit(X, Y)
    assert (crf.loss_, crf.history_, crf.label_patterns_) == told
    for before, now in zip(kept, (crf.predict_proba(X), *tables(crf).values()), strict=True):
        np.testing.assert_array_equal(before, now)


def test_the_data_handed_in_stay_as_they_are(make):
    rows, labels, weight = ROWS.copy(), LABELS.copy(), np.ones(1)
    crf = make(class_weight="balanced").fit(rows, labels, weight)
    crf.predict_proba(rows)
    np.testing.assert_array_equal(rows, ROWS)
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(weight, 1)


# Questions.


@pytest.mark.parametrize("decode", ["Viterbi", "posterior", 0])
def test_bad_decode(fitted, decode):
    message = f"decode is {decode!r}; expected 'viterbi', 'marginal' or None"
    refuses(ValueError, message, fitted.predict, X, decode=decode)
    refuses(ValueError, message, fitted.score, X, Y, decode=decode)
    refuses(ValueError, message, fitted.explain, X[0], 0, decode=decode)
    message = f"decode is {decode!r}; expected 'auto', 'viterbi' or 'marginal'"
    refuses(ValueError, message, type(fitted)(decode=decode).fit, X, Y)


def test_more_labellings_than_there_are(fitted):
    assert len(fitted.predict_k_best([X[0][:2]], 10**12)[0]) == 3**2


@pytest.mark.parametrize("number", [0, -3, 1.0, "3", None, True, np.nan])
def test_bad_numbers_of_labellings(fitted, number):
    message = f"k is {number!r}; expected an integer of at least 1"
    refuses(ValueError, message, fitted.predict_k_best, X, number)
    message = f"n is {number!r}; expected an integer of at least 1"
    refuses(ValueError, message, fitted.sample, X, number)
    assert len(fitted.predict_k_best(X, np.int64(2))[0]) == 2
    assert fitted.sample(X, np.int64(2))[0].shape == (2, 5)


def test_a_score_for_which_nothing_counts(fitted):
    message = "sample_weight is zero wherever there is a label; at least one must be positive"
    refuses(ValueError, message, fitted.score, X[:2], [Y[0], UNKNOWN[1]], [0.0, 1.0])


# What is accepted.


@pytest.mark.parametrize("by", ["class", "sequence"])
def test_trainings_in_which_nothing_counts(by):
    if by == "class":
        crf = small(TreeCRF, class_weight=dict.fromkeys("abc", 0)).fit(X, Y)
    else:
        crf = small(TreeCRF).fit(X, [Y[0], *UNKNOWN[1:]], [0, *[1] * (len(X) - 1)])
    assert crf.loss_ == 0


@pytest.mark.filterwarnings("ignore:y has a single label")
@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        *of_both({}, {"order": 0}, {"order": 2}, {"class_weight": {"only": 3}}),
        *of_both({"order": 3, "class_weight": {"only": 3}}),
        (LinearCRF, {"reg_alpha": 0.5}),
        (LinearCRF, {"transition_attributes": True}),
        (LinearCRF, {"order": 2, "transition_attributes": True}),
        (LinearCRF, {"order": 2, "pattern_attributes": True}),
        (TreeCRF, {"newton": False}),
        (TreeCRF, {"subsample": 0.5}),
        (TreeCRF, {"transition_step": "exact"}),
        (TreeCRF, {"transitions": "trees"}),
        (TreeCRF, {"curvature": "exact"}),
    ],
)
def test_one_label_alone_is_predicted_with_certainty(estimator, parameters):
    same = [["only"] * len(labels) for labels in Y]
    crf = small(estimator, **parameters).fit(X, same, eval_set=(X, same))
    assert crf.loss_ == 0
    assert [labels.tolist() for labels in crf.predict(X)] == same
    np.testing.assert_array_equal(crf.log_likelihood(X, same), 0)
    np.testing.assert_array_equal(crf.predict_proba(X), 1)
    assert [len(found) for found in crf.predict_k_best(X, 3)] == [1] * len(X)
    assert crf.sample(X, 2)[0].tolist() == [same[0]] * 2


@pytest.mark.filterwarnings("ignore:y has a single label")
def test_a_single_position(make):
    crf = make().fit([[{"word": "x"}]], [["a"]])
    assert crf.predict([[{"word": "y"}, {}]])[0].tolist() == ["a", "a"]
