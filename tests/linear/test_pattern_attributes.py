"""Weights of attributes on label patterns of any length."""

import re

import numpy as np
import pytest

from hedgerow import LinearCRF, load, persist
from hedgerow.descent.warm_start import start_from
from hedgerow.labels import Grammar, Patterns
from hedgerow.labels.tables import name_patterns
from hedgerow.linear.weights import LinearWeights, WeightLayout
from hedgerow.objectives import Likelihood
from hedgerow.potentials import Potential
from hedgerow.sequences import SparseRows
from hedgerow.trellis import PairEdges, PatternEdges, build_trellis
from reference.descents import build_loss
from reference.linear import NaiveModel, fit_prefixed, make_data, to_dicts
from reference.model_files import INVALID, refuses_file, take_apart
from reference.trainings import saved

X, Y = make_data(n_sequences=12, longest=6, seed=7)
ITEMS = [[{"p": 1}, {"q": 1}, {"p": 1, "q": 2}], [{"r": 2}], [{"p": 1}, {"r": 1}]]
LABELS = [["a", "b", "b"], ["c"], ["b", "b"]]


def test_attributes_have_weights_for_the_patterns_they_occur_with():
    crf = LinearCRF(order=2, pattern_attributes=True).fit(ITEMS, LABELS)
    table = crf.patterns()
    assert list(table) == ["attribute", "pattern", "weight"]
    rows = list(zip(table["attribute"], table["pattern"], strict=True))
    a, b = "ab"
    assert rows[:3] == [("", (a, b)), ("", (b, b)), ("", (a, b, b))]
    assert rows[3:5] == [("p", (b, b)), ("p", (a, b, b))]
    # The order of equally frequent attributes is arbitrary.
    rare = sorted(rows[5:], key=lambda row: row[0])
    assert rare == [("q", (a, b)), ("q", (b, b)), ("q", (a, b, b)), ("r", (b, b))]
    pairs = crf.transition_weights()
    assert list(pairs) == ["attribute", "from", "to", "weight"]
    found = list(zip(pairs["attribute"], pairs["from"], pairs["to"], strict=True))
    assert found == [(name, *pattern) for name, pattern in rows if len(pattern) == 2]
    weights = dict(zip(rows, table["weight"], strict=True))
    assert [weights[name, (j, k)] for name, j, k in found] == pairs["weight"].tolist()
    assert crf.n_weights_ == len(crf.weights()["weight"]) + len(rows)


def test_all_pairs_gives_every_attribute_every_pattern():
    crf = LinearCRF(order=2, pattern_attributes=True, all_pairs=True).fit(ITEMS, LABELS)
    assert len(crf.patterns()["weight"]) == 3 + 3 * 3
    assert crf.loss_ < LinearCRF(order=2, all_pairs=True).fit(ITEMS, LABELS).loss_


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"all_pairs": True},
        {"reg_alpha": 0.2},
        {"objective": "accuracy", "warm_iter": 3},
        {"objective": "max_margin"},
        {"class_weight": "balanced"},
    ],
    ids=lambda more: "".join(more) or "plain",
)
@pytest.mark.parametrize("attributes", [True, "x1"])
def test_pairs_as_patterns_are_transition_attributes(more, attributes):
    options = {"max_iter": 12, "tol": 0, **more}
    pairs = LinearCRF(transition_attributes=attributes, **options).fit(X, Y)
    patterns = LinearCRF(pattern_attributes=attributes, **options).fit(X, Y)
    assert patterns.loss_ == pairs.loss_
    np.testing.assert_array_equal(patterns.predict_proba(X), pairs.predict_proba(X))
    for name, column in pairs.transition_weights().items():
        assert patterns.transition_weights()[name].tolist() == column.tolist()


@pytest.mark.parametrize("parameters", [{}, {"all_pairs": True}, {"order": 2}, {"order": 3}])
def test_attributes_with_a_prefix_have_weights_for_patterns_only(parameters):
    crf = fit_prefixed(LinearCRF(pattern_attributes="B", **parameters))
    assert set(crf.weights()["attribute"]) == {"U1", "U2", "(bias)"}
    assert set(crf.patterns()["attribute"]) == {"", "B1"}


