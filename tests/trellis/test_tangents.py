"""Derivatives of marginals equal covariances over all labellings, and central differences."""

import itertools
import os
import signal
import sys
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import _core
from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import AutomatonChain, NoPathError, forward_backward, tangent
from reference.automata import enumerate_patterns
from reference.batches import batches, extreme, extreme_or_forbidden, moderate
from reference.chains import Chain, enumerate_chain
from reference.scores import scores_of
from reference.tangent import Covariances, GrossGradient, node_gains, pair_gains

examples = partial(settings, deadline=None, derandomize=True)
FIELDS = ("marginals", "arc_sums", "pairs")


def found_tangent(potentials, nodes, arcs=None, **wanted):
    marginals = forward_backward(potentials, pairs=None).marginals
    return tangent(potentials, marginals, nodes, arcs, **wanted)


def check_close(found, slopes, sizes, rtol=1e-9):
    """Every digit that can be asked for: `sizes` is what was added up."""
    assert found.shape == slopes.shape
    assert (np.abs(found - slopes) <= rtol * sizes + 1e-290).all()
    assert (found[sizes == 0] == 0).all()


def check_chain(chain, nodes, arcs, rtol=1e-9):
    """One chain against the covariances over all its labellings."""
    potentials = scores_of(chain.nodes, chain.arcs, [0, len(chain.nodes)], chain.edges)
    with np.errstate(invalid="ignore"):
        exact = enumerate_chain(chain)
    if exact.best_score == -np.inf:
        with pytest.raises(NoPathError, match="sequence 0 has no labelling with a finite score"):
            tangent(potentials, np.ones_like(nodes), nodes, arcs)
        return
    n_labels = nodes.shape[1]
    labellings = np.array(chain.labellings())
    gains = node_gains(labellings, nodes)
    if arcs is not None:
        gains = gains + pair_gains(labellings, arcs)
    exact = Covariances(labellings, np.exp(list(exact.log_probs.values())), gains)
    result = found_tangent(potentials, nodes, arcs, pairs="each")
    slopes, sizes = exact.pairs(n_labels)
    check_close(result.marginals, *exact.marginals(n_labels), rtol)
    check_close(result.pairs, slopes, sizes, rtol)
    for pairs in ("each", "sum"):
        summed = found_tangent(potentials, nodes, arcs, pairs=pairs).arc_sums
        check_close(summed, slopes.sum(axis=0), sizes.sum(axis=0), rtol)
    alone = found_tangent(potentials, nodes, arcs, pairs=None)
    assert (alone.arc_sums, alone.pairs) == (None, None)
    np.testing.assert_array_equal(alone.marginals, result.marginals)


@st.composite
def moved_chains(draw, scores):
    """A short chain and a direction of its scores."""
    n_positions, n_labels = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    edges, arcs = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    finite = extreme if scores is extreme_or_forbidden else scores
    chain = Chain(
        nodes=scores(rng, n_positions, n_labels),
        arcs=scores(rng, n_labels, n_labels),
        edges=finite(rng, n_positions, n_labels, n_labels) if edges else None,
    )
    nodes = rng.normal(size=chain.nodes.shape)
    return chain, nodes, rng.normal(size=chain.arcs.shape) if arcs else None


@pytest.mark.parametrize("scores", [moderate, extreme, extreme_or_forbidden])
@examples(max_examples=150)
@given(data=st.data())
def test_chains_equal_enumeration(scores, data):
    chain, nodes, arcs = data.draw(moved_chains(scores))
    # What cannot be does not count, wherever it moves to.
    nodes = np.where(chain.nodes == -np.inf, 1e300, nodes)
    check_chain(chain, nodes, arcs)


