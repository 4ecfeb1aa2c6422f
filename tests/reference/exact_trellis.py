"""All functions of the trellis against the enumeration of all labellings of short sequences."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from hedgerow.trellis import (
    Chain,
    NoPathError,
    forward_backward,
    k_best,
    log_likelihood,
    log_z,
    sample,
    tangent,
    viterbi,
    weighted_forward_backward,
)
from reference.automata import draw_labels, enumerate_patterns, weighted_log_likelihood
from reference.tangent import covariances, node_gains
from reference.trellises import FUNCTIONS, all_arcs

close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)
close_probs = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-300)


def check_batch(batch, rng, k):
    """All functions, with the automaton of a batch, and as a chain if it scores only pairs."""
    exact = [Exact(chain, batch.automaton) for chain in batch.chains]
    if any(one.answers is None for one in exact):
        for potentials in forms_of(batch):
            check_refused(potentials)
        return
    for potentials in forms_of(batch):
        check_posteriors(potentials, batch, exact, rng)
        check_best(potentials, batch, exact, k)
        check_samples(potentials, batch, exact, rng)
        check_weighted(potentials, batch, exact, rng)
        check_tangent(potentials, batch, exact, *random_direction(potentials, rng))
    check_patterns(batch, exact)


def forms_of(batch):
    """The scores of a batch over its automaton, and if pairs are all that it scores as a chain."""
    potentials, n_labels = batch.potentials, batch.automaton.n_labels
    yield potentials
    labels, pairs = np.split(potentials.arcs, [n_labels])
    if has_all_pairs(batch) and len(pairs) == n_labels**2 and not labels.any():
        arcs = pairs.reshape(n_labels, n_labels)
        yield replace(potentials, arcs=arcs, trellis=Chain(n_labels))


def has_all_pairs(batch):
    """Whether its automaton has an arc for every pair of labels."""
    n_labels = batch.automaton.n_labels
    return n_labels + n_labels**2 in batch.automaton.arc_offsets[2:3]


def wanted_pairs(batch):
    return "each" if has_all_pairs(batch) else "sum"


class Exact:
    """Sums over the M labellings of one chain; `answers` is None if all of them are forbidden."""

    def __init__(self, chain, automaton):
        self.chain, self.answers = chain, enumerate_patterns(chain)
        self.n_labels, self.n_arcs = automaton.n_labels, automaton.n_arcs
        # Codes of labels, arcs and pairs of labels, (M, T) each.
        self.every = chain.labellings
        offsets = np.arange(len(self.every) + 1) * self.every.shape[1]
        taken = automaton.arcs_taken(self.every.ravel().astype(np.int32), offsets)
        self.arcs = taken.reshape(self.every.shape)
        self.pairs = self.every.copy()
        self.pairs[:, 1:] += self.n_labels * self.every[:, :-1]

    def sum(self, masses):
        """Masses (M,) or (M, T) by label (T, K), arc (T, A) and pair (T, K, K)."""
        masses = np.broadcast_to(masses.reshape(len(masses), -1), self.every.shape)
        marginals = _count(self.every, self.n_labels, masses)
        arcs = _count(self.arcs, self.n_arcs, masses)
        pairs = _count(self.pairs, self.n_labels**2, masses)
        pairs[:1] = 0.0
        pairs = pairs.reshape(-1, self.n_labels, self.n_labels)
        return SimpleNamespace(marginals=marginals, arcs=arcs, pairs=pairs)

    def find(self, labels):
        """Number of a labelling."""
        return int(np.flatnonzero((self.every == labels).all(axis=1))[0])

    def weighted_counts(self, labels, weights):
        """Expected counts of a weighted likelihood, in the format of `sum`.

        The gradient of log P(y_t | labels before t) is a difference of two posteriors.
        """
        scores, probs = self.answers.scores, self.answers.probs
        agree, slopes = scores > -np.inf, np.zeros(self.every.shape)
        for t, weight in enumerate(weights):
            agree = agree & (self.every[:, t] == labels[t])
            after = np.exp(np.where(agree, scores, -np.inf) - np.logaddexp.reduce(scores[agree]))
            slopes += weight * (probs - after)[:, None]
            probs = after
        slopes[self.find(labels)] += weights
        return self.sum(slopes)


def _count(codes, n_codes, masses):
    """Of the events codes[:, t] == c, (T, C)."""
    rows = [np.bincount(c, m, n_codes) for c, m in zip(codes.T, masses.T, strict=True)]
    return np.array(rows).reshape(-1, n_codes)


def check_posteriors(potentials, batch, exact, rng):
    labels = rng.integers(0, potentials.n_labels, potentials.n_positions)
    weights = rng.random(potentials.n_sequences)
    result = forward_backward(
        potentials,
        labels=labels,
        pairs=wanted_pairs(batch),
        patterns=all_arcs(potentials),
        weights=weights,
    )
    close(log_z(potentials), result.log_z, rtol=1e-12, atol=1e-12)
    close(log_likelihood(potentials, labels), result.log_likelihoods, rtol=1e-12, atol=1e-12)
    n_arcs, sums = potentials.arcs.size, 0.0
    for s, (one, part) in enumerate(zip(exact, batch.parts(), strict=True)):
        expected = one.sum(one.answers.probs)
        close(result.log_z[s], one.answers.log_z)
        close(result.log_likelihoods[s], one.answers.log_probs[tuple(labels[part].tolist())])
        close_probs(result.marginals[part], expected.marginals)
        close_probs(result.pattern_marginals[part], expected.arcs[:, -n_arcs:])
        sums = sums + weights[s] * expected.arcs.sum(axis=0)
        if result.pairs is not None:
            close_probs(result.pairs[part], expected.pairs)
    close_probs(np.ravel(result.arc_sums), sums[-n_arcs:])


def check_patterns(batch, exact):
    potentials, automaton = batch.potentials, batch.automaton
    by_arc = forward_backward(potentials, pairs=None, patterns=all_arcs(potentials))
    found = automaton.pattern_sums(by_arc.pattern_marginals)[:, : batch.n_patterns]
    members = automaton.pattern_members(batch.n_patterns)
    alone = forward_backward(potentials, pairs=None, patterns=members).pattern_marginals
    for one, part in zip(exact, batch.parts(), strict=True):
        close_probs(found[part], one.answers.pattern_marginals)
        close_probs(alone[part], one.answers.pattern_marginals)


def check_best(potentials, batch, exact, k):
    best, (codes, counts, log_probs) = viterbi(potentials), k_best(potentials, k)
    np.testing.assert_array_equal(codes[0], best)
    for s, (one, part) in enumerate(zip(exact, batch.parts(), strict=True)):
        expected = [score - one.answers.log_z for score, _ in one.answers.best[:k]]
        # Of equally good labellings viterbi finds the first.
        assert tuple(best[part].tolist()) == one.answers.best[0][1]
        assert counts[s] == len(expected)
        found = [tuple(row.tolist()) for row in codes[: counts[s], part]]
        assert len(set(found)) == counts[s]
        close([one.answers.log_probs[labels] for labels in found], expected)
        close(log_probs[: counts[s], s], expected)
        assert (log_probs[counts[s] :, s] == -np.inf).all()


def check_samples(potentials, batch, exact, rng):
    uniforms = rng.random((7, potentials.n_positions))
    uniforms[3:] = np.array([0.0, 5e-324, 0.5, np.nextafter(1.0, 0.0)])[:, None]
    codes = sample(potentials, uniforms)
    for one, part in zip(exact, batch.parts(), strict=True):
        for labels, numbers in zip(codes[:3, part], uniforms[:3, part], strict=True):
            assert labels.tolist() == draw_labels(one.chain, numbers)
        for labels in codes[3:, part].tolist():
            # No factor is 0, nor so small that a double cannot hold it.
            assert one.answers.log_probs[tuple(labels)] >= -746.0 * len(labels)


def check_weighted(potentials, batch, exact, rng):
    observed = [one.answers.best[rng.integers(len(one.answers.best))][1] for one in exact]
    labels = np.concatenate(observed).astype(np.int32)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], potentials.n_positions)
    result = weighted_forward_backward(potentials, labels, weights, pairs=wanted_pairs(batch))
    assert np.isnan(result.log_z).all()
    close(result.marginals.sum(axis=1), weights)
    sums = 0.0
    for s, (one, part) in enumerate(zip(exact, batch.parts(), strict=True)):
        value = weighted_log_likelihood(one.chain, labels[part], weights[part])
        expected = one.weighted_counts(labels[part], weights[part])
        close(result.log_likelihoods[s], value)
        close(result.marginals[part], expected.marginals, atol=1e-9)
        sums = sums + expected.arcs.sum(axis=0)
        if result.pairs is not None:
            close(result.pairs[part], expected.pairs, atol=1e-9)
    close(np.ravel(result.arc_sums), sums[-result.arc_sums.size :], atol=1e-9)


def random_direction(potentials, rng):
    """A direction of the nodes, and of the arcs or None; impossible labels may have any value."""
    nodes = np.where(potentials.nodes == -np.inf, 1e300, rng.normal(size=potentials.nodes.shape))
    return nodes, rng.normal(size=potentials.arcs.shape) if rng.random() < 0.5 else None


def check_tangent(potentials, batch, exact, nodes, arcs):
    marginals = forward_backward(potentials, pairs=None).marginals
    result = tangent(potentials, marginals, nodes, arcs, pairs=wanted_pairs(batch))
    sums = sum_sizes = 0.0
    for one, part in zip(exact, batch.parts(), strict=True):
        gains = node_gains(one.every, nodes[part])
        if arcs is not None:
            by_arc = np.zeros(one.n_arcs)
            by_arc[-arcs.size :] = arcs.ravel()
            gains = gains + by_arc[one.arcs]
        slopes, sizes = map(one.sum, covariances(one.answers.probs, gains))
        check_slopes(result.marginals[part], slopes.marginals, sizes.marginals)
        sums, sum_sizes = sums + slopes.arcs.sum(axis=0), sum_sizes + sizes.arcs.sum(axis=0)
        if result.pairs is not None:
            check_slopes(result.pairs[part], slopes.pairs, sizes.pairs)
    n_arcs = result.arc_sums.size
    check_slopes(np.ravel(result.arc_sums), sums[-n_arcs:], sum_sizes[-n_arcs:])


def check_slopes(found, slopes, sizes):
    """Compare to the possible precision: `sizes` are the magnitudes of what was summed."""
    assert found.shape == slopes.shape
    assert (np.abs(found - slopes) <= 1e-9 * sizes + 1e-290).all()
    assert (found[sizes == 0] == 0).all()


def check_refused(potentials):
    """Every function refuses a sequence without labellings."""
    for function in FUNCTIONS.values():
        with pytest.raises(NoPathError, match=r"sequence \d has no labelling with a finite score"):
            function(potentials)
