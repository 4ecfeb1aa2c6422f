"""Tree-shaped graphs: every function equals the list of all labellings."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2

from hedgerow.labels.automaton import pair_automaton
from hedgerow.trellis import (
    AutomatonChain,
    Chain,
    NoPathError,
    Scores,
    TreeGraph,
    Trellis,
    forward_backward,
    k_best,
    log_likelihood,
    log_z,
    sample,
    tangent,
    viterbi,
    weighted_forward_backward,
)
from reference.graphs import KINDS, ExactGraph, random_graphs, random_parents, split
from reference.trellises import all_arcs

close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-12)
SEEDS = range(3)
# Labels and lengths of forests: of all of them every labelling is listed.
SIZES = {"": {}, "7 nodes": {"n_labels": 2, "lengths": (7, 3, 6, 7)}}
each_size = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)


def wants_pairs(scores):
    """Whether edges, or every pair of labels, have an arc of their own."""
    return scores.edges is not None or isinstance(scores.trellis, Chain)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e5], ids=["", "steep", "extreme"])
@pytest.mark.parametrize("seed", SEEDS)
@each_size
@pytest.mark.parametrize("kind", KINDS)
def test_posteriors_equal_enumeration(kind, size, seed, scale):
    rng = np.random.default_rng(seed)
    scores = random_graphs(rng, kind, scale=scale, **size)
    labels = rng.integers(0, scores.n_labels, scores.n_positions).astype(np.int32)
    weights = rng.random(scores.n_sequences)
    pairs = "each" if wants_pairs(scores) else "sum"
    found = forward_backward(
        scores, labels=labels, pairs=pairs, patterns=all_arcs(scores), weights=weights
    )
    close(log_z(scores), found.log_z)
    close(log_likelihood(scores, labels), found.log_likelihoods)
    sums = np.zeros(scores.arcs.size)
    for s, part, exact in split(scores):
        expected = exact.sum(exact.probs)
        close(found.log_z[s], exact.log_z)
        score = exact.labelling_scores[exact.find(labels[part])]
        close(found.log_likelihoods[s], score - exact.log_z, atol=1e-9)
        close(found.marginals[part], expected.marginals, atol=1e-11)
        close(found.pattern_marginals[part], expected.arcs, atol=1e-11)
        if found.pairs is not None:
            by_edge = found.pairs.reshape(scores.n_positions, -1)
            close(by_edge[part], expected.pairs, atol=1e-11)
        sums += weights[s] * expected.arcs.sum(axis=0)
    close(np.ravel(found.arc_sums), sums, atol=1e-11)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5], ids=["", "steep", "extreme"])
@each_size
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_labellings_equal_enumeration(kind, size, scale):
    scores = random_graphs(np.random.default_rng(0), kind, scale=scale, **size)
    codes, counts, log_probs = k_best(scores, 20)
    # Log probabilities are differences of scores of up to a million.
    equal = partial(close, atol=1e-12 if scale < 1e5 else 1e-9)
    np.testing.assert_array_equal(viterbi(scores), codes[0])
    for s, part, exact in split(scores):
        best = np.argsort(-exact.labelling_scores, kind="stable")[:20]
        assert counts[s] == len(best)
        expected = exact.labelling_scores[best] - exact.log_z
        equal(log_probs[: counts[s], s], expected)
        rows = [exact.find(row) for row in codes[: counts[s], part]]
        assert len(set(rows)) == len(rows)
        equal(exact.labelling_scores[rows] - exact.log_z, expected)
        assert (log_probs[counts[s] :, s] == -np.inf).all()


def test_of_equally_good_labels_the_lowest_code_is_taken():
    scores = replace(random_graphs(np.random.default_rng(0), "order 0"), nodes=np.zeros((12, 3)))
    assert (viterbi(scores) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_samples_have_the_frequencies_of_an_enumeration(kind):
    rng = np.random.default_rng(5)
    scores = random_graphs(rng, kind, n_labels=2, lengths=(7,))
    exact, n_samples = ExactGraph(scores), 20000
    codes = sample(scores, rng.random((n_samples, 7)))
    numbers = codes @ (2 ** np.arange(7)[::-1])
    # Labellings that are too rare for a chi square test count as one.
    rare = n_samples * exact.probs < 10
    cells = np.where(rare, 0, np.arange(1, 129))
    found = np.bincount(cells[numbers], minlength=129)
    expected = n_samples * np.bincount(cells, exact.probs, minlength=129)
    found, expected = found[expected > 0], expected[expected > 0]
    statistic = ((found - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, len(expected) - 1) > 1e-4


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", [1.0, 200.0], ids=["", "log space"])
@each_size
@pytest.mark.parametrize("kind", KINDS)
def test_tangents_are_covariances(kind, size, scale, seed):
    rng = np.random.default_rng(seed)
    scores = random_graphs(rng, kind, scale=scale, **size)
    nodes, arcs = rng.normal(size=scores.nodes.shape), rng.normal(size=scores.arcs.shape)
    pairs = "each" if wants_pairs(scores) else "sum"
    marginals = forward_backward(scores).marginals
    for arc_moves in (None, arcs):
        found = tangent(scores, marginals, nodes, arc_moves, pairs=pairs)
        sums = np.zeros(scores.arcs.size)
        for _, part, exact in split(scores):
            gains = exact.measure(nodes[part], 0 * arcs if arc_moves is None else arcs)
            expected = exact.covariances(gains)
            close(found.marginals[part], expected.marginals, atol=1e-9)
            if found.pairs is not None:
                by_edge = found.pairs.reshape(scores.n_positions, -1)
                close(by_edge[part], expected.pairs, atol=1e-9)
            sums += expected.arcs.sum(axis=0)
        close(np.ravel(found.arc_sums), sums, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_positions_follow_the_chain_rule_from_the_roots(kind):
    rng = np.random.default_rng(1)
    scores = random_graphs(rng, kind, n_labels=2, lengths=(7,))
    labels = rng.integers(0, 2, 7).astype(np.int32)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 7)
    pairs = "each" if wants_pairs(scores) else "sum"

    def value(nodes, arcs):
        exact = ExactGraph(replace(scores, nodes=nodes, arcs=arcs))
        return exact.weighted_log_likelihood(labels, weights)

    found = weighted_forward_backward(scores, labels, weights, pairs=pairs)
    close(found.log_likelihoods[0], value(scores.nodes, scores.arcs))
    close(found.marginals.sum(axis=1), weights)
    exact = ExactGraph(scores)
    row = exact.find(labels)
    for t, k in ((0, 0), (2, 1), (6, 1)):
        step = np.zeros_like(scores.nodes)
        step[t, k] = 1e-5
        slope = value(scores.nodes + step, scores.arcs) - value(scores.nodes - step, scores.arcs)
        observed = weights[t] * (labels[t] == k)
        close(slope / 2e-5, observed - found.marginals[t, k], atol=1e-8)
    for arc in rng.integers(0, scores.arcs.size, 4):
        step = np.zeros(scores.arcs.size)
        step[arc] = 1e-5
        step = step.reshape(scores.arcs.shape)
        slope = value(scores.nodes, scores.arcs + step) - value(scores.nodes, scores.arcs - step)
        observed = weights @ (exact.arcs[row] == arc)
        close(slope / 2e-5, observed - np.ravel(found.arc_sums)[arc], atol=1e-8)
    equal = weighted_forward_backward(scores, labels, np.full(7, 2.0), pairs=pairs)
    plain = forward_backward(scores, labels=labels, pairs=pairs)
    close(equal.marginals, 2 * plain.marginals)
    if plain.pairs is not None:
        close(equal.pairs, 2 * plain.pairs)


def chain_parents(offsets):
    return np.concatenate([np.arange(-1, n - 1) for n in np.diff(offsets)]).astype(np.int32)


@pytest.mark.parametrize("n_labels", [2, 5, 17])
@pytest.mark.parametrize("with_edges", [False, True])
def test_a_chain_of_parents_equals_the_chain(n_labels, with_edges):
    rng = np.random.default_rng(0)
    offsets = np.array([0, 1, 1, 30, 90])
    edges = rng.normal(size=(90, n_labels, n_labels)) if with_edges else None
    trellis = Chain(n_labels)
    nodes, arcs = rng.normal(size=(90, n_labels)), rng.normal(size=(n_labels, n_labels))
    nodes[7, 0] = arcs[1, 0] = -np.inf
    chain = Scores(nodes, arcs, offsets, trellis, edges)
    graph = replace(chain, parents=chain_parents(offsets))
    labels = viterbi(chain)
    np.testing.assert_array_equal(viterbi(graph), labels)
    exact = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-14)
    found, expected = (
        forward_backward(each, labels=labels, pairs="each", mixing=True) for each in (graph, chain)
    )
    for name in ("log_z", "log_likelihoods", "marginals", "arc_sums", "pairs"):
        exact(getattr(found, name), getattr(expected, name))
    of_chain = trellis.mixing(chain, expected.arc_sums, None, 1)
    # In a graph labels that nothing else allows do not count: bounds may be smaller.
    for gammas in ("nodes", "edges"):
        ours, theirs = getattr(found.mixing, gammas), getattr(of_chain, gammas)
        assert (ours <= theirs * (1 + 1e-5)).all()
    if n_labels > 2:
        exact(found.mixing.nodes, of_chain.nodes, rtol=1e-5)
    uniforms = rng.random((3, 90))
    np.testing.assert_array_equal(sample(graph, uniforms), sample(chain, uniforms))
    direction = rng.normal(size=nodes.shape)
    exact(
        tangent(graph, found.marginals, direction, arcs.clip(-9)).marginals,
        tangent(chain, found.marginals, direction, arcs.clip(-9)).marginals,
        atol=1e-12,
    )
    over_pairs = replace(
        graph,
        arcs=pair_automaton(n_labels).arc_scores(np.ravel(arcs)),
        trellis=AutomatonChain(pair_automaton(n_labels)),
    )
    exact(forward_backward(over_pairs).marginals, expected.marginals)


@pytest.mark.parametrize("seed", range(5))
def test_another_root_with_transposed_weights_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, 7, share_of_roots=0.0)
    edges = rng.normal(size=(7, 3, 3))
    nodes, offsets = rng.normal(size=(7, 3)), np.array([0, 7])
    scores = Scores(nodes, np.zeros((3, 3)), offsets, Chain(3), edges, parents)
    other_parents, other_edges = parents.copy(), edges.copy()
    child, node = -1, int(rng.integers(7))
    while node >= 0:  # the path from the new root to the old one is turned round
        above = int(parents[node])
        other_parents[node] = child
        if child >= 0:
            other_edges[node] = edges[child].T
        child, node = node, above
    other = replace(scores, parents=other_parents, edges=other_edges)
    found, expected = forward_backward(other), forward_backward(scores)
    close(found.log_z, expected.log_z)
    close(found.marginals, expected.marginals)


@pytest.mark.parametrize("scale", [0.5, 5.0, 40.0], ids=["", "likely", "certain"])
@pytest.mark.parametrize("n_labels", [2, 5, 9])
def test_curvatures_of_arcs_keep_their_digits_where_pairs_are_nearly_certain(n_labels, scale):
    rng = np.random.default_rng(n_labels)
    lengths, weights = [40, 1, 25], np.array([1.0, 2.0, 0.5])
    nodes = scale * rng.standard_normal((sum(lengths), n_labels))
    arcs = rng.standard_normal((n_labels, n_labels))
    arcs[0, 1] = -np.inf
    parents = np.concatenate([random_parents(rng, length) for length in lengths])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    scores = Scores(nodes, arcs, offsets, Chain(n_labels), parents=parents.astype(np.int32))
    probs = forward_backward(scores, pairs="each").pairs.reshape(len(nodes), -1)
    others = np.stack([np.delete(probs, p, axis=1).sum(axis=1) for p in range(n_labels**2)], axis=1)
    # Alone, those of few labels are in single precision.
    together = forward_backward(scores, weights=weights, mixing=True).mixing
    alone = scores.trellis.mixing(scores, arcs, weights, 1)
    for found, exact in (together, 1e-11), (alone, 1e-11 if n_labels > 8 else 1e-5):
        gammas = np.repeat(weights, lengths) * found.edges
        expected = (gammas[:, None] * probs * others).sum(axis=0)
        curvatures = np.ravel(found.arc_curvatures)
        np.testing.assert_allclose(curvatures, expected, rtol=exact, atol=1e-300)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [1.0, 4.0, 400.0])
@pytest.mark.parametrize("kind", ["order 1", "order 1, edges"])
def test_gammas_bound_the_rows_of_the_hessian(kind, scale, seed):
    rng = np.random.default_rng(seed)
    scores = random_graphs(rng, kind, n_labels=2, lengths=(7,), scale=scale)
    exact = ExactGraph(scores)
    together = forward_backward(scores, mixing=True).mixing
    alone = TreeGraph(scores.trellis).mixing(scores, None, None, 1)
    for found in (together, alone):
        curvatures = np.zeros(4)
        for events, gammas in ((exact.every, found.nodes), (exact.edges, found.edges)):
            n_codes = 2 if events is exact.every else 4
            flags = (events[:, :, None] == np.arange(n_codes)).reshape(len(events), -1)
            flags = flags.astype(float)
            means = exact.probs @ flags
            covariances = (flags * exact.probs[:, None]).T @ flags - np.outer(means, means)
            rows = np.abs(covariances).sum(axis=1)
            bounds = np.repeat(gammas, n_codes) * np.diag(covariances)
            assert (rows <= bounds * (1 + 1e-5) + 1e-9).all()
            if n_codes == 4:
                curvatures = (np.repeat(gammas, 4) * means * (1 - means)).reshape(-1, 4).sum(axis=0)
        np.testing.assert_allclose(np.ravel(found.arc_curvatures), curvatures, rtol=1e-5, atol=1e-9)
        assert (found.edges[scores.parents < 0] == 0).all()
    np.testing.assert_allclose(alone.nodes, together.nodes, rtol=1e-5)
    np.testing.assert_allclose(alone.edges, together.edges, rtol=1e-5)


def test_lanes_that_single_precision_refuses_have_the_numbers_of_double_precision():
    # Each of these has scores too far apart for a float, which no other sequence notices.
    rng = np.random.default_rng(0)
    lengths = [9] * 23
    nodes, arcs = rng.normal(size=(sum(lengths), 3)), rng.normal(size=(3, 3))
    nodes[9 * 2, 0], nodes[9 * 3 + 4, 1], nodes[9 * 17, 2] = -50.0, -1e5, -np.inf
    nodes[9 * 5 : 9 * 6] *= 15.0
    parents = np.concatenate([random_parents(rng, length) for length in lengths])
    offsets = np.arange(0, sum(lengths) + 1, 9)
    scores = Scores(nodes, arcs, offsets, Chain(3), parents=parents.astype(np.int32))
    for each in (scores, replace(scores, arcs=40.0 * arcs)):
        together = forward_backward(each, mixing=True).mixing
        alone = TreeGraph(each.trellis).mixing(each, None, None, 2)
        for name in ("nodes", "edges", "arc_curvatures"):
            np.testing.assert_allclose(getattr(alone, name), getattr(together, name), rtol=1e-4)
    nodes[9 * 20 + 3, 1] = np.nan
    with pytest.raises(ValueError, match=r"position 3 of sequence 20"):
        TreeGraph(scores.trellis).mixing(scores, None, None, 1)


def test_a_star_needs_a_gamma_that_grows_with_its_leaves():
    # The edge (0, 1) is strong, and all other leaves do not depend on the centre: each of them adds
    # to what the edge needs, which the bound for chains does not see.
    arcs = np.zeros((9, 2, 2))
    arcs[1] = [[3.0, -3.0], [-3.0, 3.0]]
    parents = np.array([-1, *[0] * 8], np.int32)
    scores = Scores(np.zeros((9, 2)), np.zeros((2, 2)), np.array([0, 9]), Chain(2), arcs, parents)
    mixing = forward_backward(scores, mixing=True).mixing
    assert mixing.edges[1] == pytest.approx(2 * (1 + 7))


def test_results_depend_on_neither_threads_nor_other_sequences():
    rng = np.random.default_rng(3)
    for kind in ("order 1", "order 1, edges", "order 2"):
        lengths = rng.integers(0, 12, 60).tolist()
        scores = random_graphs(rng, kind, n_labels=5, lengths=lengths)
        scores.nodes[40:60] *= 1e4  # in log space
        one, two = (forward_backward(scores, n_threads=n) for n in (1, 2))
        for name in ("log_z", "marginals", "arc_sums"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        alone = [
            forward_backward(scores.part(slice(s, s + 1))).marginals for s in range(len(lengths))
        ]
        np.testing.assert_array_equal(one.marginals, np.concatenate(alone))
        np.testing.assert_array_equal(viterbi(scores), viterbi(scores, n_threads=2))


@pytest.mark.parametrize("shape", ["path", "star"])
def test_a_million_positions(shape):
    n_positions, rng = 10**6, np.random.default_rng(0)
    parents = np.arange(-1, n_positions - 1, dtype=np.int32)
    if shape == "star":
        parents[1:] = 0
    nodes, arcs = 0.1 * rng.normal(size=(n_positions, 2)), np.array([[0.3, -0.2], [0.1, 0.0]])
    scores = Scores(nodes, arcs, np.array([0, n_positions]), Chain(2), None, parents)
    found = forward_backward(scores)
    close(found.marginals.sum(axis=1), 1.0)
    close(found.arc_sums.sum(), n_positions - 1)
    labels = viterbi(scores)
    if shape == "path":
        chain = replace(scores, parents=None)
        close(found.log_z, log_z(chain))
        np.testing.assert_array_equal(labels, viterbi(chain))
    else:
        messages = np.logaddexp.reduce(arcs[None] + nodes[1:, None, :], axis=2).sum(axis=0)
        close(found.log_z[0], np.logaddexp.reduce(nodes[0] + messages))


def test_no_labelling_bad_scores_and_bad_parents_are_named():
    rng = np.random.default_rng(0)
    scores = random_graphs(rng, "order 1", lengths=(2, 4))
    scores = replace(scores, parents=np.array([-1, 0, 1, 2, 3, -1], np.int32))
    dead = replace(scores, nodes=scores.nodes.copy())
    dead.nodes[4] = -np.inf
    with pytest.raises(NoPathError, match=r"sequence 1 has no labelling.*subtree at position 2"):
        log_z(dead)
    dead.nodes[4] = np.nan
    with pytest.raises(ValueError, match=r"a node score is NaN or.*position 2 of sequence 1"):
        log_z(dead)
    with pytest.raises(ValueError, match="the score of arc 3 is NaN"):
        log_z(replace(scores, arcs=np.where(np.arange(9) == 3, np.nan, 0.0).reshape(3, 3)))
    edges = np.zeros((6, 3, 3))
    edges[2, 0, 0] = np.inf
    with pytest.raises(ValueError, match=r"an edge score is NaN or.*position 0 of sequence 1"):
        log_z(replace(scores, edges=edges))
    circle = np.array([-1, 0, 1, 2, 3, 0], np.int32)
    with pytest.raises(ValueError, match="the parents of a sequence form a cycle"):
        log_z(replace(scores, parents=circle))
    outside = np.array([-1, 0, -1, 9, 3, 0], np.int32)
    with pytest.raises(ValueError, match="position 1 of sequence 1 has the parent 9"):
        log_z(replace(scores, parents=outside))


def test_a_trellis_for_chains_alone_is_named():
    scores = random_graphs(np.random.default_rng(0), "order 1")
    own = type("Own", (Trellis,), {})
    own.__abstractmethods__ = frozenset()
    with pytest.raises(NotImplementedError, match="Own does not support sequences with parents"):
        log_z(replace(scores, trellis=own()))
