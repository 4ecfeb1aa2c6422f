"""Constraints: forbidden labels are never predicted, and are refused in training."""

import itertools
from collections import Counter
from functools import cache

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from reference.estimators import ESTIMATORS, every_prediction, refuses, small
from reference.fitted_model import assert_enumerated, read_model
from reference.linear import keeps_rules, keeps_scheme, make_data, make_legal_data

LETTERS = ("a", "b", "c")
RING = [("a", "b"), ("b", "b"), ("b", "c"), ("c", "a"), ("a", "a")]


SCHEMES = {
    "BIO": ("B-X", "B-Y", "I-X", "I-Y", "O"),
    "IOB1": ("B-X", "I-X", "I-Y", "O"),
    "BILOU": ("B-X", "I-X", "L-X", "O", "U-X", "U-Y"),
    "BIOES": ("B-X", "E-X", "I-X", "O", "S-X", "S-Y"),
}
RULES = {
    "allowed": {"allowed": RING},
    "forbidden": {"forbidden": [("a", "a"), ("b", "c"), ("c", "c")]},
    "start": {"start_labels": ["b"]},
    "end": {"end_labels": ["a", "c"]},
    "all": {
        "allowed": RING,
        "forbidden": [("a", "a")],
        "start_labels": ["a"],
        "end_labels": ["b", "c"],
    },
}
# Of each kind of constraints: parameters, labels, and which labellings are legal.
KINDS = {
    **{
        scheme: ({"constraints": scheme}, classes, lambda labels, s=scheme: keeps_scheme(s, labels))
        for scheme, classes in SCHEMES.items()
    },
    **{
        name: (rules, LETTERS, lambda labels, rules=rules: keeps_rules(labels, **rules))
        for name, rules in RULES.items()
    },
    "BIO and more": (
        {"constraints": "BIO", "forbidden": [("O", "O")], "end_labels": ["O", "I-X"]},
        SCHEMES["BIO"],
        lambda labels: (
            keeps_scheme("BIO", labels)
            and keeps_rules(labels, forbidden=[("O", "O")], end_labels=["O", "I-X"])
        ),
    ),
}
MODELS = {
    "order 1": {},
    "order 0": {"order": 0},
    "order 2": {"order": 2},
    "class_weight": {"class_weight": "balanced"},
}
OWN = {
    LinearCRF: {
        "edges": {"transition_attributes": True},
        "order 2 and edges": {"order": 2, "transition_attributes": True},
        "attributes on patterns": {"order": 3, "pattern_attributes": True},
    },
    TreeCRF: {"order 3": {"order": 3}},
}
# One step without penalties goes far, and to nowhere in particular.
FAR = {
    LinearCRF: {"reg_lambda": 1e-6, "max_iter": 4, "all_pairs": True},
    TreeCRF: {"reg_lambda": 1e-6, "trim": 0},
}
ALL_MODELS = [(each, model) for each in ESTIMATORS for model in (*MODELS, *OWN[each])]
by_model = pytest.mark.parametrize(("estimator", "model"), ALL_MODELS)
# All constraints with an automaton, and all models with two kinds of constraints.
by_both = pytest.mark.parametrize(
    ("kind", "estimator", "model"),
    [
        *((kind, LinearCRF, "order 2") for kind in KINDS),
        *(("BIO", *each) for each in ALL_MODELS if each != (LinearCRF, "order 2")),
        *(("all", *each) for each in ALL_MODELS if each != (LinearCRF, "order 2")),
    ],
)


@cache
def draw_legal(kind):
    """Labels that are drawn at random, so that no model knows much about them."""
    _, classes, legal = KINDS[kind]
    X, y = make_legal_data(legal, classes, longest=4)
    assert set(itertools.chain(*y)) == set(classes)
    return X, y


@cache
def train(estimator, kind, model, **more):
    """A model and its data."""
    parameters = FAR[estimator] | KINDS[kind][0] | (MODELS | OWN[estimator])[model] | more
    return small(estimator, **parameters).fit(*draw_legal(kind)), *draw_legal(kind)


def new_data(n_sequences=12):
    """Longer and other sequences than those of training."""
    rng = np.random.default_rng(7)
    return [rng.normal(size=(length, 3)) for length in rng.integers(3, 12, n_sequences)]


