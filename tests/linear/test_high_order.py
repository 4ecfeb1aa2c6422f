"""Label patterns of any order: which there are, and that every answer takes them into account."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from hedgerow import LinearCRF
from hedgerow.linear.loss import LinearLoss
from hedgerow.objectives import Likelihood
from hedgerow.trellis import AutomatonChain, Chain
from reference.automata import draw_labels
from reference.linear import NaiveModel, hide, make_data, to_dicts

X, Y = make_data(n_sequences=10, seed=4)
GROUPS = np.repeat(np.arange(len(X)), list(map(len, X)))
ROWS = np.concatenate(X)
PAIRS = list(itertools.product("abc", repeat=2))
KINDS = {
    "order 0": {"order": 0},
    "order 1": {},
    "order 2": {"order": 2},
    "order 3": {"order": 3, "reg_lambda": 0.1},
    "order 9": {"order": 9},
    "some patterns": {"label_patterns": [("a", "b"), ("b", "b", "b"), ("a", "c", "a", "b")]},
    "rare patterns left out": {"order": 3, "min_pattern_count": 2},
    "pairs that occur": {"min_pattern_count": 1},
    "edges": {"order": 2, "transition_attributes": True},
    "class_weight": {"order": 2, "class_weight": {"a": 3.0, "b": 0.5}},
    "constraints": {"order": 2, "forbidden": [("b", "a")], "start_labels": list("abc")},
}
by_kind = pytest.mark.parametrize("kind", KINDS)


def permitted(kind):
    """Training data that keep to the constraints."""
    pairs = KINDS[kind].get("forbidden", [])
    legal = [not any(pair in pairs for pair in itertools.pairwise(labels)) for labels in Y]
    return list(itertools.compress(X, legal)), list(itertools.compress(Y, legal))


@pytest.fixture(scope="module")
def models():
    return {kind: LinearCRF(**KINDS[kind]).fit(*permitted(kind)) for kind in KINDS}


def loss_of(crf, X, y):
    """The loss that `fit` minimises, and its layout."""
    data, rows = crf._read_training(X, y, None, None, Likelihood())
    layout = crf._layout(data, rows)
    loss = LinearLoss(rows, data.targets, layout, reg_lambda=crf.reg_lambda, n_threads=1)
    return loss.of(Likelihood()), layout


# Which patterns there are.


def count_patterns(y, order):
    """How often every pattern of two to order + 1 labels occurs."""
    return Counter(
        tuple(labels[t : t + n])
        for labels in y
        for n in range(2, order + 2)
        for t in range(len(labels) - n + 1)
    )


@pytest.mark.parametrize("order", [0, 2, 3, 4, 100])
@pytest.mark.parametrize("min_pattern_count", [0, 1, 2, 4])
def test_patterns_that_occur_often_enough(order, min_pattern_count):
    crf = LinearCRF(order=order, min_pattern_count=min_pattern_count, max_iter=1, tol=0).fit(X, Y)
    counts = count_patterns(Y, order)
    kept = [pattern for pattern, n in counts.items() if n >= max(1, min_pattern_count)]
    assert crf.label_patterns_ == sorted(kept, key=lambda pattern: (len(pattern), pattern))
    assert crf.n_weights_ == 3 * 3 + 3 + len(kept)


def test_order_1_has_all_pairs_unless_only_some_are_asked_for():
    y = [["a", "b", "c"], ["a", "b"]]
    items = [[{}] * 3, [{}] * 2]
    assert LinearCRF().fit(items, y).label_patterns_ == PAIRS
    seen = LinearCRF(min_pattern_count=1).fit(items, y)
    assert seen.label_patterns_ == [("a", "b"), ("b", "c")]
    assert LinearCRF(min_pattern_count=2).fit(items, y).label_patterns_ == [("a", "b")]
    assert LinearCRF(min_pattern_count=3).fit(items, y).label_patterns_ == []


def test_the_patterns_given_are_those_that_have_weights():
    given = [("b", "a"), ["a", "b", "c"], ("c",), ("b", "a"), np.array(["c", "c"])]
    crf = LinearCRF(label_patterns=given).fit(X, Y)
    assert crf.label_patterns_ == [("b", "a"), ("a", "b", "c"), ("c", "c")]
    assert LinearCRF(label_patterns=pd.Series(given)).fit(X, Y).loss_ == crf.loss_
    assert LinearCRF(label_patterns=[]).fit(X, Y).loss_ == LinearCRF(order=0).fit(X, Y).loss_


@pytest.mark.parametrize(
    ("names", "kind"), [([5, 7, -1], int), ([True, False], bool)], ids=["int", "bool"]
)
def test_patterns_of_labels_that_are_not_text(names, kind):
    X, y = make_data(labels=range(len(names)), seed=4)
    y = [[names[label] for label in labels] for labels in y]
    crf = LinearCRF(order=2).fit(X, y)
    assert {type(label) for pattern in crf.label_patterns_ for label in pattern} == {kind}
    again = LinearCRF(label_patterns=crf.label_patterns_).fit(X, y)
    assert again.label_patterns_ == crf.label_patterns_
    assert again.loss_ == pytest.approx(crf.loss_, rel=1e-9)
    as_array = np.array([pattern for pattern in crf.label_patterns_ if len(pattern) == 3])
    crf = LinearCRF(label_patterns=as_array).fit(X, y)
    assert crf.label_patterns_ == list(map(tuple, as_array.tolist()))


def test_the_tables_of_patterns():
    crf = LinearCRF(order=2).fit(X, Y)
    table, pairs = crf.patterns(), crf.transitions()
    assert list(table) == ["pattern", "weight"]
    assert table["pattern"].tolist() == crf.label_patterns_
    assert len(table["weight"]) == len(crf.label_patterns_)
    by_pattern = dict(zip(table["pattern"], table["weight"], strict=True))
    by_pair = dict(zip(zip(pairs["from"], pairs["to"], strict=True), pairs["weight"], strict=True))
    assert by_pair == {z: weight for z, weight in by_pattern.items() if len(z) == 2}
    before = crf.predict_proba(X)
    table["weight"][:] = 100
    np.testing.assert_array_equal(crf.predict_proba(X), before)


def test_tables_without_patterns():
    crf = LinearCRF(order=0).fit(X, Y)
    assert crf.label_patterns_ == []
    assert [len(column) for column in crf.patterns().values()] == [0, 0]
    assert [len(column) for column in crf.transitions().values()] == [0, 0, 0]
    assert [part.shape for part in crf.predict_pattern_marginals(X)] == [(len(x), 0) for x in X]


def test_sequences_too_short_for_any_pattern():
    single = [x[:1] for x in X], [labels[:1] for labels in Y]
    crf = LinearCRF(order=3).fit(*single)
    assert crf.label_patterns_ == []
    np.testing.assert_allclose(
        crf.predict_proba(X), LinearCRF(order=0).fit(*single).predict_proba(X), rtol=1e-9
    )


# What the order means.


def test_all_pairs_as_patterns_are_order_1():
    plain = LinearCRF(tol=0, max_iter=300).fit(X, Y)
    for patterns in (PAIRS, PAIRS[::-1]):
        crf = LinearCRF(tol=0, max_iter=300, label_patterns=patterns).fit(X, Y)
        assert crf.loss_ == pytest.approx(plain.loss_, rel=1e-9)
        np.testing.assert_allclose(crf.predict_proba(X), plain.predict_proba(X), atol=1e-6)
        for found, expected in zip(crf.predict(X), plain.predict(X), strict=True):
            np.testing.assert_array_equal(found, expected)
    same = LinearCRF(label_patterns=PAIRS).fit(X, Y)
    plain = LinearCRF().fit(X, Y)
    np.testing.assert_allclose(same.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(same.patterns()["weight"], plain.patterns()["weight"], rtol=1e-9)


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("class_weight", [None, {"a": 3.0}])
def test_a_pattern_of_weight_zero_changes_nothing(edges, class_weight):
    # Order 1 over an automaton, which the longer pattern asks for, and without one.
    parameters = {"transition_attributes": edges, "class_weight": class_weight, "reg_lambda": 0.5}
    plain, layout = loss_of(LinearCRF(**parameters), X, Y)
    longer, other = loss_of(LinearCRF(label_patterns=[*PAIRS, ("a", "b", "c")], **parameters), X, Y)
    assert (type(layout.trellis), type(other.trellis)) == (Chain, AutomatonChain)
    weights = np.random.default_rng(0).normal(size=sum(layout.sizes))
    (value, gradient), (same, slopes) = plain(weights), longer(np.append(weights, 0.0))
    assert same == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slopes[:-1], gradient, rtol=1e-9, atol=1e-11)


def test_order_0_is_logistic_regression():
    crf = LinearCRF(order=0, all_pairs=True, tol=1e-12).fit(X, Y)
    with_bias = np.column_stack([ROWS, np.ones(len(ROWS))])
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    peer.fit(with_bias, np.concatenate(Y))
    np.testing.assert_allclose(crf.predict_proba(X), peer.predict_proba(with_bias), atol=1e-5)


def test_without_patterns_positions_do_not_influence_each_other():
    crf = LinearCRF(order=0).fit(X, Y)
    one_by_one = crf.predict_proba([row[None] for row in ROWS])
    np.testing.assert_allclose(crf.predict_proba(X), one_by_one, rtol=1e-12)
    codes = np.searchsorted(crf.classes_, np.concatenate(Y))
    log_probs = np.log(one_by_one[np.arange(len(ROWS)), codes])
    expected = np.add.reduceat(log_probs, np.cumsum([0, *map(len, X[:-1])]))
    np.testing.assert_allclose(crf.log_likelihood(X, Y), expected, rtol=1e-10)
    both = (np.concatenate(crf.predict(X, decode=decode)) for decode in ("viterbi", "marginal"))
    np.testing.assert_array_equal(*both)


def copies(lag, n_sequences, length, seed):
    """Labels that repeat those `lag` positions before; only the first ones are told."""
    rng = np.random.default_rng(seed)
    first = [[str(label) for label in rng.choice(["x", "y"], lag)] for _ in range(n_sequences)]
    y = [(labels * length)[:length] for labels in first]
    return [[{"is": k} if t < lag else {} for t, k in enumerate(labels)] for labels in y], y


@pytest.mark.parametrize("lag", [2, 3])
def test_a_higher_order_learns_what_a_lower_one_cannot(lag):
    train, test = copies(lag, 40, 12, seed=0), copies(lag, 20, 20, seed=1)
    low, high = (LinearCRF(order=order, reg_lambda=0.01).fit(*train) for order in (lag - 1, lag))
    assert low.score(*test) < 0.9
    assert high.score(*test) == 1.0
    assert (high.log_likelihood(*test) > low.log_likelihood(*test)).all()


# Every answer, by listing all labellings.


@by_kind
def test_labellings_and_marginals_equal_enumeration(models, kind):
    crf, naive = models[kind], NaiveModel(models[kind])
    answers = zip(
        to_dicts(X),
        crf.predict(X),
        crf.predict_marginals(X),
        crf.predict_pattern_marginals(X),
        crf.predict_k_best(X, 300),
        strict=True,
    )
    for positions, best, marginals, pattern_marginals, k_best in answers:
        expected, ranked = naive.enumerate(positions), naive.best(positions)
        assert best.tolist() == ranked[0][0]
        np.testing.assert_allclose(marginals, expected.marginals, rtol=1e-9, atol=1e-14)
        assert pattern_marginals.shape == (len(positions), len(crf.label_patterns_))
        np.testing.assert_allclose(
            pattern_marginals, expected.pattern_marginals, rtol=1e-9, atol=1e-14
        )
        assert [labels.tolist() for labels, _ in k_best] == [labels for labels, _ in ranked]
        np.testing.assert_allclose(
            [log_prob for _, log_prob in k_best], [log_prob for _, log_prob in ranked], rtol=1e-9
        )


@by_kind
def test_likelihoods_equal_enumeration(models, kind):
    crf, naive = models[kind], NaiveModel(models[kind])
    for y in (Y, hide(Y), hide(Y, share=0.8, seed=1)):
        expected = list(map(naive.log_likelihood, to_dicts(X), y))
        np.testing.assert_allclose(crf.log_likelihood(X, y), expected, rtol=1e-9, atol=1e-13)


@by_kind
def test_samples_are_drawn_from_the_distribution(models, kind):
    # The same random numbers, turned into labels one position after the other by enumeration.
    crf, naive = models[kind], NaiveModel(models[kind])
    uniforms = np.random.RandomState(5).random_sample((3, len(ROWS)))
    drawn = crf.sample(X, 3, random_state=5)
    for s, (labels, positions) in enumerate(zip(drawn, to_dicts(X), strict=True)):
        chain = naive.chain(positions)
        expected = [draw_labels(chain, row) for row in uniforms[:, s == GROUPS]]
        np.testing.assert_array_equal(labels, crf.classes_[expected])


def test_samples_come_as_often_as_they_are_probable():
    crf = LinearCRF(order=2).fit(X, Y)
    (best,), (drawn,) = crf.predict_k_best(X[2:3], 300), crf.sample(X[2:3], 4000, random_state=0)
    counts = Counter(map(tuple, drawn.tolist()))
    for labels, log_prob in best[:5]:
        prob = np.exp(log_prob)
        error = np.sqrt(prob * (1 - prob) / 4000)
        assert abs(counts[tuple(labels.tolist())] / 4000 - prob) < 4 * error


def test_few_patterns_of_many_labels():
    # Pairs as rare as these are found over an automaton, not over all pairs.
    labels = "abcdefgh"
    X, y = make_data(labels=labels, longest=3, seed=3)
    patterns = [("a", "b"), ("h", "h"), ("c", "g")]
    crf = LinearCRF(label_patterns=patterns, reg_lambda=0.1, all_pairs=True).fit(X, y)
    assert isinstance(crf.model_.trellis, AutomatonChain)
    naive = NaiveModel(crf)
    expected = list(map(naive.log_likelihood, to_dicts(X), y))
    np.testing.assert_allclose(crf.log_likelihood(X, y), expected, rtol=1e-9)
    for found, positions in zip(crf.predict_pattern_marginals(X), to_dicts(X), strict=True):
        pattern_marginals = naive.enumerate(positions).pattern_marginals
        np.testing.assert_allclose(found, pattern_marginals, rtol=1e-9, atol=1e-14)


def test_what_is_asked_for_one_at_a_time_is_the_same(models):
    crf = models["order 3"]
    k_best, marginals = crf.predict_k_best(X, 4), crf.predict_pattern_marginals(X)
    for s, x in enumerate(X):
        np.testing.assert_array_equal(crf.predict_pattern_marginals([x])[0], marginals[s])
        for (labels, log_prob), (same, value) in zip(
            crf.predict_k_best([x], 4)[0], k_best[s], strict=True
        ):
            assert (labels.tolist(), log_prob) == (same.tolist(), value)


def test_fewer_labellings_than_asked_for():
    crf = LinearCRF(order=2).fit(X, Y)
    assert [len(found) for found in crf.predict_k_best(X, 10)] == [min(10, 3 ** len(x)) for x in X]
    (labels, log_prob), *others = crf.predict_k_best(X, 1)[0]
    assert others == []
    assert labels.tolist() == crf.predict(X)[0].tolist()
    assert isinstance(log_prob, float)
    assert log_prob == pytest.approx(crf.log_likelihood(X[:1], [labels])[0], rel=1e-12)


def test_a_seed_gives_the_same_samples_and_none_gives_others():
    crf = LinearCRF(order=2, reg_lambda=10).fit(X, Y)
    one, two = (np.hstack(crf.sample(X, 2, random_state=3)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = crf.sample(X, 2, random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(np.hstack(other), one)
    assert len({np.hstack(crf.sample(X, 2)).tobytes() for _ in range(5)}) > 1
    assert [part.shape for part in crf.sample(X)] == [(1, len(x)) for x in X]


# Forms, threads, copies.


@by_kind
def test_flat_answers_are_those_of_a_list(models, kind):
    crf = models[kind]
    known = hide([labels.tolist() for labels in crf.predict(X)])
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
    listed, found = (
        crf.sample(X, 4, random_state=0),
        crf.sample(ROWS, 4, random_state=0, groups=GROUPS),
    )
    assert found.shape == (4, len(ROWS))
    np.testing.assert_array_equal(found, np.hstack(listed))
    listed, found = crf.predict_k_best(X, 3), crf.predict_k_best(ROWS, 3, groups=GROUPS)
    assert len(found) == len(X)
    for one, two in zip(itertools.chain(*listed), itertools.chain(*found), strict=True):
        assert (one[0].tolist(), one[1]) == (two[0].tolist(), two[1])


MANY_X, MANY_Y = make_data(n_sequences=60, n_features=4, labels="abcd", longest=12, seed=5)


def everything(crf, X, n_samples=2):
    """All answers, as arrays."""
    k_best = crf.predict_k_best(X, 3)
    return [
        *crf.weights().values(),
        *crf.patterns().values(),
        *crf.transitions().values(),
        crf.history_["loss"],
        crf.predict_proba(X),
        np.concatenate(crf.predict(X)),
        np.concatenate(crf.predict(X, decode="marginal")),
        np.concatenate(crf.predict_pattern_marginals(X)),
        np.hstack(crf.sample(X, n_samples, random_state=1)),
        np.concatenate([labels for found in k_best for labels, _ in found]),
        [log_prob for found in k_best for _, log_prob in found],
    ]


@pytest.mark.parametrize("edges", [False, True])
def test_batches_of_scores_do_not_matter(monkeypatch, edges):
    crf = LinearCRF(order=2, transition_attributes=edges, max_iter=6, tol=0).fit(X, hide(Y))
    y = hide(Y, seed=2)

    def ask():
        known = crf.predict(X, known=y), crf.predict_marginals(X, known=y)
        samples = crf.sample(X, random_state=0, known=y)
        figures = crf.log_likelihood(X, y), crf.score(X, y)
        # One labelling at a time: of several, all would be drawn for one batch after the other.
        answers = [np.concatenate(answer) for answer in known]
        return [*answers, np.hstack(samples), *figures, *everything(crf, X, n_samples=1)]

    whole = ask()
    for place in ("linear.weights", "potentials.attribute_weights"):
        monkeypatch.setattr(f"hedgerow.{place}.BATCH_BYTES", 1)
    for found, expected in zip(ask(), whole, strict=True):
        np.testing.assert_array_equal(found, expected)
    apart = LinearCRF(order=2, transition_attributes=edges, max_iter=6, tol=0).fit(X, hide(Y))
    assert apart.loss_ == pytest.approx(crf.loss_, rel=1e-10)


# Training that starts elsewhere, and data set aside.


@pytest.mark.parametrize(("old", "new"), [(1, 2), (2, 1), (3, 2), (0, 2), (2, 0), (2, 3)])
@pytest.mark.parametrize("renamed", [False, True])
def test_a_start_from_another_order_takes_over_the_patterns_that_both_have(old, new, renamed):
    init = LinearCRF(order=old, reg_lambda=0.1).fit(X, Y)
    # "a" becomes "z", so that every label has another code.
    y = [["z" if label == "a" and renamed else label for label in labels] for labels in Y]
    crf = LinearCRF(order=new)
    data, rows = crf._read_training(X, y, None, None, Likelihood())
    layout = crf._layout(data, rows)
    start = np.zeros(sum(layout.sizes))
    loss = LinearLoss(rows, data.targets, layout, reg_lambda=1.0, n_threads=1).of(Likelihood())
    cold, _ = loss(start)
    weights = type(init._weights).from_vector(start, layout)
    init._copy_weights(data, weights)
    warm, _ = loss(start)
    assert warm < cold
    table = init.patterns()
    kept = dict(zip(table["pattern"], table["weight"].tolist(), strict=True))
    classes = data.labels.classes.tolist()
    patterns = [tuple(classes[k] for k in pattern) for pattern in layout.grammar.patterns]
    assert weights.patterns.tolist() == [kept.get(pattern, 0.0) for pattern in patterns]
    if min(old, new) and not renamed:
        assert weights.patterns.any()
    crf.fit(X, y, init=init)
    assert crf.loss_ == pytest.approx(LinearCRF(order=new).fit(X, y).loss_, rel=1e-3)


def test_a_model_at_its_minimum_stays_there():
    crf = LinearCRF(order=2, tol=0, max_iter=500).fit(X, Y)
    again = LinearCRF(order=2, tol=0, max_iter=500).fit(X, Y, init=crf)
    assert again.n_iter_ <= 2
    assert again.loss_ == pytest.approx(crf.loss_, rel=1e-12)


@pytest.mark.parametrize("partial", [False, True])
@by_kind
def test_the_eval_set_is_reported_after_each_iteration(kind, partial):
    X, y = permitted(kind)
    y = hide(y) if partial else y
    crf = LinearCRF(max_iter=10, tol=0, **KINDS[kind]).fit(*permitted(kind), eval_set=(X, y))
    n_known = sum(label is not None for labels in y for label in labels)
    expected = -crf.log_likelihood(X, y).sum() / n_known
    assert crf.history_["eval_loss"][-1] == pytest.approx(expected, rel=1e-12)
    assert crf.history_["eval_accuracy"][-1] == crf.score(X, y)
    assert len(crf.history_["eval_loss"]) == crf.n_iter_
