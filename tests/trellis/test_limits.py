"""Inference at its limits: long sequences, large scores, tiny probabilities, empty input."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hedgerow.labels import Patterns
from hedgerow.labels.automaton import Automaton, pair_automaton
from hedgerow.trellis import (
    AutomatonChain,
    forward_backward,
    k_best,
    log_likelihood,
    sample,
    tangent,
    viterbi,
    weighted_forward_backward,
)
from reference.automata import DenseChain, arc_marginals, enumerate_patterns, free_chain
from reference.scores import scores_of
from reference.trellises import all_arcs


def over_pairs(potentials):
    """First-order potentials, over the automaton of all pairs."""
    n_labels = potentials.nodes.shape[1]
    arcs = np.concatenate([np.zeros(n_labels), potentials.arcs.ravel()])
    return replace(potentials, arcs=arcs, trellis=AutomatonChain(pair_automaton(n_labels)))


@pytest.mark.parametrize(
    ("n_positions", "scale", "edges"),
    [(30_000, 1.0, False), (10_000, 500.0, False), (10_000, 1.0, True)],
    ids=["scaled", "log space", "edges"],
)
def test_long_first_order_chains_equal_the_first_order_kernel(n_positions, scale, edges):
    rng = np.random.default_rng(2)
    chain = scores_of(
        scale * rng.normal(size=(n_positions, 3)),
        scale * rng.normal(size=(3, 3)),
        np.array([0, n_positions]),
        rng.normal(size=(n_positions, 3, 3)) if edges else None,
    )
    labels, weights = rng.integers(0, 3, n_positions), rng.random(n_positions)
    one = forward_backward(chain, labels=labels)
    two = forward_backward(over_pairs(chain), labels=labels)
    np.testing.assert_allclose(two.log_z, one.log_z, rtol=1e-12)
    np.testing.assert_allclose(two.log_likelihoods, one.log_likelihoods, rtol=1e-10)
    np.testing.assert_allclose(two.marginals, one.marginals, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(two.arc_sums[3:].reshape(3, 3), one.arc_sums, rtol=1e-9)
    assert two.arc_sums[:3].tolist() == pytest.approx(two.marginals[0].tolist(), rel=1e-12)
    np.testing.assert_array_equal(viterbi(over_pairs(chain)), viterbi(chain))
    one = weighted_forward_backward(chain, labels, weights)
    two = weighted_forward_backward(over_pairs(chain), labels, weights)
    np.testing.assert_allclose(two.log_likelihoods, one.log_likelihoods, rtol=1e-9)
    np.testing.assert_allclose(two.marginals, one.marginals, rtol=1e-9, atol=1e-9)


def test_thousands_of_positions_and_hundreds_of_states():
    # More numbers than are kept at a time: the kernels go through the sequence block by block.
    rng = np.random.default_rng(4)
    n_positions, n_labels = 2_700, 5
    patterns = [z for z in itertools.product(range(n_labels), repeat=5) if rng.random() < 0.7]
    patterns += [(0, 1), (1, 1), (4, 3, 2)]
    weights, nodes = rng.normal(size=len(patterns)), 2 * rng.normal(size=(n_positions, n_labels))
    automaton = Automaton.build(n_labels, patterns)
    assert n_positions * automaton.n_states > 2**21
    arcs = automaton.arc_scores(weights)
    potentials = scores_of(nodes, arcs, np.array([0, n_positions]), None, automaton)
    dense = DenseChain(n_labels, patterns, weights, nodes)

    result = forward_backward(potentials)
    assert result.log_z[0] == pytest.approx(dense.log_z, rel=1e-12)
    np.testing.assert_allclose(result.marginals, dense.marginals(), rtol=1e-9)
    by_label = np.bincount(automaton.labels, result.arc_sums)
    np.testing.assert_allclose(by_label, result.marginals.sum(axis=0), rtol=1e-10)

    codes, counts, log_probs = k_best(potentials, 3)
    assert counts.tolist() == [3]
    np.testing.assert_array_equal(codes[0], viterbi(potentials))
    best = dense.forward(np.maximum)[1]
    assert log_probs[0, 0] == pytest.approx(best - result.log_z[0], rel=1e-10)
    for row, expected in zip(codes, log_probs[:, 0], strict=True):
        assert log_likelihood(potentials, row)[0] == pytest.approx(expected, rel=1e-10)

    uniforms = rng.random((2, n_positions))
    for row, numbers in zip(sample(potentials, uniforms), uniforms, strict=True):
        np.testing.assert_array_equal(row, dense.sample(numbers))

    weighted = weighted_forward_backward(potentials, codes[0], np.full(n_positions, 2.0))
    assert weighted.log_likelihoods[0] == pytest.approx(2 * log_probs[0, 0], rel=1e-10)
    np.testing.assert_allclose(weighted.marginals, 2 * result.marginals, rtol=1e-9)
    np.testing.assert_allclose(weighted.arc_sums, 2 * result.arc_sums, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("n_positions", [5, 300])
def test_nothing_is_lost_next_to_states_that_take_arcs_of_their_own(n_positions):
    # Nearly all weight is on label 0, whose states have arcs of their own for the labels 1 and 2.
    # What the others give to the shared arcs must not be a difference of two numbers close to 1.
    rng = np.random.default_rng(5)
    patterns = [(0, 1), (0, 0, 1), (0, 2), (0, 0, 0, 2), (2, 0, 1), (1, 0)]
    nodes = rng.normal(size=(n_positions, 3)) - [0.0, 45.0, 70.0]
    weights, automaton = rng.normal(size=6), Automaton.build(3, patterns)
    arcs = automaton.arc_scores(weights)
    potentials = scores_of(nodes, arcs, np.array([0, n_positions]), None, automaton)
    result = forward_backward(potentials, patterns=all_arcs(potentials))
    expected = DenseChain(3, patterns, weights, nodes).marginals()
    assert expected[:, 2].max() < 1e-25
    np.testing.assert_allclose(result.marginals, expected, rtol=1e-10)
    if n_positions <= 5:
        chain = free_chain(nodes, patterns, weights)
        wanted = arc_marginals(automaton, chain, enumerate_patterns(chain))
        np.testing.assert_allclose(result.pattern_marginals, wanted, rtol=1e-10)
        np.testing.assert_allclose(result.arc_sums, wanted.sum(axis=0), rtol=1e-10)


def of_order(order, nodes, pairs):
    """Scores of a sequence as a chain, or over an automaton that has a longer pattern too."""
    if order == 1:
        return scores_of(nodes, pairs, [0, len(nodes)])
    automaton = Automaton.build(2, [*Patterns.pairs(2), (0, 1, 1)])
    arcs = automaton.arc_scores([*np.ravel(pairs), 0.0])
    return scores_of(nodes, arcs, [0, len(nodes)], None, automaton)


orders = pytest.mark.parametrize("order", [1, 2])


@orders
def test_paths_that_drift_apart_and_come_back(order):
    # Two labels that never meet: for 5,000 positions label 0 gains, then label 1 catches up. Scaled
    # arithmetic alone would have lost label 1 on the way.
    nodes = np.zeros((10_001, 2))
    nodes[:5_000, 0] = 1.0
    nodes[5_000:10_000, 1] = 1.0
    potentials = of_order(order, nodes, [[0.0, -np.inf], [-np.inf, 0.0]])
    result = forward_backward(potentials)
    np.testing.assert_allclose(result.marginals, 0.5, rtol=1e-9)
    assert result.log_z[0] == pytest.approx(5_000 + np.log(2), rel=1e-12)
    codes = sample(potentials, np.array([[0.4], [0.6]]) + np.zeros(len(nodes)))
    assert codes.tolist() == [[0] * len(nodes), [1] * len(nodes)]


@orders
def test_an_impossible_label_of_weight_0_does_not_count(order):
    potentials = of_order(order, np.zeros((3, 2)), [[0.0, -np.inf], [0.0, 0.0]])
    found = weighted_forward_backward(potentials, [0, 1, 1], [1.0, 0.0, 1.0])
    assert np.isfinite(found.log_likelihoods).all()


@orders
@pytest.mark.parametrize("offsets", [[0], [0, 0], [0, 0, 0]])
def test_no_positions(order, offsets):
    nothing, n_sequences = np.zeros((0, 2)), len(offsets) - 1
    potentials = replace(of_order(order, nothing, np.zeros((2, 2))), offsets=np.array(offsets))
    result = forward_backward(potentials, labels=[], patterns=all_arcs(potentials))
    assert result.log_z.tolist() == result.log_likelihoods.tolist() == [0.0] * n_sequences
    assert result.pattern_marginals.shape == (0, potentials.arcs.size)
    moved = tangent(potentials, nothing, nothing, pairs="each")
    assert moved.pairs.shape == (0, 2, 2)
    for found in (result, moved, weighted_forward_backward(potentials, [], [])):
        assert found.marginals.shape == (0, 2)
        np.testing.assert_array_equal(found.arc_sums, np.zeros(potentials.arcs.shape))
    assert viterbi(potentials).shape == (0,)
    assert sample(potentials, np.zeros((3, 0))).shape == (3, 0)
    codes, counts, log_probs = k_best(potentials, 2)
    assert (codes.shape, counts.tolist()) == ((2, 0), [1] * n_sequences)
    assert log_probs.tolist() == [[0.0] * n_sequences, [-np.inf] * n_sequences]


@pytest.mark.parametrize(
    ("scale", "n_positions"),
    [
        *((scale, 1_000_000) for scale in (1e2, -1e5)),
        *((scale, 20_000) for scale in (-1e2, 8e2, -8e2, 1e5)),
    ],
)
def test_up_to_a_million_positions(scale, n_positions):
    # Without arcs every position is independent: the answers are known whatever the length.
    nodes = np.zeros((n_positions, 2))
    nodes[::2, 1] = scale
    potentials = scores_of(nodes, np.full((2, 2), scale), [0, n_positions])
    result = forward_backward(potentials)
    per_pair = np.logaddexp(0, scale) + np.log(2)
    expected = n_positions // 2 * per_pair + (n_positions - 1) * scale
    assert result.log_z[0] == pytest.approx(expected, rel=1e-12)
    p = np.exp(scale - np.logaddexp(0, scale))
    np.testing.assert_allclose(result.marginals[::2, 1], p, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(result.marginals[1::2], 0.5, rtol=1e-10)
    labels = np.zeros(n_positions, dtype=np.int32)
    labels[::2] = scale > 0
    expected = n_positions // 2 * (np.log(max(p, 1 - p)) - np.log(2))
    assert log_likelihood(potentials, labels)[0] == pytest.approx(expected)
    np.testing.assert_array_equal(viterbi(potentials), labels)


@pytest.mark.parametrize("score", [-200.0, -246.0, -248.2, -266.0, -340.0, 266.0])
def test_arcs_that_all_have_the_same_score_do_not_matter(score):
    nodes = np.tile([0.0, 0.5], (6, 1))
    probs = np.exp(nodes) / np.exp(nodes).sum(axis=1, keepdims=True)
    potentials = scores_of(nodes, np.full((2, 2), score), np.array([0, 6]))
    below = np.tile(probs[:, :1] - 1e-6, (1, 6)).T
    assert not sample(potentials, below).any()
    assert sample(potentials, below + 2e-6).all()
    for one in (potentials, over_pairs(potentials)):
        found = weighted_forward_backward(one, [0, 1, 0, 1, 1, 0], [1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
        expected = np.log(probs[0]) @ [3.0, 6.0]
        assert found.log_likelihoods[0] == pytest.approx(expected, rel=1e-12)


def test_states_that_no_labelling_reaches_may_score_as_they_like():
    # After two labels the automaton never comes back to the state of one label, from where the
    # rest of the sequence would be e^600 times as likely.
    automaton = Automaton.build(1, [(0, 0, 0)])
    potentials = scores_of(
        np.zeros((5, 1)), automaton.arc_scores([-300.0]), np.array([0, 5]), None, automaton
    )
    result = forward_backward(potentials, patterns=all_arcs(potentials))
    assert result.log_z[0] == pytest.approx(-900.0, rel=1e-12)
    assert result.arc_sums.tolist() == pytest.approx([1.0, 1.0, 3.0], rel=1e-12)
    assert np.isfinite(result.pattern_marginals).all()
    moved = tangent(potentials, result.marginals, np.ones((5, 1)))
    assert not moved.arc_sums.any()