@pytest.mark.parametrize("scores", [moderate, extreme, extreme_or_forbidden])
@examples(max_examples=100)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_automata_equal_enumeration(scores, data, seed):
    batch = data.draw(batches(scores))
    exact = [enumerate_patterns(chain) for chain in batch.chains]
    potentials, automaton = batch.potentials, batch.automaton
    rng = np.random.default_rng(seed)
    nodes = np.where(potentials.nodes == -np.inf, 1e300, rng.normal(size=potentials.nodes.shape))
    arcs = rng.normal(size=automaton.n_arcs) if seed % 2 else None
    if None in exact:
        with pytest.raises(NoPathError, match=r"sequence \d has no labelling with a finite score"):
            tangent(potentials, np.ones_like(nodes), nodes, arcs)
        return
    has_edges = potentials.edges is not None
    pairs = "each" if has_edges else "sum"
    result = found_tangent(potentials, nodes, arcs, pairs=pairs)
    sums, sum_sizes = np.zeros((2, automaton.n_arcs))
    for chain, one, part in zip(batch.chains, exact, batch.parts(), strict=True):
        every = chain.labellings
        probs = np.exp(list(one.log_probs.values()))
        every, probs = every[probs > 0], probs[probs > 0]
        offsets = np.arange(len(every) + 1) * every.shape[1]
        taken = automaton.arcs_taken(every.ravel().astype(np.int32), offsets).reshape(every.shape)
        gains = node_gains(every, nodes[part])
        if arcs is not None:
            gains = gains + arcs[taken]
        found = Covariances(every, probs, gains)
        check_close(result.marginals[part], *found.marginals(automaton.n_labels))
        slopes, sizes = found.of(taken, automaton.n_arcs)
        sums += slopes.sum(axis=0)
        sum_sizes += sizes.sum(axis=0)
        if has_edges:
            check_close(result.pairs[part], *found.pairs(automaton.n_labels))
    check_close(result.arc_sums, sums, sum_sizes)
    alone = found_tangent(potentials, nodes, arcs, pairs=None)
    np.testing.assert_array_equal(alone.marginals, result.marginals)


def test_a_chain_worked_by_hand():
    # Two positions, two labels, all four labellings equally likely. V is 1 if the first label is 1,
    # and 2 if both are 0: (0, 0) 2, (0, 1) 0, (1, 0) 1, (1, 1) 1, with a mean of 1. A covariance is
    # the sum over the labellings of an event of (V - 1) / 4.
    potentials = scores_of(np.zeros((2, 2)), np.zeros((2, 2)), [0, 2])
    nodes, arcs = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 0.0]])
    result = found_tangent(potentials, nodes, arcs, pairs="each")
    np.testing.assert_allclose(result.marginals, [[0, 0], [0.25, -0.25]], atol=1e-16)
    np.testing.assert_allclose(result.arc_sums, [[0.25, -0.25], [0, 0]], atol=1e-16)
    np.testing.assert_array_equal(result.pairs, [np.zeros((2, 2)), result.arc_sums])


def central_differences(potentials, nodes, arcs, step=1e-5, **wanted):
    ends = []
    for moved in (step, -step):
        there = replace(
            potentials,
            nodes=potentials.nodes + moved * nodes,
            arcs=potentials.arcs if arcs is None else potentials.arcs + moved * arcs,
        )
        ends.append(forward_backward(there, **wanted))
    plus, minus = ([getattr(end, name) for name in FIELDS] for end in ends)
    return [None if p is None else (p - m) / (2 * step) for p, m in zip(plus, minus, strict=True)]


def all_strings(n_labels, *lengths):
    return [z for n in lengths for z in itertools.product(range(n_labels), repeat=n)]


def random_batch(n_labels=5, order=1, n_sequences=23, seed=0, edges=False):
    """Sequences of 0 to 59 positions, of which one has extreme scores."""
    rng = np.random.default_rng(seed)
    lengths = np.concatenate([[0, 1], rng.integers(1, 60, n_sequences - 2)])
    offsets = np.concatenate([[0], lengths.cumsum()])
    nodes = rng.normal(size=(offsets[-1], n_labels))
    nodes[offsets[5] : offsets[6]] *= 500
    edge_scores = rng.normal(size=(len(nodes), n_labels, n_labels)) if edges else None
    if order == 1:
        return scores_of(nodes, rng.normal(size=(n_labels, n_labels)), offsets, edge_scores)
    automaton = Automaton.build(n_labels, all_strings(n_labels, *range(2, order + 1)))
    return scores_of(nodes, rng.normal(size=automaton.n_arcs), offsets, edge_scores, automaton)


