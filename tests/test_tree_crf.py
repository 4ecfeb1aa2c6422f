"""What TreeCRF refuses, and how it says so; the rest is in the folder `tree_crf`."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from hedgerow import TreeCRF
from reference.linear import make_data, to_dicts

X, Y = make_data()
DICTS = to_dicts(X)
ROWS, LABELS = np.concatenate(X), np.concatenate(Y)
FRAMES = [pd.DataFrame(x, columns=list("pqr")) for x in X]


def make(**parameters):
    return TreeCRF(**{"n_rounds": 2, "min_child_weight": 0, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return make().fit(X, Y)


def refuses(error, message, method, *args, **kwargs):
    with pytest.raises(error, match=re.escape(message)):
        method(*args, **kwargs)


def every_prediction(crf):
    """All methods that answer a question about X alone."""
    return (
        *(crf.predict, crf.predict_proba, crf.predict_marginals, crf.predict_pattern_marginals),
        *(crf.sample, lambda X: crf.predict_k_best(X, 2)),
    )


def test_the_example_of_the_documentation():
    X = [[[0.1], [0.9], [0.2]], [[0.8], [0.1]]]
    y = [["low", "high", "low"], ["high", "low"]]
    crf = TreeCRF(n_rounds=20, min_child_weight=0).fit(X, y)
    assert [labels.tolist() for labels in crf.predict(X)] == y


NUMBER = "expected a finite number of at least 0"
SHARE = "expected a number above 0 and at most 1"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_rounds", 0, "n_rounds is 0; expected an integer of at least 1"),
        ("n_rounds", 10.0, "n_rounds is 10.0; expected an integer of at least 1"),
        ("n_rounds", None, "n_rounds is None; expected an integer of at least 1"),
        ("n_rounds", True, "n_rounds is True; expected an integer of at least 1"),
        ("learning_rate", -0.1, f"learning_rate is -0.1; {NUMBER}"),
        ("learning_rate", np.inf, f"learning_rate is inf; {NUMBER}"),
        ("learning_rate", "fast", f"learning_rate is 'fast'; {NUMBER}"),
        ("max_depth", 0, "max_depth is 0; expected an integer of at least 1"),
        ("max_depth", 2.5, "max_depth is 2.5; expected an integer of at least 1"),
        ("max_leaves", 0, "max_leaves is 0; expected an integer of at least 1"),
        ("max_leaves", 32769, "max_leaves is 32769; expected at most 32768"),
        ("min_child_weight", -1, f"min_child_weight is -1; {NUMBER}"),
        ("min_child_weight", np.nan, f"min_child_weight is nan; {NUMBER}"),
        ("min_split_gain", -1e-9, f"min_split_gain is -1e-09; {NUMBER}"),
        ("reg_lambda", -1, f"reg_lambda is -1; {NUMBER}"),
        ("reg_lambda", None, f"reg_lambda is None; {NUMBER}"),
        ("trim", -0.01, f"trim is -0.01; {NUMBER}"),
        ("trim", "none", f"trim is 'none'; {NUMBER}"),
        ("max_step", -1, f"max_step is -1; {NUMBER}"),
        ("max_step", 0, "max_step is 0; expected more than 0"),
        ("max_step", np.inf, f"max_step is inf; {NUMBER}"),
        ("negative_ratio", 0, "negative_ratio is 0; expected more than 0"),
        ("negative_ratio", -2, f"negative_ratio is -2; {NUMBER}"),
        ("max_bins", 1, "max_bins is 1; expected an integer from 2 to 255"),
        ("max_bins", 256, "max_bins is 256; expected an integer from 2 to 255"),
        ("max_bins", 16.0, "max_bins is 16.0; expected an integer from 2 to 255"),
        ("max_bins", True, "max_bins is True; expected an integer from 2 to 255"),
        ("window", -1, "window is -1; expected how many positions"),
        ("window", 1.5, "window is 1.5; expected how many positions"),
        ("window", "1", "window is '1'; expected how many positions"),
        ("window", None, "window is None; expected how many positions"),
        ("window", (1, -2), "window is (1, -2); expected how many positions"),
        ("window", (1, 2, 3), "window is (1, 2, 3); expected how many positions"),
        ("window", (), "window is (); expected how many positions"),
        ("window", 256, "window is 256; expected how many positions"),
        ("window", (0, 300), "window is (0, 300); expected how many positions"),
        *(
            (name, value, f"{name} is {value!r}; {SHARE}")
            for name in ("subsample", "colsample_bytree", "colsample_bynode")
            for value in (0, -0.5, 1.01, np.nan, None, "half", True)
        ),
        ("newton", "yes", "newton is 'yes'; expected True or False"),
        ("newton", None, "newton is None; expected True or False"),
        ("stratified", 2, "stratified is 2; expected True or False"),
        ("curvature", "none", "curvature is 'none'; expected 'mixing' or 'exact' or 'length'"),
        ("curvature", None, "curvature is None; expected 'mixing' or 'exact' or 'length'"),
        ("transition_step", "long", "transition_step is 'long'; expected 'bound' or 'exact'"),
        ("early_stopping_rounds", 0, "early_stopping_rounds is 0; expected an integer of at least"),
        ("early_stopping_rounds", 2.0, "early_stopping_rounds is 2.0; expected an integer of at"),
        ("early_stopping_metric", "f1", "early_stopping_metric is 'f1'; expected 'loss' or 'accur"),
        ("order", -1, "order is -1; expected an integer of at least 0"),
        ("order", 1.0, "order is 1.0; expected an integer of at least 0"),
        ("min_pattern_count", -1, "min_pattern_count is -1; expected an integer of at least 0"),
        ("label_patterns", [()], "label_patterns[0] is empty; a pattern has at least two labels"),
        ("label_patterns", [("a", "z")], "label_patterns[0] has the unknown label 'z'; known"),
        ("constraints", "IOB2", "constraints is 'IOB2'; expected 'BIO' or 'IOB1' or 'BILOU' or"),
        ("allowed", [], "allowed is empty, which forbids every pair of labels; list the pairs"),
        ("forbidden", [("a", "z")], "forbidden has the unknown label 'z'; known labels: 'a', 'b'"),
        ("start_labels", [], "start_labels is empty, which forbids every sequence; name at least"),
        ("end_labels", ["z"], "end_labels has the unknown label 'z'; known labels: 'a', 'b', 'c'"),
        ("missing_label", 0.5, "missing_label is 0.5; expected a string, an integer or a bool, as"),
        ("class_weight", "equal", "class_weight is 'equal'; expected 'balanced' or None"),
        ("class_weight", {"z": 1}, "class_weight has the label 'z', which does not occur in y"),
        ("class_weight", {"a": -1}, "class_weight['a'] is -1; expected a finite number of"),
        ("n_jobs", 0, "n_jobs is 0; expected a positive number of threads, None or -1"),
        ("n_jobs", 1.5, "n_jobs is 1.5; expected a positive number of threads"),
        ("window", np.array(1.0), "window is array(1.); expected how many positions to look at"),
        ("learning_rate", 1e308, "learning_rate is 1e+308; expected at most 1e+06"),
        ("random_state", "seed", "random_state is 'seed'; expected an integer from 0 to 2**32 - 1"),
        ("verbose", -1, "verbose is -1; expected an integer of at least 0"),
    ],
)
def test_bad_parameters(name, value, message):
    refuses(ValueError, message, make(**{name: value}).fit, X, Y)


def test_bad_callbacks():
    message = "callbacks holds 5, which cannot be called"
    refuses(TypeError, message, make(callbacks=[print, 5]).fit, X, Y)
    message = "callbacks holds 'loud', which cannot be called"
    refuses(TypeError, message, make(callbacks=("loud",)).fit, X, Y)


def test_patience_without_an_eval_set():
    message = "early_stopping_rounds needs an eval_set to stop by; pass fit(..., eval_set=(X, y))"
    refuses(ValueError, message, make(early_stopping_rounds=3).fit, X, Y)


@pytest.mark.parametrize("order", [0, 2])
def test_an_order_and_label_patterns(order):
    message = f"order is {order} and label_patterns are given; these take the place of"
    refuses(ValueError, message, make(order=order, label_patterns=[("a", "b")]).fit, X, Y)


def test_class_weights_need_all_labels():
    y = [[None, *labels[1:]] for labels in Y]
    message = "class_weight weighs the label of every position"
    refuses(ValueError, message, make(class_weight="balanced").fit, X, y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_rounds": np.int64(3), "max_depth": np.int32(2), "max_leaves": np.uint8(4)},
        {"learning_rate": np.float32(0.5), "reg_lambda": np.float64(2), "trim": np.float32(0)},
        {"max_bins": np.int64(10), "window": np.int64(1), "max_step": np.float32(2)},
        {"newton": np.False_, "stratified": np.True_, "random_state": np.int64(0)},
        {"subsample": np.float32(0.5), "random_state": np.uint8(1), "n_jobs": np.int64(1)},
    ],
)
def test_parameters_may_be_numpy_scalars(parameters):
    plain = {name: value.item() for name, value in parameters.items()}
    crf = make(**parameters).fit(X, Y)
    assert crf.loss_ == make(**plain).fit(X, Y).loss_


def spoil(value, sequence=0, position=1, column=2):
    spoilt = [x.copy() for x in X]
    spoilt[sequence][position, column] = value
    return spoilt


@pytest.mark.parametrize("value", [np.inf, -np.inf], ids=str)
def test_infinite_numbers_are_named(fitted, value):
    bad = spoil(value)
    need = "TreeCRF needs finite numbers, or NaN for missing ones: clip or drop it"
    message = f"X[0] has {value} at position 1, column 2; {need}"
    refuses(ValueError, message, make().fit, bad, Y)
    refuses(ValueError, f"in eval_set: {message}", make().fit, X, Y, eval_set=(bad, Y))
    refuses(ValueError, message, make().fit, bad, Y, init=fitted)
    for method in every_prediction(fitted):
        refuses(ValueError, message, method, bad)
    for method in (fitted.score, fitted.log_likelihood):
        refuses(ValueError, message, method, bad, Y)
    refuses(ValueError, message, make().fit, [sparse.csr_array(x) for x in bad], Y)
    message = f"X has {value} at row 1, column 2; {need}"
    refuses(ValueError, message, fitted.predict, np.concatenate(bad))
    frame = pd.DataFrame({"width": [1.0, 2.0], "height": [1.0, value]})
    message = f"X[0] has {value} at position 1, column 'height'; {need}"
    refuses(ValueError, message, make().fit, [frame], [["a", "b"]])


def test_missing_numbers_are_welcome(fitted):
    assert np.isfinite(make().fit(spoil(np.nan), Y).predict_proba(spoil(np.nan))).all()
    assert np.isfinite(fitted.predict_proba(spoil(np.nan))).all()


def test_other_columns_than_in_training(fitted):
    for method in every_prediction(fitted):
        message = "X has 2 features, but TreeCRF is expecting 3 features as input"
        refuses(ValueError, message, method, [x[:, :2] for x in X])
    message = "X holds dicts or attribute strings, but TreeCRF was fitted on 3 columns"
    refuses(ValueError, message, fitted.predict, DICTS)
    message = "X holds 3 columns (arrays, DataFrames or sparse matrices), but TreeCRF was fitted"
    refuses(ValueError, message, make().fit(DICTS, Y).predict, X)
    framed = make().fit(FRAMES, Y)
    other = [frame.rename(columns={"q": "s"}) for frame in FRAMES]
    message = "X has other columns than TreeCRF was fitted on: column 'q' of the X used to fit is"
    refuses(ValueError, message, framed.predict, other)
    message = "the order differs, column 0 is 'r' but 'p' in the X used to fit; pass the same"
    refuses(ValueError, message, framed.predict, [frame[list("rqp")] for frame in FRAMES])
    message = "column 'q' was numeric when TreeCRF was fitted and is text now; convert it"
    text = [frame.astype({"q": str}) for frame in FRAMES]
    refuses(ValueError, message, framed.predict, text)
    message = "column 'q' was text when TreeCRF was fitted and is numeric now; convert it"
    refuses(ValueError, message, make().fit(text, Y).predict, FRAMES)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X is empty; expected at least one sequence"),
        (np.empty((0, 3)), [], "X has no rows (shape (0, 3)); expected at least one"),
        (np.empty((3, 0)), ["a"] * 3, "X has 0 feature(s) (shape=(3, 0)) while a minimum of 1 is"),
        ([X[0], X[1][:0]], Y[:2], "X[1] is empty; a sequence needs at least one position"),
        ([X[0], X[2][:, :2]], [Y[0], Y[2]], "X[1] has 2 columns but X[0] has 3; every sequence"),
        (X, Y[:-1], "y has 7 sequences but X has 8; pass one list of labels for every sequence"),
        (X, None, "fit requires y to be passed, but the target y is None"),
        (X, [[None] * len(labels) for labels in Y], "y has no label at any of its 16 positions"),
    ],
)
def test_bad_data(X, y, message):
    refuses(ValueError, message, make().fit, X, y)


def test_bad_weights_and_groups():
    message = "sample_weight has shape (2,) but X has 8 sequences; pass one weight for each"
    refuses(ValueError, message, make().fit, X, Y, [1, 2])
    weights = np.ones(8)
    weights[3] = -1
    refuses(ValueError, "sample_weight[3] is -1.0; weights must", make().fit, X, Y, weights)
    message = "sample_weight is zero for every sequence; at least one must count"
    refuses(ValueError, message, make().fit, X, Y, np.zeros(8))
    message = "groups goes with one flat X, but X is a list of sequences"
    refuses(ValueError, message, make().fit, X, Y, groups=np.zeros(16))


@pytest.mark.parametrize("by", ["class", "sequence"])
def test_nothing_that_counts(by):
    if by == "class":
        crf = make(class_weight=dict.fromkeys("abc", 0)).fit(X, Y)
    else:
        y = [Y[0], *([None] * len(labels) for labels in Y[1:])]
        crf = make().fit(X, y, [0, *[1] * (len(X) - 1)])
    assert crf.loss_ == 0


def test_unknown_labels(fitted):
    wrong = [["z", *Y[0][1:]], *Y[1:]]
    message = "unknown label 'z' at y[0][0]; known labels: 'a', 'b', 'c'"
    refuses(ValueError, message, fitted.score, X, wrong)
    refuses(ValueError, message, fitted.log_likelihood, X, wrong)
    refuses(ValueError, f"in eval_set: {message}", make().fit, X, Y, eval_set=(X, wrong))


@pytest.mark.parametrize(
    ("eval_set", "message"),
    [
        ((X,), "eval_set must be (X, y), or (X, y, groups) for a flat X"),
        ((X, Y, None, None), "eval_set must be (X, y), or (X, y, groups) for a flat X"),
        (5, "eval_set must be (X, y), or (X, y, groups) for a flat X"),
        ((X, Y[:-1]), "in eval_set: y has 7 sequences but X has 8"),
        ((DICTS, Y), "in eval_set: X holds dicts or attribute strings, but TreeCRF was fitted on"),
        (([x[:, :2] for x in X], Y), "in eval_set: X has 2 features, but TreeCRF is expecting 3"),
        (([], []), "in eval_set: X is empty; expected at least one sequence"),
        ((X, [[None] * len(y) for y in Y]), "in eval_set: every label of y is missing; at least"),
    ],
)
def test_bad_eval_set(eval_set, message):
    refuses(ValueError, message, make().fit, X, Y, eval_set=eval_set)


def test_an_eval_set_that_breaks_constraints():
    crf = make(forbidden=[("a", "a")])
    y = [["b"] * len(labels) if "a" in labels else labels for labels in Y]
    message = "in eval_set: y[0][1] is 'a' after 'a', which"
    y[0], wrong = ["a", "b", "a", "b", "a"], [["a"] * len(labels) for labels in Y]
    refuses(ValueError, message, crf.fit, X, y, eval_set=(X, wrong))


def test_a_refused_fit_leaves_the_model_as_it_was():
    crf = make().fit(X, Y)
    before, kept = crf.predict_proba(X), (crf.loss_, crf.n_rounds_, crf.history_)
    for given in ((spoil(np.inf), Y), (X, Y[:-1]), (DICTS, [[1]])):
        with pytest.raises(ValueError, match=r"^(X|y)"):
            crf.fit(*given)
    with pytest.raises(ValueError, match="in eval_set"):
        crf.fit(DICTS, Y, eval_set=(X, Y))
    assert (crf.loss_, crf.n_rounds_, crf.history_) == kept
    np.testing.assert_array_equal(crf.predict_proba(X), before)


def test_the_data_handed_in_stay_as_they_are():
    rows, labels, weight = ROWS.copy(), LABELS.copy(), np.ones(1)
    crf = make(class_weight="balanced", window=1).fit(rows, labels, weight)
    crf.predict_proba(rows)
    np.testing.assert_array_equal(rows, ROWS)
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(weight, 1)
