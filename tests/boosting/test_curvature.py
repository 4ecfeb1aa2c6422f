from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import _core
from hedgerow.boosting.curvature import by_length, exact
from hedgerow.labels.automaton import Automaton, pair_automaton
from hedgerow.trellis import NoPathError, forward_backward
from hedgerow.trellis.mixing import average_edges, average_pair_scores
from reference.curvature import (
    Chain,
    absolute_row_sums,
    exact_gammas,
    mixing_gammas,
    pair_events,
    probabilities,
)
from reference.scores import scores_of

UNSURE = 1e-6  # H_ii from which on the oracle's differences of probabilities keep their digits


@st.composite
def chains(draw, node_scores, arc_scores, edge_scores=None):
    """A short chain whose scores come from the given strategies; label 0 is always possible."""
    n_positions = draw(st.integers(1, 5))
    n_labels = draw(st.integers(1, 4))

    def table(*shape, of):
        size = int(np.prod(shape))
        return np.array(draw(st.lists(of, min_size=size, max_size=size))).reshape(shape)

    nodes = table(n_positions, n_labels, of=node_scores)
    arcs = table(n_labels, n_labels, of=arc_scores)
    nodes[:, 0] = np.where(np.isfinite(nodes[:, 0]), nodes[:, 0], 0.0)
    if not np.isfinite(arcs[0, 0]):
        arcs[0, 0] = 0.0
    edges = None
    if edge_scores is not None:
        edges = table(n_positions, n_labels, n_labels, of=edge_scores)
    return Chain(nodes, arcs, edges)


moderate = st.floats(-4, 4)
strong = st.floats(-30, 30)
forbidden = st.just(-np.inf)
any_chain = (
    chains(moderate, moderate)
    | chains(strong, moderate)
    | chains(strong, strong)
    | chains(moderate | forbidden, moderate | forbidden)
    | chains(strong | forbidden, moderate | forbidden)
    | chains(strong | forbidden, strong | forbidden)
    | chains(moderate, moderate, moderate)
    | chains(strong | forbidden, moderate | forbidden, strong)
)


def mixing(scores, *, weights=None, n_threads):
    return scores.trellis.mixing(scores, None, weights, n_threads)


FEW_LABELS = 8