@by_both
def test_only_legal_labellings_come_out(kind, estimator, model):
    legal = KINDS[kind][2]
    crf = train(estimator, kind, model)[0]
    X = new_data()
    found = [
        *crf.predict(X),
        *crf.predict(X, decode="marginal"),
        *itertools.chain(*crf.sample(X, 10, random_state=0)),
        *(labels for ranked in crf.predict_k_best(X, 10) for labels, _ in ranked),
    ]
    assert all(legal(labels.tolist()) for labels in found)
    assert len({tuple(labels.tolist()) for labels in found}) > 50


@by_both
def test_answers_equal_enumeration_of_what_is_legal(kind, estimator, model):
    crf, X, y = train(estimator, kind, model)
    naive, legal = read_model(crf, X), KINDS[kind][2]
    expected = list(map(naive.log_likelihood, X[:4], y[:4]))
    np.testing.assert_allclose(crf.log_likelihood(X[:4], y[:4]), expected, rtol=1e-8, atol=1e-12)
    assert_enumerated(crf, naive, X[:2])
    every = list(itertools.product(naive.classes, repeat=3))
    found = crf.log_likelihood([X[0][:3]] * len(every), every)
    assert [value > -np.inf for value in found] == [bool(legal(labels)) for labels in every]
    assert np.exp(found).sum() == pytest.approx(1, rel=1e-9)
    (k_best,) = crf.predict_k_best([X[0][:3]], 2000)
    assert {tuple(labels.tolist()) for labels, _ in k_best} == set(filter(legal, every))
    assert sum(np.exp(log_prob) for _, log_prob in k_best) == pytest.approx(1, rel=1e-9)
    assert len(k_best) < len(every)


@pytest.mark.parametrize(
    ("kind", "model"),
    [*((kind, "order 2") for kind in KINDS), ("BIO", "order 1"), ("all", "class_weight")],
)
def test_training_normalises_over_what_is_legal(kind, model):
    crf, X, y = train(LinearCRF, kind, model, max_iter=12)
    naive, weights = read_model(crf, X), [None] * len(X)
    if model == "class_weight":
        counts = Counter(itertools.chain(*y))
        share = counts.total() / len(counts)
        weights = [[share / counts[label] for label in labels] for labels in y]
    likelihood = sum(map(naive.log_likelihood, X, y, weights))
    assert crf.loss_ == pytest.approx(naive.penalty(1e-6, 0) - likelihood, rel=1e-8)


@pytest.mark.parametrize(
    ("kind", "order"), [*((kind, 1) for kind in KINDS), *(("BIO", order) for order in (0, 2, 3))]
)
def test_boosting_normalises_over_what_is_legal(kind, order):
    crf, X, y = train(TreeCRF, kind, "order 1", order=order)
    likelihood = sum(map(read_model(crf, X).log_likelihood, X, y))
    assert crf.loss_ == pytest.approx(-likelihood / sum(map(len, y)), rel=1e-8)
    assert (np.diff(crf.history_["loss"]) <= 0).all()


def test_what_is_forced_costs_nothing(make):
    # Of two labels that take turns, and the first given, there is nothing to learn.
    turns = {"allowed": [("a", "b"), ("b", "a")], "start_labels": "a"}
    X, y = [np.ones((5, 1)), np.ones((2, 1))], [list("ababa"), list("ab")]
    crf = make(**turns).fit(X, y)
    assert crf.loss_ == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(crf.log_likelihood(X, y), 0, atol=1e-12)
    assert [labels.tolist() for labels in crf.predict(X)] == y
    assert [len(found) for found in crf.predict_k_best(X, 5)] == [1, 1]


@by_model
def test_marginal_decoding_finds_the_legal_labelling_of_the_largest_sum(estimator, model):
    for kind in ("BIO", "all"):
        crf, X, _ = train(estimator, kind, model)
        legal = KINDS[kind][2]
        for x, labels in zip(X, crf.predict(X, decode="marginal"), strict=True):
            marginals = crf.predict_proba([x])
            sums = [
                marginals[np.arange(len(x)), np.searchsorted(crf.classes_, every)].sum()
                for every in itertools.product(crf.classes_.tolist(), repeat=len(x))
                if legal(every)
            ]
            codes = np.searchsorted(crf.classes_, labels)
            assert marginals[np.arange(len(x)), codes].sum() == pytest.approx(max(sums))


