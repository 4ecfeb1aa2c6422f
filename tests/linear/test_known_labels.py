"""Labels known beforehand come out as they went in; the others are chosen in their light."""

import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hedgerow import LinearCRF
from reference.automata import draw_labels
from reference.linear import NaiveModel, hide, make_data, make_legal_data, to_dicts

X, Y = make_data(n_sequences=10, seed=4)
ROWS = np.concatenate(X)
GROUPS = np.repeat(np.arange(len(X)), list(map(len, X)))
KINDS = {
    "order 1": {},
    "order 0": {"order": 0},
    "order 2": {"order": 2},
    "edges": {"transition_attributes": True},
    "order 2 and edges": {"order": 2, "transition_attributes": True},
    "constraints": {"forbidden": [("b", "b")], "end_labels": ["b", "c"]},
    "order 2 and constraints": {"order": 2, "forbidden": [("b", "b")], "end_labels": ["b", "c"]},
}
by_kind = pytest.mark.parametrize("kind", KINDS)


def is_legal(kind, labels):
    pairs = KINDS[kind].get("forbidden", [])
    ends = KINDS[kind].get("end_labels", "abc")
    return labels[-1] in ends and not any(pair in pairs for pair in itertools.pairwise(labels))


@pytest.fixture(scope="module")
def models():
    data = {
        kind: make_legal_data(lambda labels, kind=kind: is_legal(kind, labels), "abc")
        for kind in KINDS
    }
    return {kind: LinearCRF(**KINDS[kind]).fit(*data[kind]) for kind in KINDS}


def known_labels(crf, share):
    """Some labels of labellings that are drawn at random, so that they are possible."""
    (*drawn,) = crf.sample(X, random_state=2)
    return hide([labels[0].tolist() for labels in drawn], share=share, seed=1)


def assert_known(labels, known):
    """Labels are what is known, where something is."""
    assert len(labels) == len(known)
    assert all(given in (None, label) for label, given in zip(labels, known, strict=True))


def assert_one_hot(probs, expected):
    """All but one are exactly zero."""
    np.testing.assert_array_equal(probs[~expected], 0)
    np.testing.assert_allclose(probs[expected], 1, rtol=1e-12)


@by_kind
@pytest.mark.parametrize("share", [0.2, 0.7])
def test_known_labels_come_out_as_they_went_in(models, kind, share):
    crf = models[kind]
    known = known_labels(crf, share)
    answers = zip(
        known,
        crf.predict(X, known=known),
        crf.predict(X, known=known, decode="marginal"),
        crf.sample(X, 5, random_state=0, known=known),
        crf.predict_k_best(X, 5, known=known),
        crf.predict_marginals(X, known=known),
        strict=True,
    )
    for given, viterbi, marginal, sampled, k_best, marginals in answers:
        for labels in (viterbi, marginal, *sampled, *(labels for labels, _ in k_best)):
            assert_known(labels.tolist(), given)
            assert is_legal(kind, labels.tolist())
        for probs, label in zip(marginals, given, strict=True):
            if label is not None:
                assert_one_hot(probs, crf.classes_ == label)
    np.testing.assert_array_equal(
        crf.predict_proba(X, known=known), np.concatenate(crf.predict_marginals(X, known=known))
    )