@pytest.mark.parametrize("has_edges", [False, True])
@pytest.mark.parametrize("n_labels", [1, 3, 8, 9, 26])
def test_they_come_with_posteriors_except_for_few_labels_without_edges(n_labels, has_edges):
    rng, offsets = np.random.default_rng(n_labels), np.array([0, 30, 30, 31, 38, 120])
    nodes, arcs = rng.normal(size=(120, n_labels)), rng.normal(size=(n_labels, n_labels))
    edges, weights = rng.normal(size=(120, n_labels, n_labels)), rng.random(5)
    nodes[40:50, 0] += 30.0  # nearly certain
    nodes[31, 0] = 2e5  # in log space
    pairs = "each" if has_edges else "sum"
    scores = scores_of(nodes, arcs, offsets, edges if has_edges else None)
    expected = mixing(scores, weights=weights, n_threads=1)
    alone = forward_backward(scores, pairs=pairs, weights=weights)
    assert alone.mixing is None
    found = forward_backward(scores, pairs=pairs, weights=weights, mixing=True, n_threads=2)
    if n_labels <= FEW_LABELS and not has_edges:
        assert found.mixing is None
        gammas = expected.nodes, expected.edges, expected.arc_curvatures
        with pytest.raises(ValueError, match="with few labels, mixing rates are not computed"):
            _core.fill_posteriors(nodes, arcs, None, offsets, *[None] * 7, gammas, None, 1)
        return
    for name in ("nodes", "edges", "arc_curvatures"):
        np.testing.assert_array_equal(getattr(found.mixing, name), getattr(expected, name))
    for name in ("log_z", "pairs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
    for name in ("marginals", "arc_sums"):  # without edges in single precision
        tolerance = 0 if has_edges else 2e-6
        np.testing.assert_allclose(getattr(found, name), getattr(alone, name), tolerance, 1e-12)


def potentials_of(chain):
    return scores_of(chain.nodes, chain.arcs, np.array([0, len(chain.nodes)]), chain.edges)


def over_pairs(potentials):
    """The same over an automaton of all pairs."""
    automaton = pair_automaton(potentials.arcs.shape[0])
    arcs = automaton.arc_scores(np.ravel(potentials.arcs))
    return scores_of(potentials.nodes, arcs, potentials.offsets, automaton=automaton), automaton


def random_potentials(n_labels, lengths, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    nodes = rng.normal(size=(offsets[-1], n_labels)) * scale
    return scores_of(nodes, rng.normal(size=(n_labels, n_labels)) * scale, offsets)


@settings(max_examples=40, deadline=None)
@given(any_chain)
def test_gammas_are_what_an_enumeration_says(chain):
    potentials = potentials_of(chain)
    mixed, tight = mixing(potentials, n_threads=1), exact(potentials, n_threads=1)
    check_mixing(mixed, chain)
    check_exact(tight, chain)
    check_bounds_of_pairs(mixed.edges, chain)
    assert (mixed.nodes[:, None] >= tight - 1e-4).all()
    assert (mixed.nodes <= by_length(potentials.offsets)).all()
    assert (mixed.nodes >= 2).all()


def check_mixing(found, chain):
    """It is what the paper says."""
    nodes, edges = mixing_gammas(chain)
    np.testing.assert_allclose(found.nodes, nodes, rtol=1e-4)
    np.testing.assert_allclose(found.edges, edges, rtol=1e-4)
    probs = chain.enumerate().pairs
    literal = (edges[:, None, None] * probs * (1 - probs)).sum(axis=0)
    np.testing.assert_allclose(found.arc_curvatures, literal, rtol=1e-4, atol=1e-5)


def check_exact(found, chain):
    """It is the sum over the covariance matrix."""
    gammas, diagonal = exact_gammas(chain)
    unsure = diagonal > UNSURE
    np.testing.assert_allclose(found[unsure], gammas[unsure], rtol=1e-7)
    assert (found >= 2 - 1e-9).all()


def check_bounds_of_pairs(edges, chain):
    """Gammas of edges bound the covariances of pairs."""
    n_labels = chain.nodes.shape[1]
    labellings, probs = probabilities(chain)
    sums, diagonal = absolute_row_sums(pair_events(labellings, n_labels), probs)
    assert (np.repeat(edges[1:], n_labels**2) * diagonal >= sums - 1e-6).all()


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("last_arc", [0.5, -50.0], ids=["single precision", "log space"])
@pytest.mark.parametrize("lead", [1.0, 3.0, 7.0, 12.0, 18.0, 25.0])
def test_the_curvature_of_nearly_certain_pairs_keeps_its_digits(lead, last_arc, edges):
    # 1 - p must not be a difference: it is as small as exp(-lead) beside 1.
    rng = np.random.default_rng(0)
    nodes, arcs = rng.normal(size=(5, 3)) / 4, rng.normal(size=(3, 3)) / 4
    nodes[np.arange(5), [0, 1, 1, 0, 2]] += lead
    arcs[2, 2] = last_arc
    chain = Chain(nodes, arcs, rng.normal(size=(5, 3, 3)) / 4 if edges else None)
    labellings, probs = probabilities(chain)
    events = pair_events(labellings, 3)
    curvature = ((probs @ events) * (probs @ (1 - events))).reshape(4, 3, 3)
    expected = (mixing_gammas(chain)[1][1:, None, None] * curvature).sum(axis=0)
    many = np.tile(chain.edges, (300, 1, 1)) if edges else None
    repeated = scores_of(np.tile(nodes, (300, 1)), arcs, np.arange(301) * 5, many)
    found = mixing(repeated, n_threads=1).arc_curvatures
    np.testing.assert_allclose(found, 300 * expected, rtol=1e-5)


def test_a_chain_worked_by_hand():
    # exp(score) is 2 for (0, 0), else 1: P(y_1 = 0 | y_0) is 2/3 or 1/2, and the same backward.
    # Both rates are 1 - (1/2 + 1/3) = 1/6, and node gammas 2 (1 + 1/6).
    potentials = scores_of(np.zeros((2, 2)), np.log([[2.0, 1.0], [1.0, 1.0]]), np.array([0, 2]))
    found = mixing(potentials, weights=[3.0], n_threads=1)
    np.testing.assert_allclose(found.nodes, [7 / 3, 7 / 3], rtol=1e-6)
    np.testing.assert_allclose(found.edges, [0, 2])
    np.testing.assert_allclose(
        found.arc_curvatures, 6 * np.array([[6 / 25, 4 / 25], [4 / 25, 4 / 25]])
    )
    np.testing.assert_allclose(exact(potentials, n_threads=1), np.full((2, 2), 7 / 3))


@settings(max_examples=20, deadline=None)
@given(chains(strong, st.just(0.5)))
def test_independent_labels_have_gamma_two(chain):
    potentials = potentials_of(chain)
    np.testing.assert_allclose(mixing(potentials, n_threads=1).nodes, 2, rtol=1e-5)
    np.testing.assert_allclose(exact(potentials, n_threads=1), 2, rtol=1e-9)


def test_single_positions_have_gamma_two():
    potentials = random_potentials(3, [1, 0, 1])
    found = mixing(potentials, n_threads=1)
    assert found.nodes.tolist() == [2, 2]
    assert found.edges.tolist() == [0, 0]
    assert not found.arc_curvatures.any()
    np.testing.assert_allclose(exact(potentials, n_threads=1), 2)


def test_one_label_is_no_curvature():
    potentials = random_potentials(1, [5])
    found = mixing(potentials, n_threads=1)
    np.testing.assert_allclose(found.nodes, 2)
    assert found.arc_curvatures[0, 0] == pytest.approx(0, abs=1e-5)
    np.testing.assert_allclose(exact(potentials, n_threads=1), 2)


@pytest.mark.parametrize("n_labels", [2, 7, 26, 33, 300])
def test_single_and_double_precision_agree(n_labels):
    # A label that is forbidden everywhere changes nothing, but its arcs lie so far below the others
    # that the kernel takes to log space.
    potentials = random_potentials(n_labels, [9, 100, 1, 17])
    weights = [1.0, 0.5, 2.0, 0.0]
    fast = mixing(potentials, weights=weights, n_threads=2)
    nodes = np.pad(potentials.nodes, ((0, 0), (0, 1)), constant_values=-np.inf)
    arcs = np.pad(potentials.arcs, (0, 1), constant_values=-1000.0)
    slow = mixing(scores_of(nodes, arcs, potentials.offsets), weights=weights, n_threads=2)
    np.testing.assert_allclose(fast.nodes, slow.nodes, rtol=1e-5)
    np.testing.assert_allclose(fast.edges, slow.edges, rtol=1e-5)
    np.testing.assert_allclose(
        fast.arc_curvatures, slow.arc_curvatures[:-1, :-1], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(("scale", "n_sequences"), [(1.0, 400), (60.0, 400), ("edges", 40)])
def test_threads_and_order_do_not_matter(scale, n_sequences):
    potentials = random_potentials(11, [30] * n_sequences, 1.0 if scale == "edges" else scale)
    if scale == "edges":
        edges = np.random.default_rng(1).normal(size=(len(potentials.nodes), 11, 11))
        potentials = replace(potentials, edges=edges)
    one = mixing(potentials, n_threads=1)
    found = mixing(potentials, n_threads=3)
    assert (found.nodes == one.nodes).all()
    assert (found.edges == one.edges).all()
    assert (found.arc_curvatures == one.arc_curvatures).all()
    last = mixing(potentials.part(slice(n_sequences - 1, n_sequences)), n_threads=1)
    assert (last.nodes == one.nodes[-30:]).all()
    assert (last.edges == one.edges[-30:]).all()


@pytest.mark.parametrize("extreme", [3.0, 300.0, 1e5])
def test_a_long_sequence_of_extreme_scores(extreme):
    potentials = random_potentials(3, [100_000], extreme)
    potentials.arcs[1, 2] = -np.inf
    found = mixing(potentials, n_threads=2)
    assert (found.nodes >= 2).all()
    assert (found.nodes <= 200_000).all()
    assert np.isfinite(found.edges).all()
    assert np.isfinite(found.arc_curvatures).all()
    assert (found.arc_curvatures >= 0).all()


def test_exact_in_small_batches_and_over_automata():
    potentials = random_potentials(3, [4, 0, 6])
    whole = exact(potentials, n_threads=2)
    np.testing.assert_array_equal(exact(potentials, n_threads=2, batch=1), whole)
    np.testing.assert_allclose(exact(over_pairs(potentials)[0], n_threads=2), whole, rtol=1e-9)
    edges = np.broadcast_to(potentials.arcs, (10, 3, 3))
    by_edges = scores_of(potentials.nodes, np.zeros((3, 3)), potentials.offsets, edges)
    np.testing.assert_allclose(exact(by_edges, n_threads=2), whole, rtol=1e-9)


def test_the_surrogate_of_all_pairs_is_the_chain_itself():
    potentials = random_potentials(4, [5, 3])
    potentials.arcs[2, 1] = -np.inf
    same, automaton = over_pairs(potentials)
    arc_sums = forward_backward(same, n_threads=1).arc_sums
    found = average_pair_scores(automaton, same.arcs, arc_sums)
    np.testing.assert_allclose(found, potentials.arcs)
    of_chain, of_automaton = (
        scores.trellis.mixing(scores, arc_sums, None, 1) for scores in (potentials, same)
    )
    np.testing.assert_allclose(of_automaton.nodes, of_chain.nodes, rtol=1e-5)
    np.testing.assert_allclose(of_automaton.edges, of_chain.edges, rtol=1e-5)
    assert of_automaton.arc_curvatures is None


def test_edges_of_an_automaton_are_averages_over_its_arcs():
    potentials = random_potentials(3, [5, 3])
    edges = np.random.default_rng(1).normal(size=(8, 3, 3))
    same, automaton = over_pairs(potentials)
    by_arc = np.hstack([np.zeros((8, 3)), edges.reshape(8, 9)])
    forms = [
        replace(potentials, edges=edges),
        replace(same, edges=edges),
        replace(same, edges=by_arc),
    ]
    sums = forward_backward(forms[1]).arc_sums
    found = [scores.trellis.mixing(scores, sums, None, 1) for scores in forms]
    for other in found[1:]:
        np.testing.assert_allclose(other.nodes, found[0].nodes, rtol=1e-5)
        np.testing.assert_allclose(other.edges, found[0].edges, rtol=1e-5)
    automaton = Automaton.build(2, [(0, 1), (1, 1), (0, 1, 1)])
    # of the strings 0, 1, 01, 11, 011
    by_arc = np.array([[1.0, 2.0, 3.0, 4.0, 8.0]])
    sums = np.array([1.0, 1.0, 1.0, 3.0, 1.0])
    np.testing.assert_allclose(average_edges(automaton, by_arc, sums, 1), [[[1, 3], [1, 5]]])
    nothing = average_edges(automaton, by_arc, np.zeros(5), 1)
    np.testing.assert_allclose(nothing, [[[1, 3], [1, 6]]])


def test_the_surrogate_of_longer_patterns():
    automaton = Automaton.build(2, [(0,), (0, 1), (1, 1), (0, 1, 1), (1, 1, 1)])
    arcs = np.arange(automaton.n_arcs, dtype=float)
    # of the strings 0, 1, 01, 11, 011, 111
    arc_sums = np.array([9.0, 9.0, 2.0, 1.0, 3.0, 0.0])
    found = average_pair_scores(automaton, arcs, arc_sums)
    # No arc ends in 00 or 10: they score as label 0 does. 11 is that of 11 and 011.
    np.testing.assert_allclose(found, [[0, 2], [0, (3 * 1 + 4 * 3) / 4]])
    uncounted = average_pair_scores(automaton, arcs, np.zeros(6))
    np.testing.assert_allclose(uncounted, [[0, 2], [0, 5]])
    arcs[[3, 4]] = -np.inf
    assert average_pair_scores(automaton, arcs, arc_sums)[1, 1] == 5
    arcs[5] = -np.inf
    assert average_pair_scores(automaton, arcs, arc_sums)[1, 1] == -np.inf


def test_by_length():
    assert by_length(np.array([0, 2, 2, 5])).tolist() == [4, 4, 6, 6, 6]


def test_refusals():
    potentials = random_potentials(2, [3, 2])
    for wrong in (np.nan, np.inf):
        nodes = potentials.nodes.copy()
        nodes[4, 1] = wrong
        with pytest.raises(ValueError, match=r"node score is NaN or \+inf at position 1 of seq"):
            mixing(scores_of(nodes, potentials.arcs, potentials.offsets), n_threads=1)
        arcs = np.array([[0.0, wrong], [0.0, 0.0]])
        with pytest.raises(ValueError, match="from label 0 to label 1"):
            mixing(scores_of(potentials.nodes, arcs, potentials.offsets), n_threads=1)
    nodes = potentials.nodes.copy()
    nodes[1] = -np.inf
    with pytest.raises(NoPathError, match="sequence 0 has no labelling"):
        mixing(scores_of(nodes, potentials.arcs, potentials.offsets), n_threads=1)
    forbidden = np.full((2, 2), -np.inf)
    with pytest.raises(NoPathError, match="sequence 0 has no labelling"):
        mixing(scores_of(potentials.nodes, forbidden, potentials.offsets), n_threads=1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weights": np.ones(3)}, "weights must have an entry for each sequence"),
        ({"node_gammas": np.ones(4, np.float32)}, "must have an entry for each position"),
        ({"edge_gammas": np.ones(6, np.float32)}, "must have an entry for each position"),
        ({"pair_curvature": np.ones((2, 3))}, "pair_curvature must have the shape of arcs"),
    ],
)
def test_the_kernel_checks_shapes(changed, message):
    potentials = random_potentials(2, [3, 2])
    arguments = {
        "nodes": potentials.nodes,
        "arcs": potentials.arcs,
        "edges": None,
        "offsets": potentials.offsets,
        "weights": None,
        "node_gammas": np.empty(5, np.float32),
        "edge_gammas": None,
        "pair_curvature": None,
        "n_threads": 1,
    }
    _core.fill_mixing(**arguments)
    with pytest.raises(ValueError, match=message):
        _core.fill_mixing(**(arguments | changed))