def test_what_is_not_true_of_pairs_can_be_learnt():
    # With the attribute, the label is that of two positions before; without, it is the other one.
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(40):
        flags, labels = rng.integers(0, 2, 12), [0, 1]
        for flag in flags[2:].tolist():
            labels.append(labels[-2] if flag else 1 - labels[-2])
        X.append([{"flag": flag} for flag in flags.tolist()])
        y.append(labels)
    X_test, y_test = X[30:], [labels[:] for labels in y[30:]]
    known = [[*labels[:2], *[None] * 10] for labels in y_test]

    def share_right(**more):
        crf = LinearCRF(order=2, **more).fit(X[:30], y[:30])
        found = crf.predict(X_test, known=known, decode="viterbi")
        return np.mean(np.concatenate(found) == np.concatenate(y_test))

    assert share_right(pattern_attributes=True) == 1
    assert share_right(transition_attributes=True) < 0.9


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize(
    "old",
    [{"transition_attributes": True}, {"order": 3, "pattern_attributes": True}],
    ids=["pairs", "patterns"],
)
def test_a_start_from_another_model_takes_over_the_weights_that_both_have(old, renamed):
    init = LinearCRF(reg_lambda=0.1, **old).fit(to_dicts(X), Y)
    # The new model lacks x1, and "a" becomes "z", so that every label has another code.
    y = [["z" if label == "a" and renamed else label for label in labels] for labels in Y]
    items = [[{"x2": 1, "x0": 1}] * len(labels) for labels in Y]
    _, data, _, layout = build_loss(LinearCRF(order=2, pattern_attributes=True), items, y)
    start = start_from(init.model_, data, layout)
    found = LinearWeights.from_vector(start[: layout.n_weights], layout).edges
    naive = NaiveModel(init)
    kept = dict(naive.pattern_attributes)
    kept |= {(name, (j, k)): weight for (name, j, k), weight in naive.edge_weights.items()}
    names = name_patterns(data.grammar.patterns, data.labels.classes)
    attributes = np.array(data.index.names())[layout.patterns.attribute_of_weight()]
    keys = zip(attributes, (names[p] for p in layout.patterns.outputs), strict=True)
    assert found.tolist() == [kept.get(key, 0.0) for key in keys]
    assert found.any()


def test_batches_of_positions_do_not_matter(monkeypatch):
    crf = LinearCRF(order=2, pattern_attributes=True)
    whole, *_ = build_loss(crf, X, Y)
    monkeypatch.setattr("hedgerow.linear.weights.BATCH_BYTES", 1)
    parts, *_ = build_loss(crf, X, Y)
    assert len(parts.parts) == len(X) > len(whole.parts) == 1
    weights = np.random.default_rng(0).normal(size=whole.n_weights)
    (value, gradient), (same, slopes) = (loss.of(Likelihood())(weights) for loss in (whole, parts))
    assert same == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-9, atol=1e-12)


class Pairs(Potential):
    """Scores of label pairs that are given."""

    has_edges = True
    values = np.random.default_rng(3).normal(size=(3, 3))

    def prepare(self, sequences, n_threads):
        def add(first, stop, nodes, edges):
            x = sequences.dense[sequences.offsets[first] : sequences.offsets[stop], 0]
            edges += x[:, None, None] * self.values

        return add


class WithPairs(LinearCRF):
    """A LinearCRF with these."""

    def given_potentials(self):
        return (Pairs(),)


@pytest.mark.parametrize("more", [{}, {"pattern_attributes": True}, {"pattern_attributes": "x1"}])
def test_given_scores_of_label_pairs_go_with_it(more, tmp_path):
    crf = WithPairs(order=2, max_iter=5, tol=0, **more).fit(X, Y, eval_set=(X, Y))
    likelihood = -crf.log_likelihood(X, Y).sum() / sum(map(len, Y))
    assert crf.history_["eval_loss"][-1] == pytest.approx(likelihood, rel=1e-9)
    naive = NaiveModel(crf)
    chain = naive.chain(to_dicts(X)[0])
    assert chain.edges is None
    chain.edges = X[0][:, :1, None] * Pairs.values
    scores = chain.scores()
    codes = tuple(naive.codes(Y[0]))
    place = chain.labellings.tolist().index(list(codes))
    expected = scores[place] - np.logaddexp.reduce(scores)
    assert crf.log_likelihood(X[:1], Y[:1])[0] == pytest.approx(expected, rel=1e-9)
    same = WithPairs.from_state(persist.read(saved(crf, tmp_path))[1])
    np.testing.assert_array_equal(same.predict_proba(X), crf.predict_proba(X))