KINDS = [
    {},
    {"n_labels": 1},
    {"n_labels": 2, "edges": True},
    {"n_labels": 26},
    {"n_labels": 3, "order": 2},
    {"n_labels": 3, "order": 3},
    {"n_labels": 3, "order": 3, "edges": True},
]
all_kinds = pytest.mark.parametrize("kind", KINDS, ids=str)


def random_direction(potentials, rng):
    return rng.normal(size=potentials.nodes.shape), rng.normal(size=potentials.arcs.shape)


@all_kinds
@pytest.mark.parametrize("arcs_move", [False, True])
def test_equals_central_differences(kind, arcs_move):
    potentials = random_batch(**kind)
    nodes, arcs = random_direction(potentials, np.random.default_rng(1))
    arcs = arcs if arcs_move else None
    result = found_tangent(potentials, nodes, arcs, pairs="each")
    expected = central_differences(potentials, nodes, arcs, pairs="each")
    for name, slopes in zip(FIELDS, expected, strict=True):
        found = getattr(result, name)
        if slopes is None:
            assert found is None
        else:
            np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=3e-8)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 8, 9, 13, 16, 17, 26, 31, 32, 33, 67])
def test_every_width_agrees_with_the_automaton_of_label_pairs(n_labels):
    rng = np.random.default_rng(n_labels)
    nodes, arcs = 2 * rng.normal(size=(23, n_labels)), 2 * rng.normal(size=(n_labels, n_labels))
    plain = scores_of(nodes, arcs, [0, 1, 12, 23])
    # Edges, even if all are zero, go over the automaton.
    edges = replace(plain, edges=np.zeros((23, n_labels, n_labels)))
    direction = random_direction(plain, rng)
    for moves in (direction, direction[:1]):
        found, expected = (found_tangent(p, *moves, pairs="each") for p in (plain, edges))
        for name in FIELDS[:3]:
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-13
            )


