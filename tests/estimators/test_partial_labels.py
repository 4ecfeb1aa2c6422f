"""Missing labels: training and evaluation use the known ones."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from hedgerow import LinearCRF, TreeCRF
from reference.estimators import assert_same_training, group_ids, refuses, small
from reference.fitted_model import read_model
from reference.linear import hide, make_data

X, Y = make_data(n_sequences=12, seed=4)
NUMBERS = [["abc".index(label) for label in labels] for labels in Y]
ROWS, GROUPS = np.concatenate(X), group_ids(X)
PARTIAL = hide(Y)
NOTHING = [[None] * len(labels) for labels in Y]
MODELS = {
    "order 1": {},
    "order 0": {"order": 0},
    "order 2": {"order": 2},
    "edges": {"transition_attributes": True},
    "order 2 and edges": {"order": 2, "transition_attributes": True},
    "attributes on patterns": {"order": 3, "pattern_attributes": True},
    "all pairs": {"all_pairs": True, "reg_alpha": 0.1},
}


def flatten(y):
    return [label for labels in y for label in labels]


# Ways to say that a label is missing.


@pytest.mark.parametrize(
    ("y", "mark"),
    [(Y, "?"), (Y, ""), (NUMBERS, -1), (NUMBERS, 99), (NUMBERS, np.int8(-1))],
    ids=["?", "empty", "-1", "99", "int8"],
)
def test_a_missing_label_of_the_users_own(make, y, mark):
    expected = make().fit(X, hide(y))
    crf = make(missing_label=mark).fit(X, hide(y, mark))
    assert_same_training(crf, expected)
    arrays = [np.array(labels) for labels in hide(y, mark)]
    assert_same_training(make(missing_label=mark).fit(X, arrays), expected)
    # None still says the same.
    both = [hide(y)[0], *hide(y, mark)[1:]]
    assert_same_training(make(missing_label=mark).fit(X, both), expected)
    score = crf.score(X, hide(y, mark))
    assert score == expected.score(X, hide(y))
    found = crf.log_likelihood(X, hide(y, mark))
    np.testing.assert_array_equal(found, expected.log_likelihood(X, hide(y)))
    watched = make(missing_label=mark).fit(X, hide(y, mark), eval_set=(X, hide(y, mark)))
    assert watched.history_["eval_accuracy"][-1] == score


@pytest.mark.parametrize("mark", [0.5, np.nan, b"?", ["?"], pd.NA], ids=repr)
def test_bad_missing_labels(make, mark):
    message = f"missing_label is {mark!r}; expected a string, an integer or a bool, as"
    refuses(ValueError, message, make(missing_label=mark).fit, X, Y)
    crf = make().fit(X, Y).set_params(missing_label=mark)
    for ask in (crf.score, crf.log_likelihood, lambda X, y: crf.predict(X, known=y)):
        refuses(ValueError, message, ask, X, Y)
    assert len(crf.predict(X)) == len(X)


# Training.


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_loss_of_trees_is_that_of_the_known_labels(order):
    crf = small(TreeCRF, order=order, n_rounds=8).fit(X, PARTIAL)
    n_known = sum(label is not None for label in flatten(PARTIAL))
    likelihood = sum(map(read_model(crf, X).log_likelihood, X, PARTIAL))
    assert crf.loss_ == pytest.approx(-likelihood / n_known)
    assert (np.diff(crf.history_["loss"]) <= 0).all()
    assert crf.score(X, Y) > 0.55


def test_without_order_a_position_of_which_nothing_is_known_counts_for_nothing():
    rows, labels = ROWS[:, None], np.concatenate(Y)[:, None]
    hidden = np.arange(len(rows)) % 4 == 0
    y = np.where(hidden[:, None], None, labels.astype(object))
    crf = small(TreeCRF, order=0, trim=1e-9)  # their slopes are 0 up to rounding
    unknown, weighted = clone(crf).fit(rows, y), clone(crf).fit(rows, labels, ~hidden)
    assert unknown.loss_ == pytest.approx(weighted.loss_, rel=1e-9)
    np.testing.assert_allclose(unknown.predict_proba(rows), weighted.predict_proba(rows), rtol=1e-6)


@pytest.mark.parametrize("model", ["order 0", "order 2 and edges", "all pairs"])
def test_sequences_without_any_label_change_nothing(model):
    options = {"tol": 0, "max_iter": 40, **MODELS[model]}
    plain = LinearCRF(**options).fit(X, Y)
    more_x, more_y = X + X[:5], Y + [[None] * len(x) for x in X[:5]]
    crf = LinearCRF(**options).fit(more_x, more_y)
    assert crf.n_weights_ == plain.n_weights_
    assert crf.loss_ == pytest.approx(plain.loss_, rel=1e-8)
    np.testing.assert_allclose(crf.predict_proba(X), plain.predict_proba(X), atol=1e-4)
    # To the likelihood they add exactly nothing.
    np.testing.assert_array_equal(crf.log_likelihood(more_x, more_y)[len(X) :], 0)


def test_attributes_of_unlabelled_positions():
    # They are known by name, but have weights only for labels that they occur with, unless all do.
    items = [[{"p": 1}, {"q": 1}], [{"r": 1}, {"p": 1}]]
    y = [["a", None], [None, "b"]]
    crf = LinearCRF().fit(items, y)
    assert sorted(crf.attributes_) == ["p", "q", "r"]
    table = crf.weights()
    pairs = list(zip(table["attribute"], table["label"], strict=True))
    assert pairs == [("p", "a"), ("p", "b"), ("(bias)", "a"), ("(bias)", "b")]
    assert LinearCRF(all_pairs=True).fit(items, y).n_weights_ == 3 * 2 + 2 + 4
    edges = LinearCRF(transition_attributes=True).fit(items, y)
    assert len(edges.transition_weights()["weight"]) == 4
    # They count as occurrences.
    rare = [[{"p": 1}, {"q": 1}], [{"q": 1}, {"p": 1}]]
    assert sorted(LinearCRF(min_count=2).fit(rare, y).attributes_) == ["p", "q"]


# Evaluation.


def test_score_is_the_share_of_the_known_labels_that_are_right(make):
    crf = make(reg_lambda=5).fit(X, Y)
    known = np.array([label is not None for label in flatten(PARTIAL)])
    right = np.concatenate(crf.predict(X)) == np.concatenate(Y)
    assert crf.score(X, PARTIAL) == pytest.approx(right[known].mean())
    weights = np.linspace(0, 2, len(X))
    expected = np.average(right[known], weights=weights[GROUPS][known])
    assert crf.score(X, PARTIAL, weights) == pytest.approx(expected)
    assert crf.score(ROWS, flatten(PARTIAL), groups=GROUPS) == crf.score(X, PARTIAL)


# Errors.


def test_labels_that_are_all_missing(make):
    n = len(ROWS)
    message = f"y has no label at any of its {n} positions: all are missing (None); training needs"
    refuses(ValueError, message, make().fit, X, NOTHING)
    marked = [[-1] * len(labels) for labels in Y]
    refuses(ValueError, message.replace("None", "-1"), make(missing_label=-1).fit, X, marked)
    nan = np.full(n, np.nan)
    refuses(ValueError, message.replace("None", "nan"), make().fit, ROWS, nan, groups=GROUPS)
    message = "every label of y is missing; score needs at least one"
    refuses(ValueError, message, make().fit(X, Y).score, X, NOTHING)


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 2.0}, {}])
def test_class_weights_need_all_labels(make, class_weight):
    crf = make(class_weight=class_weight)
    message = "class_weight needs all labels"
    for given, y, place in (
        (X, [Y[0], *NOTHING[1:]], "[1][0] is missing (None)"),
        (ROWS[:3], ["a", "b", np.nan], "[2] is missing (nan)"),
    ):
        with pytest.raises(ValueError, match=message) as raised:
            crf.fit(given, y)
        assert place in str(raised.value)
    # Labels to measure by may be missing.
    assert crf.fit(X, Y, eval_set=(X, PARTIAL)).score(X, PARTIAL) > 0