def test_pairs_that_are_forbidden_have_no_weights(make):
    X, y = make_legal_data(KINDS["forbidden"][2], LETTERS)
    crf = make(**RULES["forbidden"]).fit(X, y)
    pairs = list(itertools.product(LETTERS, repeat=2))
    expected = [pair for pair in pairs if pair not in RULES["forbidden"]["forbidden"]]
    assert crf.label_patterns_ == expected
    # Where a pattern is asked for, it has a weight that the penalty keeps at zero.
    crf = make(label_patterns=pairs, **RULES["forbidden"]).fit(X, y)
    weights = dict(zip(crf.label_patterns_, crf.patterns()["weight"], strict=True))
    assert [weights[pair] for pair in RULES["forbidden"]["forbidden"]] == [0, 0, 0]
    assert not any(
        pair in RULES["forbidden"]["forbidden"]
        for labels in crf.predict(X)
        for pair in itertools.pairwise(labels.tolist())
    )


def test_rules_that_forbid_nothing_change_nothing(make):
    X, y = make_data(seed=4)
    plain = make().fit(X, y)
    for rules in (
        {"forbidden": []},
        {"allowed": list(itertools.product(LETTERS, repeat=2))},
        {"start_labels": LETTERS, "end_labels": set(LETTERS)},
    ):
        crf = make(**rules).fit(X, y)
        assert crf.loss_ == pytest.approx(plain.loss_, rel=1e-12)
        np.testing.assert_allclose(crf.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
        for decode in ("viterbi", "marginal"):
            found, same = (np.concatenate(one.predict(X, decode=decode)) for one in (crf, plain))
            np.testing.assert_array_equal(found, same)


# What is refused.


X3, GOOD = [np.ones((3, 1)), np.zeros((2, 1))], [["O", "B-X", "I-X"], ["O", "O"]]
RELAX = "; correct the labels or relax the constraints"


def test_training_labels_that_break_a_rule(make):
    crf, y = make(constraints="BIO"), [["O", "O", "O"], ["O", "I-X"]]
    message = "is 'I-X' after 'O', which constraints='BIO' forbids" + RELAX
    refuses(ValueError, f"y[1][1] {message}", crf.fit, X3, y)
    rows, labels = np.concatenate(X3), np.concatenate(y)
    refuses(ValueError, f"y[4] {message}", crf.fit, rows, labels, groups=[0, 0, 0, 1, 1])


def test_an_eval_set_that_breaks_a_rule(make):
    bad = [["O", "I-X", "O"], ["O", "O"]]
    message = "in eval_set: y[0][1] is 'I-X' after 'O', which constraints='BIO' forbids" + RELAX
    refuses(ValueError, message, make(constraints="BIO").fit, X3, GOOD, eval_set=(X3, bad))
    crf = make(forbidden=[("O", "B-X"), ("I-X", "I-X")], constraints="BIO")
    good, bad = [["B-X", "I-X", "O"], ["O", "O"]], [["O", None, "I-X"], ["O", "O"]]
    message = (
        "in eval_set: the sequence up to y[0][2] cannot be labelled: no labels that agree with the "
        "known ones satisfy constraints='BIO'"
    )
    refuses(ValueError, message, crf.fit, X3, good, eval_set=(X3, bad))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_sequences_that_no_labelling_fits(make, order):
    crf = make(start_labels="B-X", end_labels=["O"], order=order)
    crf.fit(X3, [["B-X", "I-X", "O"], ["B-X", "O"]])
    X = [*X3, np.ones((1, 1)), np.ones((2, 1))]
    y = [[None] * len(x) for x in X]
    message = "X[2], of length 1, cannot be labelled: no labels of position 0 satisfy"
    for method in every_prediction(crf):
        refuses(ValueError, message, method, X)
    for method in (crf.log_likelihood, crf.score):
        refuses(ValueError, message, method, X, [*y[:2], ["O"], y[3]])
    refuses(ValueError, message, crf.log_likelihood, X, y)
    with pytest.raises(ValueError, match=r"up to known\[2\].* cannot be labelled"):
        crf.predict(X, known=y)
    message, groups = "sequence 2, of length 1, cannot be labelled: ", [0, 0, 0, 1, 1, 2, 3, 3]
    refuses(ValueError, message, crf.predict, np.concatenate(X), groups=groups)
    assert [len(labels) for labels in crf.predict([*X[:2], X[3]])] == [3, 2, 2]


def test_where_constraints_leave_one_labelling_there_is_nothing_to_learn(make):
    # The loss is zero, and its slopes are rounding errors: no reason for a warning.
    X, y = [[[-1.28], [0.531], [-1.197]], [[-2.162]]], [["a", "b", "a"], ["a"]]
    rules = {"forbidden": [("a", "a"), ("b", "b")], "start_labels": ["a"]}
    assert make(order=0, class_weight="balanced", **rules).fit(X, y).loss_ == 0
