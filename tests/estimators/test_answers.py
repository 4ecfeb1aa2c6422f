"""All predictions of a model, against enumeration; known labels are kept."""

import itertools
from functools import partial

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from hedgerow.trellis import AutomatonChain
from reference.estimators import answers, assert_same, every_prediction, group_ids, refuses, small
from reference.fitted_model import assert_enumerated, read_model
from reference.linear import hide, keeps_rules, make_data, make_legal_data

X, Y = make_data(n_sequences=10, seed=4)
ROWS, GROUPS = np.concatenate(X), group_ids(X)
NOTHING = [[None] * len(x) for x in X]
RULES = {"forbidden": [("b", "b")], "end_labels": ["b", "c"]}
KINDS = {
    "order 0": {"order": 0},
    "order 1": {},
    "order 2": {"order": 2},
    "order 3": {"order": 3, "reg_lambda": 0.1},
    "order 9": {"order": 9},
    "some patterns": {"label_patterns": [("a", "b"), ("b", "b", "b"), ("a", "c", "a", "b")]},
    "rare patterns left out": {"order": 3, "min_pattern_count": 2},
    "pairs that occur": {"min_pattern_count": 1},
    "class_weight": {"order": 2, "class_weight": {"a": 3.0, "b": 0.5}},
    "constraints": RULES,
    "order 2 and constraints": {"order": 2, **RULES},
}
OWN = {
    LinearCRF: {
        "edges": {"transition_attributes": True},
        "edges alone": {"order": 0, "transition_attributes": True},
        "order 2 and edges": {"order": 2, "transition_attributes": True},
        "attributes on patterns": {"order": 3, "pattern_attributes": True},
        "attributes on pairs as patterns": {"pattern_attributes": "x1", "min_pattern_count": 2},
        "attributes on some patterns": {
            "label_patterns": [("a", "b"), ("b", "b", "b"), ("a", "c", "a", "b")],
            "pattern_attributes": True,
            **RULES,
        },
    },
    TreeCRF: {"window": {"order": 2, "window": 1}, "all at once": {"max_step": None, "trim": 0}},
}
# All label patterns with weights; with trees some, as what patterns do is the same.
OF_TREES = ["order 0", "order 1", "some patterns", "order 2 and constraints"]
CASES = {
    **{f"LinearCRF, {kind}": (LinearCRF, KINDS[kind]) for kind in KINDS},
    **{f"TreeCRF, {kind}": (TreeCRF, KINDS[kind]) for kind in OF_TREES},
    **{f"{each.__name__}, {kind}": (each, OWN[each][kind]) for each in OWN for kind in OWN[each]},
}
SOME = ["LinearCRF, constraints", "LinearCRF, order 2 and edges", "TreeCRF, order 0"]


def train(estimator, parameters):
    """A model, and the sequences that it was trained on."""
    xs, y = make_legal_data(partial(keeps_rules, **parameters), "abc")
    return small(estimator, **parameters).fit(xs, y), xs


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    """A model of each kind, and its slow counterpart."""
    crf, xs = train(*CASES[request.param])
    return crf, read_model(crf, xs)


@pytest.fixture(scope="module", params=[*SOME, "TreeCRF, window"])
def some(request):
    """Models of some kinds."""
    return train(*CASES[request.param])[0]


@pytest.fixture(scope="module")
def crf(make):
    return make(order=2).fit(X, Y)


def draw_known(crf, share):
    """Some labels of labellings that are drawn at random, so that they are possible."""
    drawn = crf.sample(X, random_state=2)
    return hide([labels[0].tolist() for labels in drawn], share=share, seed=1)


# By enumeration.


def test_all_answers_equal_enumeration(fitted):
    crf, model = fitted
    assert_enumerated(crf, model, X)
    for y in (Y, hide(Y), hide(Y, share=0.8, seed=1)):
        expected = list(map(model.log_likelihood, X, y))
        np.testing.assert_allclose(crf.log_likelihood(X, y), expected, rtol=1e-9, atol=1e-13)


def test_all_answers_equal_enumeration_of_what_is_left(fitted):
    crf, model = fitted
    known = draw_known(crf, 0.6)
    assert_enumerated(crf, model, X, known)
    for labels, given in zip(crf.predict(X, known=known, decode="marginal"), known, strict=True):
        assert_known(labels.tolist(), given)
        assert keeps_rules(labels.tolist(), **crf.get_params())
    marginals = np.concatenate(crf.predict_marginals(X, known=known))
    np.testing.assert_array_equal(crf.predict_proba(X, known=known), marginals)


def test_few_patterns_of_many_labels():
    # Pairs as rare as these are found over an automaton, not over all pairs.
    X, y = make_data(labels="abcdefgh", longest=3, seed=3)
    patterns = [("a", "b"), ("h", "h"), ("c", "g")]
    crf = LinearCRF(label_patterns=patterns, reg_lambda=0.1, all_pairs=True).fit(X, y)
    assert isinstance(crf.model_.trellis, AutomatonChain)
    model = read_model(crf, X)
    assert_enumerated(crf, model, X)
    expected = list(map(model.log_likelihood, X, y))
    np.testing.assert_allclose(crf.log_likelihood(X, y), expected, rtol=1e-9)


