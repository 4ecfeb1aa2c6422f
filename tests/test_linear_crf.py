"""What LinearCRF refuses, and how it says so; the rest is in the folder `linear`."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from hedgerow import LinearCRF
from reference.linear import make_data, to_dicts

X, Y = make_data()
DICTS = to_dicts(X)
ROWS, LABELS = np.concatenate(X), np.concatenate(Y)


@pytest.fixture(scope="module")
def fitted():
    return LinearCRF().fit(X, Y)


def refuses(error, message, method, *args, **kwargs):
    with pytest.raises(error, match=re.escape(message)):
        method(*args, **kwargs)


def every_prediction(crf):
    """All methods that answer a question about X alone."""
    return (
        *(crf.predict, crf.predict_proba, crf.predict_marginals, crf.predict_pattern_marginals),
        *(crf.sample, lambda X: crf.predict_k_best(X, 2)),
    )


def spoil(value, sequence=2, position=1, column=0):
    spoilt = [x.copy() for x in X]
    spoilt[sequence] = np.resize(spoilt[sequence], (3, 3))
    spoilt[sequence][position, column] = value
    return spoilt, [[*labels, "a", "a", "a"][: len(x)] for x, labels in zip(spoilt, Y, strict=True)]


def test_the_example_of_the_documentation():
    sentences = [[{"word": "the"}, {"word": "old"}, {"word": "man"}], [{"word": "man"}]]
    crf = LinearCRF().fit(sentences, [["D", "A", "N"], ["N"]])
    assert [labels.tolist() for labels in crf.predict(sentences)] == [["D", "A", "N"], ["N"]]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("reg_lambda", -1, "reg_lambda is -1; expected a finite number of at least 0"),
        ("reg_lambda", np.nan, "reg_lambda is nan; expected a finite number of at least 0"),
        ("reg_lambda", "1", "reg_lambda is '1'; expected a finite number of at least 0"),
        ("reg_lambda", None, "reg_lambda is None; expected a finite number of at least 0"),
        ("reg_alpha", -0.5, "reg_alpha is -0.5; expected a finite number of at least 0"),
        ("reg_alpha", np.inf, "reg_alpha is inf; expected a finite number of at least 0"),
        ("reg_alpha", True, "reg_alpha is True; expected a finite number of at least 0"),
        ("max_iter", 0, "max_iter is 0; expected an integer of at least 1"),
        ("max_iter", 10.0, "max_iter is 10.0; expected an integer of at least 1"),
        ("tol", -1e-3, "tol is -0.001; expected a finite number of at least 0"),
        ("min_count", -1, "min_count is -1; expected an integer of at least 0"),
        ("min_count", 1.5, "min_count is 1.5; expected an integer of at least 0"),
        ("all_pairs", "yes", "all_pairs is 'yes'; expected True or False"),
        ("all_pairs", None, "all_pairs is None; expected True or False"),
        ("transition_attributes", 2, "transition_attributes is 2; expected True, False, or a "),
        ("transition_attributes", "", "transition_attributes is ''; expected True, False, or a "),
        ("class_weight", "equal", "class_weight is 'equal'; expected 'balanced' or None"),
        (
            "class_weight",
            [1, 2],
            "class_weight is of type list; expected a dict of weights",
        ),
        ("class_weight", {"z": 1}, "class_weight has the label 'z', which does not occur in y"),
        (
            "class_weight",
            {"a": -1},
            "class_weight['a'] is -1; expected a finite number of",
        ),
        ("class_weight", {"a": "1"}, "class_weight['a'] is '1'; expected a finite number"),
        ("n_jobs", 0, "n_jobs is 0; expected a positive number of threads, None or -1"),
        ("n_jobs", 1.5, "n_jobs is 1.5; expected a positive number of threads"),
        ("verbose", -1, "verbose is -1; expected an integer of at least 0"),
        ("verbose", "loud", "verbose is 'loud'; expected an integer of at least 0"),
        ("order", -1, "order is -1; expected an integer of at least 0"),
        ("order", 1.0, "order is 1.0; expected an integer of at least 0"),
        ("order", "2", "order is '2'; expected an integer of at least 0"),
        ("order", None, "order is None; expected an integer of at least 0"),
        ("order", True, "order is True; expected an integer of at least 0"),
        ("min_pattern_count", -1, "min_pattern_count is -1; expected an integer of at least 0"),
        ("min_pattern_count", 0.5, "min_pattern_count is 0.5; expected an integer of at least 0"),
        ("label_patterns", [()], "label_patterns[0] is empty; a pattern has at least two labels"),
        (
            "label_patterns",
            [("a", "b"), ("a", "z")],
            "label_patterns[1] has the unknown label 'z'; known labels: 'a', 'b', 'c'",
        ),
        ("label_patterns", [("a", 1)], "label_patterns[0] has the unknown label 1; known labels:"),
        ("label_patterns", [("a", None)], "label_patterns[0] has the unknown label None; known"),
        ("label_patterns", [(["a"], "b")], "label_patterns[0] has the unknown label ['a']; known"),
        ("constraints", "IOB2", "constraints is 'IOB2'; expected 'BIO' or 'IOB1' or 'BILOU' or"),
        ("allowed", [], "allowed is empty, which forbids every pair of labels; list the pairs"),
        ("forbidden", "ab", "forbidden is 'ab'; expected a list of pairs (label before, label)"),
        ("forbidden", [("a", "z")], "forbidden has the unknown label 'z'; known labels: 'a', 'b'"),
        ("start_labels", [], "start_labels is empty, which forbids every sequence; name at least"),
        ("end_labels", ["z"], "end_labels has the unknown label 'z'; known labels: 'a', 'b', 'c'"),
        ("missing_label", 0.5, "missing_label is 0.5; expected a string, an integer or a bool, as"),
    ],
)
def test_bad_parameters(name, value, message):
    refuses(ValueError, message, LinearCRF(**{name: value}).fit, X, Y)


@pytest.mark.parametrize(
    ("label_patterns", "message"),
    [
        ("ab", "label_patterns is 'ab'; expected a list of tuples of labels, such as [('a', 'b'),"),
        (5, "label_patterns is 5; expected a list of tuples of labels, such as"),
        (["ab"], "label_patterns[0] is 'ab'; expected a tuple of labels"),
        ([("a", "b"), 7], "label_patterns[1] is 7; expected a tuple of labels"),
    ],
)
def test_label_patterns_that_are_no_lists(label_patterns, message):
    refuses(TypeError, message, LinearCRF(label_patterns=label_patterns).fit, X, Y)


@pytest.mark.parametrize("order", [0, 2])
def test_an_order_and_label_patterns(order):
    message = f"order is {order} and label_patterns are given; these take the place of"
    refuses(ValueError, message, LinearCRF(order=order, label_patterns=[("a", "b")]).fit, X, Y)


def test_a_pattern_count_and_label_patterns():
    crf = LinearCRF(min_pattern_count=2, label_patterns=[("a", "b")])
    refuses(ValueError, "min_pattern_count is 2 and label_patterns are given; these", crf.fit, X, Y)


def test_more_labellings_than_there_are(fitted):
    n_labels = len(fitted.classes_)
    assert len(fitted.predict_k_best([X[0][:2]], 10**12)[0]) == n_labels**2


def test_a_score_for_which_nothing_counts(fitted):
    y = [Y[0], [None] * len(Y[1])]
    message = "sample_weight is zero wherever there is a label; at least one must count"
    refuses(ValueError, message, fitted.score, X[:2], y, [0.0, 1.0])


@pytest.mark.parametrize("number", [0, -3, 1.0, "3", None, True, np.nan])
def test_bad_numbers_of_labellings(fitted, number):
    message = f"k is {number!r}; expected an integer of at least 1"
    refuses(ValueError, message, fitted.predict_k_best, X, number)
    message = f"n is {number!r}; expected an integer of at least 1"
    refuses(ValueError, message, fitted.sample, X, number)
    assert len(fitted.predict_k_best(X, np.int64(2))[0]) == 2
    assert fitted.sample(X, np.int64(2))[0].shape == (2, 5)


def test_a_bad_seed(fitted):
    message = "random_state is 'seed'; expected an integer from 0 to 2"
    refuses(ValueError, message, fitted.sample, X, random_state="seed")


@pytest.mark.parametrize(
    "parameters",
    [
        {"reg_lambda": np.float32(0.5), "reg_alpha": np.float16(0.25), "tol": np.float32(2**-20)},
        {"max_iter": np.int64(500), "min_count": np.int32(1)},
        {"order": np.int64(2), "min_pattern_count": np.uint8(1), "missing_label": np.str_("?")},
        {"all_pairs": np.True_, "transition_attributes": np.False_},
        {"class_weight": {"a": np.float64(2), "b": 1}},
        {"n_jobs": np.int64(1), "random_state": 0},
    ],
)
def test_parameters_may_be_numpy_scalars(parameters):
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in parameters.items()
    }
    crf = LinearCRF(**parameters).fit(X, Y)
    assert crf.loss_ == LinearCRF(**plain).fit(X, Y).loss_
    assert type(crf.loss_) is float


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X is empty; expected at least one sequence"),
        (np.empty((0, 3)), [], "X has no rows (shape (0, 3)); expected at least one"),
        ([X[0], X[1][:0]], Y[:2], "X[1] is empty; a sequence needs at least one position"),
        ([DICTS[0], []], [Y[0], []], "X[1] is empty; a sequence needs at least one position"),
        ([[[1.0, 2.0], [1.0]]], [["a", "b"]], "X[0] is ragged: position 1 has 1 columns but"),
        ([X[0], X[2][:, :2]], [Y[0], Y[2]], "X[1] has 2 columns but X[0] has 3; every sequence"),
        (X, Y[:-1], "y has 7 sequences but X has 8; pass one list of labels for every sequence"),
        (X, [Y[0][:-1], *Y[1:]], "y[0] has 4 labels but X[0] has 5 positions; pass one label"),
        (X, LABELS, "y is flat, y[0] is"),
        (ROWS, LABELS[:-1], "labels but X has"),
        (ROWS[:8], Y, "y[0] is a list, not a label; X is flat, so y is 1-D"),
        (X, None, "fit requires y to be passed, but the target y is None"),
        (X, [[0.5] * len(labels) for labels in Y], "Unknown label type: y[0][0] is the float 0.5"),
        (
            X,
            [[None] * len(labels) for labels in Y],
            "y has no label at any of its 16 positions, all are missing (None); training needs",
        ),
    ],
)
def test_bad_data(X, y, message):
    refuses(ValueError, message, LinearCRF().fit, X, y)


def test_bad_groups(fitted):
    groups = np.repeat([0, 1, 0], [1, 1, len(ROWS) - 2])
    message = "group 0 comes back at row 2 after it began at row 0"
    refuses(ValueError, message, LinearCRF().fit, ROWS, LABELS, groups=groups)
    refuses(ValueError, message, fitted.predict, ROWS, groups=groups)
    message = "groups goes with one flat X, but X is a list of sequences"
    refuses(ValueError, message, LinearCRF().fit, X, Y, groups=groups)
    refuses(ValueError, "ids but X has", LinearCRF().fit, ROWS, LABELS, groups=groups[:-1])


@pytest.mark.parametrize(
    ("value", "what"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")], ids=str
)
def test_numbers_that_are_not_finite_are_named(fitted, value, what):
    bad, y = spoil(value, sequence=2, position=1, column=2)
    message = f"X[2] has {what} at position 1, column 2; LinearCRF needs finite numbers"
    refuses(ValueError, message, LinearCRF().fit, bad, y)
    refuses(ValueError, message, LinearCRF().fit, X, Y, eval_set=(bad, y))
    for method in every_prediction(fitted):
        refuses(ValueError, message, method, bad)
    for method in (fitted.score, fitted.log_likelihood):
        refuses(ValueError, message, method, bad, y)
    row = sum(map(len, bad[:2])) + 1
    message = f"X has {what} at row {row}, column 2; LinearCRF needs finite numbers"
    refuses(ValueError, message, fitted.predict, np.concatenate(bad))


def test_numbers_that_are_not_finite_in_a_frame_are_named_by_their_column():
    frame = pd.DataFrame({"width": [1.0, 2.0], "height": [1.0, None]})
    message = "X[0] has NaN at position 1, column 'height'; LinearCRF needs finite numbers"
    refuses(ValueError, message, LinearCRF().fit, [frame], [["a", "b"]])


def test_other_columns_than_in_training(fitted):
    for method in every_prediction(fitted):
        message = "X has 2 features, but LinearCRF is expecting 3 features as input"
        refuses(ValueError, message, method, [x[:, :2] for x in X])
    message = "X holds dicts or attribute strings, but LinearCRF was fitted on 3 columns"
    refuses(ValueError, message, fitted.predict, DICTS)
    message = "X holds 3 columns (arrays, DataFrames or sparse matrices), but LinearCRF was fitted"
    refuses(ValueError, message, LinearCRF().fit(DICTS, Y).predict, X)
    frames = [pd.DataFrame(x, columns=list("pqr")) for x in X]
    other = [frame.rename(columns={"q": "s"}) for frame in frames]
    message = "X has other columns than LinearCRF was fitted on: column 'q' of the X used to fit is"
    refuses(ValueError, message, LinearCRF().fit(frames, Y).predict, other)


@pytest.mark.parametrize(
    "parameters",
    [
        *({}, {"reg_alpha": 0.5}, {"transition_attributes": True}, {"class_weight": {"only": 3}}),
        *({"order": 0}, {"order": 2}, {"order": 2, "transition_attributes": True}),
        {"order": 3, "class_weight": {"only": 3}},
    ],
)
def test_one_label_alone_is_predicted_with_certainty(parameters):
    same = [["only"] * len(labels) for labels in Y]
    crf = LinearCRF(**parameters).fit(X, same, eval_set=(X, same))
    assert crf.loss_ == 0
    assert [labels.tolist() for labels in crf.predict(X)] == same
    np.testing.assert_array_equal(crf.log_likelihood(X, same), 0)
    np.testing.assert_array_equal(crf.predict_proba(X), 1)
    assert [len(found) for found in crf.predict_k_best(X, 3)] == [1] * len(X)
    assert crf.sample(X, 2)[0].tolist() == [same[0]] * 2


def test_a_single_position():
    crf = LinearCRF().fit([[{"word": "x"}]], [["a"]])
    assert crf.predict([[{"word": "y"}, {}]])[0].tolist() == ["a", "a"]


def test_unknown_labels(fitted):
    wrong = [*Y[:2], ["z", *Y[2][1:]], *Y[3:]]
    message = "unknown label 'z' at y[2][0]; known labels: 'a', 'b', 'c'"
    refuses(ValueError, message, fitted.score, X, wrong)
    refuses(ValueError, message, fitted.log_likelihood, X, wrong)
    refuses(ValueError, message, LinearCRF().fit, X, Y, eval_set=(X, wrong))
    numbers = [[0] * len(labels) for labels in Y]
    refuses(ValueError, "unknown label 0 at y[0][0]", fitted.score, X, numbers)


@pytest.mark.parametrize("decode", ["Viterbi", "posterior", 0])
def test_bad_decode(fitted, decode):
    message = f"decode is {decode!r}; expected 'viterbi', 'marginal' or None"
    refuses(ValueError, message, fitted.predict, X, decode=decode)


@pytest.mark.parametrize(
    ("eval_set", "message"),
    [
        ((X,), "eval_set must be (X, y), or (X, y, groups) for a flat X"),
        ((X, Y, None, None), "eval_set must be (X, y), or (X, y, groups) for a flat X"),
        (5, "eval_set must be (X, y), or (X, y, groups) for a flat X"),
        ({"X": X, "y": Y}, "eval_set must be (X, y), or (X, y, groups) for a flat X"),
        ((X, Y[:-1]), "y has 7 sequences but X has 8"),
        ((DICTS, Y), "X holds dicts or attribute strings, but LinearCRF was fitted on 3 columns"),
        (([x[:, :2] for x in X], Y), "X has 2 features, but LinearCRF is expecting 3 features"),
        (([], []), "X is empty; expected at least one sequence"),
    ],
)
def test_bad_eval_set(eval_set, message):
    refuses(ValueError, message, LinearCRF().fit, X, Y, eval_set=eval_set)


def test_bad_init(fitted):
    message = "init is of type dict; expected a fitted LinearCRF"
    refuses(TypeError, message, LinearCRF().fit, X, Y, init={})
    message = "this LinearCRF is not fitted yet"
    refuses(NotFittedError, message, LinearCRF().fit, X, Y, init=LinearCRF())


def test_a_refused_fit_leaves_the_model_as_it_was():
    crf = LinearCRF().fit(X, Y)
    before = crf.predict_proba(X)
    kept = crf.loss_, crf.n_iter_, crf.history_, crf.n_weights_, crf.attributes_
    bad, y = spoil(np.nan)
    for given in ((bad, y), (X, Y[:-1]), (DICTS, [[1]])):
        with pytest.raises(ValueError, match=r"^(X|y)"):
            crf.fit(*given)
    crf.reg_lambda = -1
    with pytest.raises(ValueError, match="reg_lambda"):
        crf.fit(X, Y)
    assert (crf.loss_, crf.n_iter_, crf.history_, crf.n_weights_, crf.attributes_) == kept
    np.testing.assert_array_equal(crf.predict_proba(X), before)


def test_the_data_handed_in_stay_as_they_are():
    rows, labels, weight = ROWS.copy(), LABELS.copy(), np.ones(1)
    crf = LinearCRF(class_weight="balanced").fit(rows, labels, weight)
    crf.predict_proba(rows)
    np.testing.assert_array_equal(rows, ROWS)
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(weight, 1)
