"""Objectives: from potentials, by way of marginals, to a loss and its slopes.

Slopes are the gradient of the loss with respect to the potentials themselves. What the potentials
are made of, weights or trees, takes it from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels import pin_known
from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import (
    NoPathError,
    Pairs,
    Posteriors,
    Potentials,
    forward_backward,
    log_likelihood,
    log_z,
    weighted_forward_backward,
)


@dataclass(frozen=True, eq=False)
class Targets:
    """How N positions of S sequences should be labelled, and how much each of them counts.

    Attributes
    ----------
    offsets : (S + 1,) int64
        Sequence s holds the positions ``offsets[s]`` to ``offsets[s + 1]``.
    codes : (N,) int32
        Label of each position, -1 if it is not known.
    n_labels : int
        Number of labels, K.
    automaton : Automaton or None
        What the arcs of the potentials belong to; None is a first-order chain.
    sequence_weights : (S,) or None
        How much each sequence counts.
    position_weights : (N,) or None
        How much each position counts, its sequence's weight included, if positions differ within a
        sequence; see `hedgerow.trellis.weighted_forward_backward`. All labels must be known then.
    """

    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    n_labels: int
    automaton: Automaton | None = None
    sequence_weights: NDArray[np.float64] | None = None
    position_weights: NDArray[np.float64] | None = None

    @property
    def n_known(self) -> int:
        """Number of positions whose label is known."""
        return int(np.sum(self.codes >= 0))

    @property
    def total_weight(self) -> float:
        """How much all positions whose label is known count together."""
        if self.weights is None:
            return float(self.n_known)
        return float(self.weights[self.codes >= 0].sum())

    @cached_property
    def mean_weights(self) -> NDArray[np.float64] | None:
        """How much each sequence counts, (S,), in the mean over its positions; None if all do 1."""
        if self.position_weights is None:
            return self.sequence_weights
        lengths = np.diff(self.offsets)
        sums = np.add.reduceat(np.append(self.position_weights, 0.0), self.offsets[:-1])
        means: NDArray[np.float64] = np.where(lengths > 0, sums, 0.0) / lengths.clip(min=1)
        return means

    def part(self, sequences: slice) -> Targets:
        """Only some consecutive sequences."""
        offsets = self.offsets[sequences.start : sequences.stop + 1]
        positions = slice(int(offsets[0]), int(offsets[-1]))
        by_sequence, by_position = self.sequence_weights, self.position_weights
        return Targets(
            offsets - offsets[0],
            self.codes[positions],
            self.n_labels,
            self.automaton,
            None if by_sequence is None else by_sequence[sequences],
            None if by_position is None else by_position[positions],
        )

    @cached_property
    def partial(self) -> Partial | None:
        """The sequences in which some labels are not known; None if there are none."""
        unknown = np.flatnonzero(self.codes < 0)
        if not len(unknown):
            return None
        lengths = np.diff(self.offsets)
        of_position = np.repeat(np.arange(len(lengths)), lengths)
        sequences = np.unique(of_position[unknown])
        positions = np.flatnonzero(np.isin(of_position, sequences))
        offsets = np.concatenate([[0], np.cumsum(lengths[sequences])]).astype(np.int64)
        return Partial(sequences, positions, offsets, self.codes[positions])

    @cached_property
    def full_codes(self) -> NDArray[np.int32]:
        """Labels of the sequences whose labels are all known, (N,); -1 in the others."""
        if self.partial is None:
            return self.codes
        codes = self.codes.copy()
        codes[self.partial.positions] = -1
        return codes

    @cached_property
    def pair_codes(self) -> NDArray[np.int32]:
        """Label pair j * K + k that ends at each position, (N,), -1 if none that is known does."""
        codes = np.full(len(self.codes), -1, dtype=np.int32)
        known = (self.codes[:-1] >= 0) & (self.codes[1:] >= 0)
        pairs = self.codes[:-1] * self.n_labels + self.codes[1:]
        codes[1:] = np.where(known, pairs, -1)
        codes[self.offsets[:-1][np.diff(self.offsets) > 0]] = -1
        return codes

    @cached_property
    def arc_counts(self) -> NDArray[np.float64]:
        """How much each arc counts in all, (K, K) or (A,), but for partially labelled sequences."""
        shape: tuple[int, ...] = (self.n_labels, self.n_labels)
        taken = self.pair_codes
        if self.automaton is not None:
            shape = (self.automaton.n_arcs,)
            taken = self.automaton.arcs_taken(self.codes, self.offsets)
        taken = np.where(self.full_codes >= 0, taken, -1)
        counted = taken >= 0
        weights = None if self.weights is None else self.weights[counted]
        counts = np.bincount(taken[counted], weights, int(np.prod(shape)))
        return counts.astype(np.float64).reshape(shape)

    @cached_property
    def weights(self) -> NDArray[np.float64] | None:
        """How much each position counts, (N,), or None if all count 1."""
        if self.position_weights is not None or self.sequence_weights is None:
            return self.position_weights
        return np.repeat(self.sequence_weights, np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Partial:
    """Partially labelled sequences: their numbers, positions (M,), offsets and codes (M,)."""

    sequences: NDArray[np.int64]
    positions: NDArray[np.int64]
    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]

    def restrict(self, potentials: Potentials) -> Potentials:
        """The potentials of these sequences, with all labels forbidden but those that are known."""
        nodes = potentials.nodes[self.positions]
        pin_known(nodes, self.codes)
        edges = None if potentials.edges is None else potentials.edges[self.positions]
        return replace(potentials, nodes=nodes, offsets=self.offsets, edges=edges)


@dataclass(frozen=True, eq=False)
class Expectations:
    """A loss, and what is expected of the labels with and without knowing them."""

    loss: float
    """Negative log-likelihood of the known labels, weights included."""
    posteriors: Posteriors
    """Of all labellings. With position weights their marginals and arc sums are weighted counts."""
    given: Posteriors | None
    """Of the labellings that agree with the known labels, for partially labelled sequences."""

    def arc_slopes(self, targets: Targets) -> NDArray[np.float64]:
        """How the loss changes with the scores of the arcs: expected minus observed counts."""
        assert self.posteriors.arc_sums is not None
        slopes = self.posteriors.arc_sums - targets.arc_counts
        if self.given is not None:
            assert self.given.arc_sums is not None
            slopes -= self.given.arc_sums
        return slopes


@dataclass(frozen=True, eq=False)
class Slopes:
    """A loss, and how it changes with the potentials."""

    loss: float
    nodes: NDArray[np.float64]
    """(N, K)"""
    arcs: NDArray[np.float64]
    """(K, K), or (A,) with an automaton"""
    edges: NDArray[np.float64] | None
    """(N, K, K), if the potentials have edges."""


def expect(
    potentials: Potentials,
    targets: Targets,
    *,
    n_threads: int,
    out: NDArray[np.float64] | None = None,
) -> Expectations:
    """Negative log-likelihood, and the expected counts that its slopes are made of.

    Where labels are not known the likelihood is that of the known ones, the sum over all labellings
    that agree with them. ``out`` (N, K), where given, receives the marginals.
    """
    posteriors = _posteriors(potentials, targets, n_threads, out)
    assert posteriors.log_likelihoods is not None
    partial, given = targets.partial, None
    if partial is not None:
        weights = targets.sequence_weights
        given = forward_backward(
            partial.restrict(potentials),
            pairs="sum" if potentials.edges is None else "each",
            weights=None if weights is None else weights[partial.sequences],
            n_jobs=n_threads,
        )
        posteriors.log_likelihoods[partial.sequences] = (
            given.log_z - posteriors.log_z[partial.sequences]
        )
    log_likelihoods = posteriors.log_likelihoods
    if targets.position_weights is None and targets.sequence_weights is not None:
        log_likelihoods = log_likelihoods * targets.sequence_weights
    return Expectations(-float(log_likelihoods.sum()), posteriors, given)


def likelihood(
    potentials: Potentials,
    targets: Targets,
    *,
    n_threads: int,
    out: NDArray[np.float64] | None = None,
) -> Slopes:
    """Negative log-likelihood; its slopes are expected minus observed counts, p - mu.

    Where labels are not known "observed" is what is expected of the labellings that agree with the
    known ones. ``out`` (N, K), where given, receives the slopes of the nodes.
    """
    expected = expect(potentials, targets, n_threads=n_threads, out=out)
    nodes, edges = expected.posteriors.marginals, expected.posteriors.pairs
    if targets.partial is not None:
        assert expected.given is not None
        positions = targets.partial.positions
        nodes[positions] -= expected.given.marginals
        if edges is not None and expected.given.pairs is not None:
            edges[positions] -= expected.given.pairs
    if targets.position_weights is None and targets.weights is not None:
        nodes *= targets.weights[:, None]
        if edges is not None:
            edges *= targets.weights[:, None, None]
    full = targets.full_codes
    _subtract_observed(nodes, full, targets.weights)
    if edges is not None:
        pair_codes = np.where(full >= 0, targets.pair_codes, -1)
        _subtract_observed(edges.reshape(len(edges), -1), pair_codes, targets.weights)
    return Slopes(expected.loss, nodes, expected.arc_slopes(targets), edges)


def log_likelihoods(
    potentials: Potentials, targets: Targets, *, n_threads: int
) -> NDArray[np.float64]:
    """Log-likelihood of each sequence's known labels, (S,); -inf where they cannot be completed."""
    codes = targets.codes.clip(min=0)
    found = log_likelihood(potentials, codes, n_jobs=n_threads)
    partial = targets.partial
    if partial is not None:
        restricted = _log_z_or_nothing(partial.restrict(potentials), n_threads)
        found[partial.sequences] = (
            restricted - log_z(potentials, n_jobs=n_threads)[partial.sequences]
        )
    return found


