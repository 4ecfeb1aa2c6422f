"""Every function of the trellis is right at every magnitude of its scores.

Scores of a few hundred are the hard ones: products of their exponentials come to the ends of the
range of a double, one step before the kernels leave it for log space.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.labels import Patterns
from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import (
    AutomatonChain,
    Chain,
    forward_backward,
    k_best,
    log_likelihood,
    log_z,
    sample,
    tangent,
    viterbi,
    weighted_forward_backward,
)
from reference.automata import PatternChain
from reference.batches import Batch
from reference.scores import every_arc, scores_of
from reference.tangent import Covariances, node_gains

MAGNITUDES = [0, 1, 30, 100, 200, 247, 300, 340, 500, 700, 745, 1e3, 1e4, 1e5]
SIGNS = [[1], [-1], [1, -1], [1, 0], [-1, 0], [1, 0, -1]]


def scores(rng, *shape, forbidden=0.0):
    """Numbers around some multiples of one magnitude, and some that are -inf.

    They are multiples of 1 / 64, which add up without rounding.
    """
    magnitude, signs = rng.choice(MAGNITUDES), SIGNS[rng.integers(len(SIGNS))]
    numbers = magnitude * rng.choice(signs, shape) + rng.integers(-128, 129, shape) / 64
    return np.where(rng.random(shape) < forbidden, -np.inf, numbers)


def random_batch(rng):
    """Sequences of several lengths over one automaton, and whether that is one of all pairs."""
    n_labels = rng.integers(1, 6)
    pairs, edges, known = rng.random(3) < [0.5, 0.4, 0.3]
    patterns = list(Patterns.pairs(n_labels))
    if not pairs:
        lengths = rng.integers(1, 5, rng.integers(1, 6))
        patterns = [tuple(rng.integers(0, n_labels, length).tolist()) for length in lengths]
    weights = scores(rng, len(patterns), forbidden=rng.choice([0.0, 0.0, 0.2]))
    every, chains = frozenset(range(n_labels)), []
    for length in rng.integers(1, [9, 9, 6, 5, 4][n_labels - 1], rng.integers(1, 6)):
        codes = rng.integers(-1, n_labels, length) if known else np.full(length, -1)
        nodes, table = scores(rng, length, n_labels), None
        if edges:
            table = scores(rng, length, n_labels, n_labels)
        chains.append(
            PatternChain(nodes, patterns, weights, table, start=every, end=every, known=codes)
        )
    return Batch.of(chains, n_labels), pairs


class Oracle:
    """All about one chain, from its labellings; arrays over them are (M,)."""

    def __init__(self, chain, automaton):
        self.n_labels = chain.nodes.shape[1]
        self.labellings = chain.labellings
        offsets = np.arange(len(self.labellings) + 1) * self.labellings.shape[1]
        taken = automaton.arcs_taken(self.labellings.ravel().astype(np.int32), offsets)
        self.arcs, self.n_arcs = taken.reshape(self.labellings.shape), automaton.n_arcs
        self.scores = chain.scores()
        self.possible = self.scores > -np.inf
        self.log_z = self.log_sum(self.possible)

    def log_sum(self, some):
        return np.logaddexp.reduce(self.scores[some], initial=-np.inf)

    @cached_property
    def probs(self):
        return np.exp(self.scores - self.log_z)

    def find(self, labels):
        """Number of a labelling."""
        return int(np.flatnonzero((self.labellings == labels).all(axis=1))[0])

    def counts(self, codes, n_codes, probs):
        """Of the events codes[:, t] == c, (T, C)."""
        return np.stack([np.bincount(column, probs, n_codes) for column in codes.T])

    def of_labels(self, probs):
        return self.counts(self.labellings, self.n_labels, probs)

    def of_arcs(self, probs):
        return self.counts(self.arcs, self.n_arcs, probs)

    def weighted(self, labels, weights):
        """The weighted likelihood; and expected counts of labels and arcs, (T, K) and (T, A).

        The gradient of log P(y_t | labels before t) is a difference of two posteriors.
        """
        agree, before, total = self.possible, self.log_z, 0.0
        probs, slopes = self.probs, np.zeros(len(self.scores))
        for t, weight in enumerate(weights):
            agree = agree & (self.labellings[:, t] == labels[t])
            now = self.log_sum(agree)
            total += weight * (now - before)
            after = np.where(agree, np.exp(np.where(agree, self.scores - now, 0.0)), 0.0)
            slopes += weight * (probs - after)
            before, probs = now, after
        at = self.find(labels)
        by_label, by_arc = self.of_labels(slopes), self.of_arcs(slopes)
        by_label[np.arange(len(labels)), labels] += weights
        by_arc[np.arange(len(labels)), self.arcs[at]] += weights
        return total, by_label, by_arc

    def draw(self, uniforms):
        """Each label the first whose cumulated probability, given those before, exceeds one."""
        agree, labels = self.possible, []
        for t, uniform in enumerate(uniforms):
            options = [agree & (self.labellings[:, t] == k) for k in range(self.n_labels)]
            shares = np.exp([self.log_sum(some) - self.log_sum(agree) for some in options])
            labels.append(int((np.cumsum(shares) > uniform).argmax()))
            agree = options[labels[-1]]
        return labels


def close(found, expected, rtol=1e-9, atol=1e-9):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def close_probs(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-290)


def as_first_order(potentials):
    """Scores over the automaton of all pairs, as those of a first-order chain."""
    n_labels = potentials.nodes.shape[1]
    table = potentials.arcs[n_labels:].reshape(n_labels, n_labels)
    return replace(potentials, arcs=table, trellis=Chain(n_labels))


def check_posteriors(potentials, oracles, labels, parts):
    result = forward_backward(potentials, labels=labels)
    close(result.log_z, [one.log_z for one in oracles])
    close(log_z(potentials), result.log_z, rtol=1e-12)
    close(log_likelihood(potentials, labels), result.log_likelihoods, rtol=1e-12)
    arcs = sum(one.of_arcs(one.probs).sum(axis=0) for one in oracles)
    close_probs(np.ravel(result.arc_sums), arcs[-result.arc_sums.size :])
    for s, (one, part) in enumerate(zip(oracles, parts, strict=True)):
        close(result.log_likelihoods[s], one.scores[one.find(labels[part])] - one.log_z)
        close_probs(result.marginals[part], one.of_labels(one.probs))


def check_paths(potentials, oracles, rng, parts):
    best, (codes, counts, log_probs) = viterbi(potentials), k_best(potentials, 4)
    uniforms = rng.random((3, potentials.n_positions))
    drawn = sample(potentials, uniforms)
    for s, (one, part) in enumerate(zip(oracles, parts, strict=True)):
        expected = np.sort(one.scores[one.possible])[::-1][:4] - one.log_z
        assert one.scores[one.find(best[part])] == one.scores.max()
        assert counts[s] == len(expected)
        close(log_probs[: counts[s], s], expected)
        found = [one.find(row) for row in codes[: counts[s], part]]
        assert len(set(found)) == counts[s]
        close(one.scores[found] - one.log_z, expected)
        for row, numbers in zip(drawn[:, part], uniforms[:, part], strict=True):
            assert row.tolist() == one.draw(numbers)


def check_weighted(potentials, oracles, labels, rng, parts):
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], potentials.n_positions)
    result = weighted_forward_backward(potentials, labels, weights)
    arcs = 0.0
    for s, (one, part) in enumerate(zip(oracles, parts, strict=True)):
        value, by_label, by_arc = one.weighted(labels[part], weights[part])
        close(result.log_likelihoods[s], value)
        close(result.marginals[part], by_label)
        arcs = arcs + by_arc.sum(axis=0)
    close(np.ravel(result.arc_sums), arcs[-result.arc_sums.size :])


def check_tangent(potentials, oracles, rng, parts):
    moves = rng.normal(size=potentials.nodes.shape)
    arc_moves = rng.normal(size=potentials.arcs.shape)
    marginals = forward_backward(potentials, pairs=None).marginals
    result = tangent(potentials, marginals, moves, arc_moves)
    slopes = sizes = 0.0
    for one, part in zip(oracles, parts, strict=True):
        by_arc = np.zeros(one.n_arcs)
        by_arc[-arc_moves.size :] = arc_moves.ravel()
        gains = node_gains(one.labellings, moves[part]) + by_arc[one.arcs]
        exact = Covariances(one.labellings, one.probs, gains)
        found, size = exact.marginals(one.n_labels)
        assert (np.abs(result.marginals[part] - found) <= 1e-9 * size + 1e-290).all()
        found, size = exact.of(one.arcs, one.n_arcs)
        slopes, sizes = slopes + found.sum(axis=0), sizes + size.sum(axis=0)
    n_arcs = arc_moves.size
    error = np.abs(result.arc_sums.ravel() - slopes[-n_arcs:])
    assert (error <= 1e-9 * sizes[-n_arcs:] + 1e-290).all()


@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_every_function_equals_enumeration_at_every_magnitude(seed):
    rng = np.random.default_rng(seed)
    batch, pairs = random_batch(rng)
    oracles = [Oracle(chain, batch.automaton) for chain in batch.chains]
    if not all(one.possible.any() for one in oracles):
        return
    observed = [one.labellings[rng.choice(np.flatnonzero(one.possible))] for one in oracles]
    labels, parts = np.concatenate(observed), list(batch.parts())
    kinds = [batch.potentials]
    if pairs:
        kinds.append(as_first_order(batch.potentials))
    for potentials in kinds:
        check_posteriors(potentials, oracles, labels, parts)
        check_paths(potentials, oracles, rng, parts)
        check_weighted(potentials, oracles, labels, rng, parts)
        check_tangent(potentials, oracles, rng, parts)


@pytest.mark.parametrize("score", [-200.0, -246.0, -248.2, -266.0, -340.0, 266.0])
def test_arcs_that_all_have_the_same_score_do_not_matter(score):
    nodes = np.tile([0.0, 0.5], (6, 1))
    probs = np.exp(nodes) / np.exp(nodes).sum(axis=1, keepdims=True)
    potentials = scores_of(nodes, np.full((2, 2), score), np.array([0, 6]))
    below = np.tile(probs[:, :1] - 1e-6, (1, 6)).T
    assert not sample(potentials, below).any()
    assert sample(potentials, below + 2e-6).all()
    automaton = Automaton.build(2, Patterns.pairs(2))
    arcs = automaton.arc_scores(np.full(4, score))
    for one in (potentials, replace(potentials, arcs=arcs, trellis=AutomatonChain(automaton))):
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
    result = forward_backward(potentials, patterns=every_arc(automaton))
    assert result.log_z[0] == pytest.approx(-900.0, rel=1e-12)
    assert result.arc_sums.tolist() == pytest.approx([1.0, 1.0, 3.0], rel=1e-12)
    assert np.isfinite(result.pattern_marginals).all()
    moved = tangent(potentials, result.marginals, np.ones((5, 1)))
    assert not moved.arc_sums.any()
