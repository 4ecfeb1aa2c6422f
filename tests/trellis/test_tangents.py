"""Derivatives of marginals: examples worked by hand, central differences, every width, limits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import AutomatonChain, forward_backward, tangent
from reference.scores import scores_of
from reference.trellises import KINDS, random_batch

FIELDS = ("marginals", "arc_sums", "pairs")


def found_tangent(potentials, nodes, arcs=None, **wanted):
    marginals = forward_backward(potentials, pairs=None).marginals
    return tangent(potentials, marginals, nodes, arcs, **wanted)


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


all_kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


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
        for name in FIELDS:
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-13
            )


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
    n_positions = 20_000
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


def test_a_direction_whose_sum_is_too_large_is_no_error():
    potentials = scores_of(np.tile([0.0, -np.inf], (4, 1)), np.zeros((2, 2)), [0, 4])
    result = found_tangent(potentials, np.tile([1.0, 1e308], (4, 1)))
    assert (result.marginals == 0).all()
    assert (result.arc_sums == 0).all()