def _log_z_or_nothing(potentials: Potentials, n_threads: int) -> NDArray[np.float64]:
    """Log Z of each sequence, -inf where there is no labelling."""
    try:
        return log_z(potentials, n_jobs=n_threads)
    except NoPathError:
        if potentials.n_sequences == 1:
            return np.array([-np.inf])
        half = potentials.n_sequences // 2
        parts = potentials.part(slice(0, half)), potentials.part(slice(half, None))
        return np.concatenate([_log_z_or_nothing(part, n_threads) for part in parts])


def _posteriors(
    potentials: Potentials, targets: Targets, n_threads: int, out: NDArray[np.float64] | None
) -> Posteriors:
    pairs: Pairs = "sum" if potentials.edges is None else "each"
    if targets.position_weights is not None:
        return weighted_forward_backward(
            potentials,
            targets.codes,
            targets.position_weights,
            pairs=pairs,
            out=out,
            n_jobs=n_threads,
        )
    return forward_backward(
        potentials,
        # A label that is not known counts for nothing here: any code will do.
        labels=targets.codes if targets.partial is None else targets.codes.clip(min=0),
        pairs=pairs,
        weights=targets.sequence_weights,
        out=out,
        n_jobs=n_threads,
    )


def _subtract_observed(
    expected: NDArray[np.float64],
    codes: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
) -> None:
    """Subtract from expected counts (N, n_outputs) what was observed; code -1 is nothing."""
    positions = np.flatnonzero(codes >= 0)
    observed = 1.0 if weights is None else weights[positions]
    expected[positions, codes[positions]] -= observed