@pytest.mark.parametrize(("estimator", "parameters"), CASES.values(), ids=CASES)
def test_the_eval_set_is_measured_as_the_model_is(estimator, parameters):
    xs, y = make_legal_data(partial(keeps_rules, **parameters), "abc")
    measured = hide(y) if parameters else y
    given = y if "class_weight" in parameters else measured
    crf = small(estimator, **parameters).fit(xs, given, eval_set=(xs, measured))
    n_known = sum(label is not None for labels in measured for label in labels)
    expected = -crf.log_likelihood(xs, measured).sum() / n_known
    assert crf.history_["eval_loss"][-1] == pytest.approx(expected, rel=1e-12)
    by_marginals = crf.score(xs, measured, decode="marginal")
    assert crf.history_["eval_accuracy"][-1] == by_marginals
    assert len(crf.history_["eval_loss"]) == len(crf.history_["loss"])


# Samples, and labellings by rank.


def test_a_seed_gives_the_same_samples_and_none_gives_others(make):
    crf = make(order=2, reg_lambda=10).fit(X, Y)
    one, two = (np.hstack(crf.sample(X, 2, random_state=3)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = crf.sample(X, 2, random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(np.hstack(other), one)
    assert len({np.hstack(crf.sample(X, 2)).tobytes() for _ in range(5)}) > 1
    assert [part.shape for part in crf.sample(X)] == [(1, len(x)) for x in X]


def test_fewer_labellings_than_asked_for(crf):
    assert [len(found) for found in crf.predict_k_best(X, 10)] == [min(10, 3 ** len(x)) for x in X]
    (labels, log_prob), *others = crf.predict_k_best(X, 1)[0]
    assert others == []
    assert labels.tolist() == crf.predict(X)[0].tolist()
    assert isinstance(log_prob, float)
    assert log_prob == pytest.approx(crf.log_likelihood(X[:1], [labels])[0], rel=1e-12)


# Ways to ask.


def test_flat_answers_are_those_of_a_list(some):
    crf, known = some, draw_known(some, 0.4)
    flat = {"groups": GROUPS, "known": [label for labels in known for label in labels]}
    for method, options in (
        ("predict", {}),
        ("predict", {"decode": "marginal"}),
        ("predict_marginals", {}),
        ("predict_pattern_marginals", {}),
    ):
        answer = getattr(crf, method)
        for more, more_flat in (({}, {"groups": GROUPS}), ({"known": known}, flat)):
            listed, found = answer(X, **options, **more), answer(ROWS, **options, **more_flat)
            assert isinstance(found, np.ndarray)
            np.testing.assert_array_equal(found, np.concatenate(listed))
    drawn = crf.sample(ROWS, 4, random_state=0, **flat)
    assert drawn.shape == (4, len(ROWS))
    np.testing.assert_array_equal(drawn, np.hstack(crf.sample(X, 4, random_state=0, known=known)))
    listed, found = crf.predict_k_best(X, 3), crf.predict_k_best(ROWS, 3, groups=GROUPS)
    assert len(found) == len(X)
    for one, two in zip(itertools.chain(*listed), itertools.chain(*found), strict=True):
        assert (one[0].tolist(), one[1]) == (two[0].tolist(), two[1])
    assert_same([crf.predict(X[0], known=known[0])], crf.predict(X[:1], known=known[:1]))


SIZES = {
    LinearCRF: ["linear.weights.BATCH_BYTES"],
    TreeCRF: ["potentials.node_trees.BATCH", "potentials.node_trees.BATCH_BYTES"],
}


@pytest.mark.parametrize(
    ("estimator", "parameters", "size"),
    [
        (LinearCRF, {"class_weight": {"a": 2.0}}, 1),
        (LinearCRF, {"order": 2, "transition_attributes": True}, 1),
        (LinearCRF, {"order": 2, "pattern_attributes": True}, 1),
        *((TreeCRF, {"order": 2, "window": 2}, size) for size in (1, 7)),
    ],
)
def test_batches_of_scores_do_not_matter(monkeypatch, estimator, parameters, size):
    known, weights = hide(Y, seed=2), np.arange(1, 1 + len(X))
    y = Y if "class_weight" in parameters else hide(Y)

    def fit():
        return small(estimator, **parameters).fit(X, y, weights, eval_set=(X, known))

    crf = fit()

    def ask():
        figures = crf.log_likelihood(X, known), crf.score(X, known)
        return *figures, *answers(crf, X, 2), *answers(crf, X, 2, known=known)

    whole = ask()
    for name in SIZES[estimator]:
        monkeypatch.setattr(f"hedgerow.{name}", size)
    assert_same(ask(), whole)
    apart = fit()
    assert apart.loss_ == pytest.approx(crf.loss_, rel=1e-10)
    assert apart.history_["eval_loss"] == pytest.approx(crf.history_["eval_loss"], rel=1e-5)


# Known labels.


def assert_known(labels, known):
    """Labels are what is known, where something is."""
    assert len(labels) == len(known)
    assert all(given in (None, label) for label, given in zip(labels, known, strict=True))


def assert_one_hot(probs, expected):
    """All but one are exactly zero."""
    np.testing.assert_array_equal(probs[~expected], 0)
    np.testing.assert_allclose(probs[expected], 1, rtol=1e-12)


def test_nothing_known_is_as_if_nothing_were_said(some):
    assert_same(answers(some, X), answers(some, X, known=NOTHING))
    np.testing.assert_array_equal(some.log_likelihood(X, NOTHING), 0)


def test_everything_known_leaves_nothing_to_find(some):
    crf, known = some, draw_known(some, 0.0)
    known[2] = crf.predict(X)[2].tolist()
    for decode in ("viterbi", "marginal"):
        found = crf.predict(X, known=known, decode=decode)
        assert [labels.tolist() for labels in found] == known
    one_hot = np.concatenate(known)[:, None] == crf.classes_
    assert_one_hot(crf.predict_proba(X, known=known), one_hot)
    for labels, found in zip(known, crf.predict_k_best(X, 3, known=known), strict=True):
        assert [same.tolist() for same, _ in found] == [labels]
        assert found[0][1] == pytest.approx(0, abs=1e-12)
    sampled = crf.sample(X, 2, known=known)
    assert [labels.tolist() for labels in sampled] == [[labels] * 2 for labels in known]


def test_known_labels_may_be_as_unlikely_as_they_like():
    # What is known wins against any weight.
    items = [[{"n": 1e6}, {"n": -1e6}], [{"n": -1e6}]]
    crf = LinearCRF(reg_lambda=1e-9).fit(items, [["p", "m"], ["m"]])
    wrong = [["m", "p"], ["p"]]
    assert [labels.tolist() for labels in crf.predict(items, known=wrong)] == wrong
    np.testing.assert_array_equal(crf.predict_proba(items, known=wrong), [[1, 0], [0, 1], [0, 1]])


def test_what_is_known_changes_what_is_found_beside_it(make):
    y = [["a", "b"] * 4, ["c", "d"] * 4]
    crf = make(reg_lambda=0.01).fit([[{}] * 8] * 2, y)
    for labels in y:
        for t in (0, 5, 7):
            known = [None] * 8
            known[t] = labels[t]
            assert crf.predict([[{}] * 8], known=[known])[0].tolist() == labels


def test_integers_and_a_missing_label_of_their_own(make):
    numbers = [["abc".index(label) for label in labels] for labels in Y]
    crf = make(order=2, missing_label=-1).fit(X, hide(numbers, -1))
    assert crf.classes_.tolist() == [0, 1, 2]
    expected = crf.predict_proba(X, known=hide(numbers))
    np.testing.assert_array_equal(crf.predict_proba(X, known=hide(numbers, -1)), expected)
    with_nan = [np.array(labels, dtype=float) for labels in hide(numbers, np.nan)]
    np.testing.assert_array_equal(crf.predict_proba(X, known=with_nan), expected)
    message = "unknown label -1 at known[0][2]; known labels: 0, 1"
    known = [[0, 1, -1, None, None], *hide(numbers)[1:]]
    refuses(ValueError, message, make().fit(X, numbers).predict, X, known=known)


@pytest.mark.parametrize(
    ("known", "message", "error"),
    [
        (5, "known is of type int; X is a list of sequences, so known must be a list", TypeError),
        (["a", None], "known is flat (known[0] is 'a'), but X is not; X is a list of", ValueError),
        ([[None] * 3, [None, "z"]], "unknown label 'z' at known[1][1]; known labels:", ValueError),
        ([[None] * 3, [None, 1]], "unknown label 1 at known[1][1]; known labels: 'a'", ValueError),
        ([None, ["a", None]], "known is flat (known[0] is None), but X is not", ValueError),
    ],
)
def test_known_labels_that_do_not_fit(crf, known, message, error):
    for method in every_prediction(crf):
        refuses(error, message, method, [np.ones((3, 3)), np.ones((2, 3))], known=known)


@pytest.mark.parametrize("order", [1, 2])
def test_known_labels_that_break_a_rule(estimator, order):
    crf, _ = train(estimator, {"order": order, **RULES})
    for known, message in (
        (
            [[None] * 2, ["c", "b", "b"]],
            "known[1][2] is 'b' after 'b', which the parameter 'forbidden' forbids; correct the",
        ),
        (
            [[None, "a"], [None] * 3],
            "known[0][1] is 'a' at the end of a sequence, which the parameter 'end_labels' forbids",
        ),
    ):
        for method in every_prediction(crf):
            refuses(ValueError, message, method, [np.ones((2, 3)), np.ones((3, 3))], known=known)