@pytest.mark.parametrize(("n_positions", "n_labels"), [(1, 3), (2, 2), (7, 3), (12, 5)])
def test_equals_the_recurrences_of_gross_et_al(n_positions, n_labels):
    rng = np.random.default_rng(n_positions)
    nodes, arcs = rng.normal(size=(n_positions, n_labels)), rng.normal(size=(n_labels, n_labels))
    star = rng.integers(0, n_labels, n_positions)
    other = (star + rng.integers(1, n_labels, n_positions)) % n_labels
    weights = rng.random(n_positions)
    direction = np.zeros_like(nodes)
    direction[np.arange(n_positions), star] = weights
    direction[np.arange(n_positions), other] = -weights
    result = found_tangent(scores_of(nodes, arcs, [0, n_positions]), direction)
    by_node, by_arc = GrossGradient(nodes, arcs).gradient(star, other, weights)
    np.testing.assert_allclose(result.marginals, by_node, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(result.arc_sums, by_arc, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("depth", [70.0, 200.0, 600.0], ids=["1e-30", "1e-87", "log space"])
@pytest.mark.parametrize("seed", range(5))
def test_directions_as_large_as_one_over_the_marginals(depth, seed):
    rng = np.random.default_rng(seed)
    chain = Chain(rng.normal(size=(6, 3)), rng.normal(size=(3, 3)))
    chain.nodes[rng.random((6, 3)) < 0.3] -= depth
    chain.nodes[:, 0] = np.maximum(chain.nodes[:, 0], -5)
    marginals = forward_backward(scores_of(chain.nodes, chain.arcs, [0, 6])).marginals
    assert marginals.min() < np.exp(20 - depth)
    for edges in (None, np.zeros((6, 3, 3))):  # edges go over an automaton
        chain.edges = edges
        check_chain(chain, 1 / marginals, None)
        check_chain(chain, rng.normal(size=(6, 3)) / marginals, rng.normal(size=(3, 3)))


def test_an_improbable_label_far_away_disturbs_nothing():
    # Label 1 of position 0 has a marginal of 1e-30 and a direction of 1e30; a thousand positions
    # later nothing of it is left but the digits of those that move by 1.
    rng = np.random.default_rng(0)
    nodes, arcs = rng.normal(size=(1000, 2)), rng.normal(size=(2, 2))
    nodes[0, 1] = -70.0
    potentials = scores_of(nodes, arcs, [0, 1000])
    marginals = forward_backward(potentials).marginals
    moves = rng.normal(size=nodes.shape)
    plain = tangent(potentials, marginals, moves).marginals
    moves[0, 1] = 1 / marginals[0, 1]
    found = tangent(potentials, marginals, moves).marginals
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[100:], plain[100:], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("scale", [0.0, 3.0, 1e3, -1e5])
@pytest.mark.parametrize("order", [1, 2])
def test_independent_positions_of_a_long_sequence(scale, order):
    # Without arcs every position is on its own: dp = p (v - mean of v).
    rng = np.random.default_rng(0)
    n_positions = 100_000
    nodes, moves = rng.normal(size=(n_positions, 2)), rng.normal(size=(n_positions, 2))
    nodes[::7, 1] = scale
    potentials = scores_of(nodes, np.zeros((2, 2)), [0, n_positions])
    if order > 1:
        automaton = Automaton.build(2, all_strings(2, 2))
        potentials = replace(
            potentials, arcs=np.zeros(automaton.n_arcs), trellis=AutomatonChain(automaton)
        )
    arcs = np.full_like(potentials.arcs, 3.0)  # the same for all labellings
    p = forward_backward(potentials).marginals
    expected = p * (moves - (p * moves).sum(axis=1, keepdims=True))
    for direction in ((moves,), (moves, arcs)):
        result = found_tangent(potentials, *direction)
        np.testing.assert_allclose(result.marginals, expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_long_sequence_equals_central_differences(order):
    rng = np.random.default_rng(order)
    n_positions, n_labels = 100_000, 3
    automaton = Automaton.build(n_labels, all_strings(n_labels, *range(2, order + 1)))
    arcs = 1 + rng.normal(size=(3, 3) if order == 1 else automaton.n_arcs)
    potentials = scores_of(
        rng.normal(size=(n_positions, n_labels)),
        arcs,
        [0, n_positions],
        automaton=None if order == 1 else automaton,
    )
    nodes, arc_moves = random_direction(potentials, rng)
    arc_moves += 1
    result = found_tangent(potentials, nodes, arc_moves)
    expected = central_differences(potentials, nodes, arc_moves)
    np.testing.assert_allclose(result.marginals, expected[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(result.arc_sums, expected[1], rtol=1e-6)


def test_a_known_label_cuts_a_long_sequence_in_two():
    rng = np.random.default_rng(3)
    n_positions, cut = 100_000, 61_234
    nodes, arcs = rng.normal(size=(n_positions, 4)), 2 * rng.normal(size=(4, 4))
    nodes[cut, [0, 1, 3]] = -np.inf
    whole = scores_of(nodes, arcs, [0, n_positions])
    moves, arc_moves = random_direction(whole, rng)
    result = found_tangent(whole, moves, arc_moves)
    # Both parts have the known label.
    parts = [slice(0, cut + 1), slice(cut, n_positions)]
    sums = np.zeros((4, 4))
    for part in parts:
        one = scores_of(nodes[part], arcs, [0, len(nodes[part])])
        found = found_tangent(one, moves[part], arc_moves)
        np.testing.assert_allclose(found.marginals, result.marginals[part], rtol=1e-9, atol=1e-13)
        sums += found.arc_sums
    np.testing.assert_allclose(result.arc_sums, sums, rtol=1e-9)
    assert (result.marginals[cut] == 0).all()


def test_labels_that_never_meet_covary_over_any_distance():
    # Either all labels are 0 or all are 1, with the same probability: V is the sum of all moves of
    # the one or of the other, and each derivative a quarter of their difference.
    n_positions = 20_000
    rng = np.random.default_rng(4)
    potentials = scores_of(
        np.zeros((n_positions, 2)), np.array([[0, -np.inf], [-np.inf, 0]]), [0, n_positions]
    )
    moves = rng.normal(size=(n_positions, 2))
    slope = (moves[:, 0] - moves[:, 1]).sum() / 4
    found = found_tangent(potentials, moves).marginals
    np.testing.assert_allclose(found, np.tile([slope, -slope], (n_positions, 1)), rtol=1e-9)


@all_kinds
def test_the_hessian_is_symmetric(kind):
    potentials, rng = random_batch(**kind), np.random.default_rng(2)
    one, other = random_direction(potentials, rng), random_direction(potentials, rng)

    def product(left, right):
        result = found_tangent(potentials, *right)
        return np.vdot(left[0], result.marginals) + np.vdot(left[1], result.arc_sums)

    assert product(one, other) == pytest.approx(product(other, one), rel=1e-9, abs=1e-9)
    assert product(one, one) >= -1e-9  # a variance


@all_kinds
def test_bit_identical_for_any_number_of_threads(kind):
    potentials = random_batch(n_sequences=60, **kind)
    direction = random_direction(potentials, np.random.default_rng(3))
    one, *others = (
        found_tangent(potentials, *direction, pairs="each", n_threads=n) for n in (1, 2, 7)
    )
    for other in others:
        for name in FIELDS[:3]:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@all_kinds
def test_bit_identical_alone_or_in_a_batch_or_in_another_order(kind):
    potentials = random_batch(**kind)
    nodes, arcs = random_direction(potentials, np.random.default_rng(4))
    batch = found_tangent(potentials, nodes, arcs, pairs="each")
    bounds = list(itertools.pairwise(potentials.offsets))
    for s, (begin, end) in enumerate(bounds):
        alone = found_tangent(
            potentials.part(slice(s, s + 1)), nodes[begin:end], arcs, pairs="each"
        )
        np.testing.assert_array_equal(alone.marginals, batch.marginals[begin:end])
        np.testing.assert_array_equal(alone.pairs, batch.pairs[begin:end])
    order = np.concatenate([np.arange(begin, end) for begin, end in reversed(bounds)])
    turned = replace(
        potentials,
        nodes=potentials.nodes[order],
        edges=None if potentials.edges is None else potentials.edges[order],
        offsets=np.cumsum([0, *(end - begin for begin, end in reversed(bounds))]),
    )
    result = found_tangent(turned, nodes[order], arcs)
    np.testing.assert_array_equal(result.marginals, batch.marginals[order])
    np.testing.assert_allclose(result.arc_sums, batch.arc_sums, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("offsets", [[0], [0, 0], [0, 0, 0]])
def test_nothing_to_do(order, offsets):
    potentials = replace(random_batch(n_labels=3, order=order), nodes=np.empty((0, 3)))
    potentials = replace(potentials, offsets=offsets)
    result = found_tangent(potentials, np.empty((0, 3)), pairs="each")
    assert result.marginals.shape == (0, 3)
    assert result.pairs.shape == (0, 3, 3)
    assert (result.arc_sums == 0).all()


@all_kinds
def test_the_arrays_handed_in_stay_as_they_are_but_for_out(kind):
    potentials = random_batch(**kind)
    nodes, arcs = random_direction(potentials, np.random.default_rng(5))
    marginals, out = forward_backward(potentials).marginals, np.empty_like(nodes)
    handed = [potentials.nodes, potentials.arcs, potentials.offsets, marginals, nodes, arcs]
    kept = [array.copy() for array in handed]
    result = tangent(potentials, marginals, nodes, arcs, out=out)
    assert result.marginals is out
    np.testing.assert_array_equal(out, found_tangent(potentials, nodes, arcs).marginals)
    for now, before in zip(handed, kept, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"marginals": np.zeros((3, 2))}, r"marginals have shape \(3, 2\); expected .* \(4, 2\)"),
        ({"nodes": np.zeros((4, 3))}, r"direction of nodes have shape \(4, 3\); expected that of"),
        ({"arcs": np.zeros(4)}, r"direction of arcs have shape \(4,\); expected .* \(2, 2\)"),
        ({"nodes": [[0, 0], [0, np.nan], [np.inf, 0], [0, 0]]}, "is nan at position 1, label 1;"),
        ({"arcs": [[0, 0], [-np.inf, 0]]}, "direction of arcs is -inf at labels 1 to 0; expected"),
        ({"pairs": "all"}, "pairs is 'all'; expected 'sum', 'each' or None"),
        ({"out": np.zeros((3, 2))}, "marginals must have the shape of nodes"),
    ],
)
def test_wrong_arguments_are_errors(change, message):
    good = {"marginals": np.full((4, 2), 0.5), "nodes": np.zeros((4, 2))}
    with pytest.raises(ValueError, match=message):
        tangent(scores_of(np.zeros((4, 2)), np.zeros((2, 2)), [0, 4]), **(good | change))


def test_out_must_not_be_what_is_read():
    potentials = scores_of(np.zeros((4, 2)), np.zeros((2, 2)), [0, 4])
    marginals, nodes = np.full((4, 2), 0.5), np.zeros((4, 2))
    for out in (marginals, nodes):
        with pytest.raises(ValueError, match="out is where marginals or nodes are; pass an array"):
            tangent(potentials, marginals, nodes, out=out)


def test_a_direction_of_an_automatons_arcs_must_be_finite_numbers():
    potentials = random_batch(n_labels=2, order=2)
    arcs = np.zeros(potentials.trellis.automaton.n_arcs)
    arcs[3] = np.nan
    with pytest.raises(ValueError, match="direction of arcs is nan at arc 3; expected finite"):
        found_tangent(potentials, np.zeros_like(potentials.nodes), arcs)


def test_a_direction_whose_sum_is_too_large_is_no_error():
    potentials = scores_of(np.tile([0.0, -np.inf], (4, 1)), np.zeros((2, 2)), [0, 4])
    result = found_tangent(potentials, np.tile([1.0, 1e308], (4, 1)))
    assert (result.marginals == 0).all()
    assert (result.arc_sums == 0).all()


@all_kinds
def test_no_path_and_bad_scores_name_the_sequence(kind):
    potentials = random_batch(**kind)
    marginals = np.ones_like(potentials.nodes)
    position = potentials.offsets[3]
    potentials.nodes[position] = -np.inf
    with pytest.raises(NoPathError, match="sequence 3 has no labelling with a finite score"):
        tangent(potentials, marginals, marginals)
    potentials.nodes[position] = np.nan
    with pytest.raises(ValueError, match="NaN or \\+inf at position 0 of sequence 3"):
        tangent(potentials, marginals, marginals)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("order", [1, 2])
def test_ctrl_c_ends_a_long_call_before_its_work_is_done(order, n_threads):
    n_labels = 300 if order == 1 else 150
    nodes, offsets = np.zeros((60_000, n_labels)), np.array([0, 30_000, 60_000])
    out = np.full(nodes.shape, np.nan)
    if order == 1:
        arcs, refused = np.zeros((n_labels, n_labels)), np.full(2, 7, dtype=np.uint8)
        outputs = out, None, None, refused
        call = partial(
            _core.fill_tangents, nodes, arcs, offsets, nodes, nodes, None, *outputs, n_threads
        )
    else:
        automaton = Automaton.build(n_labels, all_strings(n_labels, 2))
        scores = automaton.program, nodes, np.zeros(automaton.n_arcs), None, offsets
        outputs = out, None, None, None
        call = partial(
            _core.fill_automaton_tangents, *scores, nodes, nodes, None, None, *outputs, n_threads
        )
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    timer.join()
    assert np.isnan(out).any()