@by_kind
def test_answers_equal_enumeration_of_what_is_left(models, kind):
    crf, naive = models[kind], NaiveModel(models[kind])
    known = known_labels(crf, 0.6)
    uniforms = np.random.RandomState(5).random_sample((3, len(ROWS)))
    answers = zip(
        to_dicts(X),
        known,
        crf.predict(X, known=known),
        crf.predict_marginals(X, known=known),
        crf.predict_pattern_marginals(X, known=known),
        crf.predict_k_best(X, 300, known=known),
        crf.sample(X, 3, random_state=5, known=known),
        strict=True,
    )
    for s, (positions, given, best, marginals, patterns, k_best, drawn) in enumerate(answers):
        expected, ranked = naive.enumerate(positions, given), naive.best(positions, given)
        assert best.tolist() == ranked[0][0]
        np.testing.assert_allclose(marginals, expected.marginals, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(patterns, expected.pattern_marginals, rtol=1e-9, atol=1e-14)
        assert [labels.tolist() for labels, _ in k_best] == [labels for labels, _ in ranked]
        np.testing.assert_allclose(
            [log_prob for _, log_prob in k_best],
            [log_prob for _, log_prob in ranked],
            rtol=1e-9,
            atol=1e-12,
        )
        chain = naive.chain(positions, given)
        codes = [draw_labels(chain, row) for row in uniforms[:, s == GROUPS]]
        np.testing.assert_array_equal(drawn, crf.classes_[codes])


@by_kind
def test_log_probabilities_are_conditional_on_what_is_known(models, kind):
    crf = models[kind]
    known = known_labels(crf, 0.6)
    log_prob = crf.log_likelihood(X, known)
    best = [found[0] for found in crf.predict_k_best(X, 1, known=known)]
    joint = crf.log_likelihood(X, [labels for labels, _ in best])
    np.testing.assert_allclose(
        [conditional for _, conditional in best], joint - log_prob, rtol=1e-8, atol=1e-11
    )


@by_kind
def test_nothing_known_is_as_if_nothing_were_said(models, kind):
    crf = models[kind]
    nothing = [[None] * len(x) for x in X]
    for method, options in (
        ("predict", {}),
        ("predict", {"decode": "marginal"}),
        ("predict_marginals", {}),
        ("predict_pattern_marginals", {}),
        ("sample", {"random_state": 0, "n": 2}),
    ):
        answer = getattr(crf, method)
        for one, two in zip(answer(X, **options), answer(X, known=nothing, **options), strict=True):
            np.testing.assert_array_equal(one, two)
    for one, two in zip(
        itertools.chain(*crf.predict_k_best(X, 3)),
        itertools.chain(*crf.predict_k_best(X, 3, known=nothing)),
        strict=True,
    ):
        assert (one[0].tolist(), one[1]) == (two[0].tolist(), two[1])


@by_kind
def test_everything_known_leaves_nothing_to_find(models, kind):
    crf = models[kind]
    (*drawn,) = crf.sample(X, random_state=2)
    known = [labels[0].tolist() for labels in drawn]
    for decode in ("viterbi", "marginal"):
        found = crf.predict(X, known=known, decode=decode)
        assert [labels.tolist() for labels in found] == known
    one_hot = np.concatenate(known)[:, None] == crf.classes_
    assert_one_hot(crf.predict_proba(X, known=known), one_hot)
    for labels, found in zip(known, crf.predict_k_best(X, 3, known=known), strict=True):
        assert [same.tolist() for same, _ in found] == [labels]
        assert found[0][1] == pytest.approx(0, abs=1e-12)
    (*sampled,) = crf.sample(X, 2, known=known)
    assert [labels.tolist() for labels in sampled] == [[labels] * 2 for labels in known]


def test_known_labels_may_be_as_unlikely_as_they_like():
    # What is known wins against any weight.
    items = [[{"n": 1e6}, {"n": -1e6}], [{"n": -1e6}]]
    crf = LinearCRF(reg_lambda=1e-9).fit(items, [["p", "m"], ["m"]])
    wrong = [["m", "p"], ["p"]]
    assert [labels.tolist() for labels in crf.predict(items, known=wrong)] == wrong
    np.testing.assert_array_equal(crf.predict_proba(items, known=wrong), [[1, 0], [0, 1], [0, 1]])


def test_what_is_known_changes_what_is_found_beside_it():
    y = [["a", "b"] * 4, ["c", "d"] * 4]
    crf = LinearCRF(reg_lambda=0.01).fit([[{}] * 8] * 2, y)
    for labels in y:
        for t in (0, 5, 7):
            known = [None] * 8
            known[t] = labels[t]
            assert crf.predict([[{}] * 8], known=[known])[0].tolist() == labels


@pytest.mark.parametrize(
    "form",
    [
        lambda labels: np.array(labels, dtype=object),
        lambda labels: pd.Series(labels, dtype="string"),
        lambda labels: pd.Series(labels, dtype="category"),
        lambda labels: pl.Series(labels),
        tuple,
    ],
    ids=["array", "pandas", "categories", "polars", "tuple"],
)
def test_forms_of_known_labels(models, form):
    crf = models["order 2"]
    known = hide(Y)
    expected = crf.predict_proba(X, known=known)
    np.testing.assert_array_equal(crf.predict_proba(X, known=list(map(form, known))), expected)
    flat = form([label for labels in known for label in labels])
    found = crf.predict_proba(ROWS, groups=GROUPS, known=flat)
    np.testing.assert_array_equal(found, expected)


def test_a_flat_x_and_its_known_labels(models):
    crf = models["order 2"]
    known = hide(Y)
    flat = [label for labels in known for label in labels]
    found = crf.predict(ROWS, groups=GROUPS, known=flat)
    np.testing.assert_array_equal(found, np.concatenate(crf.predict(X, known=known)))
    assert_known(found.tolist(), flat)
    drawn = crf.sample(ROWS, 2, groups=GROUPS, known=flat, random_state=0)
    np.testing.assert_array_equal(drawn, np.hstack(crf.sample(X, 2, known=known, random_state=0)))
    one = crf.predict(X[0], known=known[0])
    np.testing.assert_array_equal(one, crf.predict(X[:1], known=known[:1])[0])


def test_integers_and_a_missing_label_of_their_own():
    numbers = [["abc".index(label) for label in labels] for labels in Y]
    crf = LinearCRF(order=2, missing_label=-1).fit(X, hide(numbers, -1))
    assert crf.classes_.tolist() == [0, 1, 2]
    expected = crf.predict_proba(X, known=hide(numbers))
    np.testing.assert_array_equal(crf.predict_proba(X, known=hide(numbers, -1)), expected)
    with_nan = [np.array(labels, dtype=float) for labels in hide(numbers, np.nan)]
    np.testing.assert_array_equal(crf.predict_proba(X, known=with_nan), expected)
    plain = LinearCRF().fit(X, numbers)
    with pytest.raises(
        ValueError, match=r"unknown label -1 at known\[0\]\[2\]; known labels: 0, 1"
    ):
        plain.predict(X, known=[[0, 1, -1, None, None], *hide(numbers)[1:]])


# What is refused.


@pytest.mark.parametrize(
    ("known", "message", "error"),
    [
        (5, "known is of type int; X is a list of sequences, so known is a list with", TypeError),
        ("abc", "known is of type str; X is a list of sequences, so known is a list", TypeError),
        (["a", None], "known is flat, known[0] is 'a', but X is not; X is a list of", ValueError),
        ([["a"]], "known has 1 sequences but X has 2; pass one list of labels", ValueError),
        ([["a"], [None] * 2], "known[0] has 1 labels but X[0] has 3 positions", ValueError),
        ([[None] * 3, [None, "z"]], "unknown label 'z' at known[1][1]; known labels:", ValueError),
        ([[None] * 3, [None, 1]], "unknown label 1 at known[1][1]; known labels: 'a'", ValueError),
        (
            [[None, "a", 1], ["a"] * 2],
            "known mixes kinds of labels: known[0][1] is 'a'",
            ValueError,
        ),
        ([[None, 0.5, "a"], ["a"] * 2], "known[0][1] is the float 0.5; labels are", ValueError),
        ([None, ["a", None]], "known is flat, known[0] is None, but X is not", ValueError),
    ],
)
def test_known_labels_that_do_not_fit(models, known, message, error):
    crf = models["order 1"]
    x = [np.ones((3, 3)), np.ones((2, 3))]
    for ask in (
        crf.predict,
        crf.predict_marginals,
        crf.predict_proba,
        crf.predict_pattern_marginals,
        crf.sample,
        lambda x, known: crf.predict_k_best(x, 2, known=known),
        lambda x, known: crf.predict(x, decode="marginal", known=known),
    ):
        with pytest.raises(error, match=re.escape(message)):
            ask(x, known=known)


def test_flat_known_labels_that_do_not_fit(models):
    crf = models["order 1"]
    for known, message in (
        (["a", None], "known has 2 labels but X has 3 rows; pass one label for every row"),
        ([["a"], None, None], "known[0] is a list, not a label; X is flat, so known is 1-D"),
        (["a", None, "z"], "unknown label 'z' at known[2]; known labels: 'a', 'b', 'c'"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            crf.predict(np.ones((3, 3)), known=known)


@pytest.mark.parametrize("kind", ["constraints", "order 2 and constraints"])
@pytest.mark.parametrize(
    ("known", "message"),
    [
        (
            [[None] * 2, ["c", "b", "b"]],
            "known[1][2] is 'b' after 'b', which the parameter forbidden forbids; correct the",
        ),
        (
            [[None, "a"], [None] * 3],
            "known[0][1] is 'a' at the end of a sequence, which the parameter end_labels forbids",
        ),
    ],
)
def test_known_labels_that_break_a_rule(models, kind, known, message):
    crf = models[kind]
    x = [np.ones((2, 3)), np.ones((3, 3))]
    for ask in (
        crf.predict,
        crf.predict_marginals,
        crf.predict_pattern_marginals,
        crf.sample,
        lambda x, known: crf.predict_k_best(x, 2, known=known),
        lambda x, known: crf.predict(x, decode="marginal", known=known),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            ask(x, known=known)


@pytest.mark.parametrize("order", [1, 2])
def test_known_labels_that_leave_no_path(order):
    rules = {"allowed": [("a", "b"), ("b", "c"), ("c", "a")]}
    x = np.ones((4, 1))
    crf = LinearCRF(order=order, **rules).fit([x], [list("abca")])
    assert crf.predict([x], known=[["a", None, None, "a"]])[0].tolist() == list("abca")
    message = (
        "no labelling of the sequence up to known[0][3] has the labels given there and keeps to "
        "the parameter allowed; correct the labels or relax the constraints"
    )
    for ask in (crf.predict, crf.predict_marginals, crf.sample):
        with pytest.raises(ValueError, match=re.escape(message)):
            ask([x], known=[["a", None, None, "b"]])
    with pytest.raises(ValueError, match=re.escape(message.replace("[0][3]", "[3]"))):
        crf.predict(x, known=["a", None, None, "b"])