REFUSED = {
    "pattern_attributes is True and transition_attributes is 'x1'; label pairs are among": {
        "transition_attributes": "x1"
    },
    "pattern_attributes is True and order is 0, so there are no label patterns": {"order": 0},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_go_together(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        LinearCRF(pattern_attributes=True, **REFUSED[message]).fit(X, Y)


def test_a_prefix_that_no_attribute_has():
    with pytest.raises(ValueError, match="pattern_attributes is 'Q', but no attribute of X has"):
        LinearCRF(pattern_attributes="Q").fit(X, Y)


def test_no_pattern_is_there():
    crf = LinearCRF(order=2, pattern_attributes=True).fit([[{"p": 1}], [{"q": 1}]], [["a"], ["b"]])
    assert len(crf.patterns()["weight"]) == 0
    assert crf.predict([[{"p": 1}]])[0].tolist() == ["a"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    crf = LinearCRF(order=2, pattern_attributes=True).fit(ITEMS, LABELS)
    return crf, saved(crf, tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [([1, 2, 0, 1, 3, 1], "out of range"), ([2, 1, 0, 1, 2, 1], "not in order")],
)
def test_a_file_with_wrong_numbers_of_patterns(file, tmp_path, numbers, message):
    kind, state = take_apart(file[1])
    state.tensors["edges.patterns"] = np.array(numbers, np.int32)
    persist.write(tmp_path / "model", kind, state)
    refuses_file(tmp_path / "model", f"{INVALID}edges.patterns is {message}")


def test_what_a_file_keeps(file):
    crf, data = file
    loaded = load(data)
    assert loaded.pattern_attributes is True
    for name, column in crf.patterns().items():
        assert loaded.patterns()[name].tolist() == column.tolist()
    assert not loaded.model_.grammar.has_edges


@pytest.mark.parametrize(
    "patterns", [[(0, 1), (1, 1), (0, 1, 1)], [(0, 0), (0, 1), (1, 0), (1, 1)], []], ids=len
)
def test_sums_of_patterns_and_slopes_of_arcs(patterns):
    trellis = build_trellis(Grammar(2, Patterns.of(patterns)))
    edges = PatternEdges(trellis)
    rng = np.random.default_rng(0)
    sums = rng.normal(size=(3, len(patterns)))
    spread = edges.spread(sums, 1)
    assert spread.shape == (3, *edges.shape)
    for row, own in zip(spread, sums, strict=True):
        np.testing.assert_allclose(row, trellis.arc_scores(own), atol=1e-15)
    slopes = rng.normal(size=spread.shape)
    collected = edges.collect(slopes, 2)
    for row, own in zip(collected, slopes, strict=True):
        np.testing.assert_allclose(row, trellis.pattern_sums(own), atol=1e-15)


def test_sums_of_pairs_are_the_edges():
    edges = PairEdges(2)
    sums = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(edges.spread(sums, 1), sums.reshape(3, 2, 2))
    np.testing.assert_array_equal(edges.collect(edges.spread(sums, 1), 1), sums)


def test_patterns_that_end_at_each_position():
    patterns = [(0, 1), (1, 1), (0, 1, 1)]
    edges = PatternEdges(build_trellis(Grammar(2, Patterns.of(patterns))))
    codes = np.array([0, 1, 1, 1, -1, 1, 1, 0, 1], np.int32)
    found = np.sort(list(edges.ending(codes, np.array([0, 8, 9]))), axis=0)[::-1]
    assert found.tolist() == [[-1, 0, 2, 1, -1, -1, 1, -1, -1], [-1, -1, 1, -1, -1, -1, -1, -1, -1]]


def test_weights_that_occur_with_any_of_several_outputs():
    rows = SparseRows(np.array([0, 2, 3, 3]), np.array([0, 2, 2], np.int32), None, 4)
    outputs = [np.array([1, 0, 1], np.int32), np.array([-1, 2, 0], np.int32)]
    layout = WeightLayout.seen_with_any(rows, outputs, 3)
    assert layout.offsets.tolist() == [0, 1, 1, 4, 4]
    assert layout.outputs.tolist() == [1, 0, 1, 2]
    none = WeightLayout.seen_with_any(rows, [], 3)
    assert none.offsets.tolist() == [0] * 5
    assert none.n_weights == 0
