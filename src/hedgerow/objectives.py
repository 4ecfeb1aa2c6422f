"""Objectives: from potentials, by way of marginals, to a loss and its slopes.

Slopes are the gradient of the loss with respect to the potentials themselves. What the potentials
are made of, weights or trees, takes it from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.trellis import (
    Posteriors,
    Potentials,
    forward_backward,
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
        Label of each position.
    n_labels : int
        Number of labels, K.
    sequence_weights : (S,) or None
        How much each sequence counts.
    position_weights : (N,) or None
        How much each position counts, its sequence's weight included, if positions differ within a
        sequence; see `hedgerow.trellis.weighted_forward_backward`.
    """

    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    n_labels: int
    sequence_weights: NDArray[np.float64] | None = None
    position_weights: NDArray[np.float64] | None = None

    def part(self, sequences: slice) -> Targets:
        """Only some consecutive sequences."""
        offsets = self.offsets[sequences.start : sequences.stop + 1]
        positions = slice(int(offsets[0]), int(offsets[-1]))
        by_sequence, by_position = self.sequence_weights, self.position_weights
        return Targets(
            offsets - offsets[0],
            self.codes[positions],
            self.n_labels,
            None if by_sequence is None else by_sequence[sequences],
            None if by_position is None else by_position[positions],
        )

    @cached_property
    def pair_codes(self) -> NDArray[np.int32]:
        """Label pair j * K + k that ends at each position, (N,), -1 where a sequence begins."""
        codes = np.full(len(self.codes), -1, dtype=np.int32)
        codes[1:] = self.codes[:-1] * self.n_labels + self.codes[1:]
        codes[self.offsets[:-1]] = -1
        return codes

    @cached_property
    def pair_counts(self) -> NDArray[np.float64]:
        """How much each label pair counts in all, (K, K)."""
        follows = self.pair_codes >= 0
        weights = None if self.weights is None else self.weights[follows]
        counts = np.bincount(self.pair_codes[follows], weights, self.n_labels * self.n_labels)
        return counts.astype(np.float64).reshape(self.n_labels, self.n_labels)

    @cached_property
    def weights(self) -> NDArray[np.float64] | None:
        """How much each position counts, (N,), or None if all count 1."""
        if self.position_weights is not None or self.sequence_weights is None:
            return self.position_weights
        return np.repeat(self.sequence_weights, np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Slopes:
    """A loss, and how it changes with the potentials."""

    loss: float
    nodes: NDArray[np.float64]
    """(N, K)"""
    arcs: NDArray[np.float64]
    """(K, K)"""
    edges: NDArray[np.float64] | None
    """(N, K, K), if the potentials have edges."""


def likelihood(
    potentials: Potentials,
    targets: Targets,
    *,
    n_threads: int,
    out: NDArray[np.float64] | None = None,
) -> Slopes:
    """Negative log-likelihood; its slopes are expected minus observed counts, p - mu.

    ``out`` (N, K), where given, receives the slopes of the nodes.
    """
    posteriors = _posteriors(potentials, targets, n_threads, out)
    assert posteriors.log_likelihoods is not None
    log_likelihoods = posteriors.log_likelihoods
    nodes, edges = posteriors.marginals, posteriors.pairs
    if targets.position_weights is None and targets.sequence_weights is not None:
        assert targets.weights is not None
        log_likelihoods = log_likelihoods * targets.sequence_weights
        nodes *= targets.weights[:, None]
        if edges is not None:
            edges *= targets.weights[:, None, None]
    _subtract_observed(nodes, targets.codes, targets.weights)
    if edges is None:
        assert posteriors.pair_sums is not None
        arcs = posteriors.pair_sums - targets.pair_counts
    else:
        by_code = edges.reshape(len(edges), -1)
        _subtract_observed(by_code, targets.pair_codes, targets.weights)
        arcs = by_code.sum(axis=0).reshape(targets.n_labels, targets.n_labels)
    return Slopes(-float(log_likelihoods.sum()), nodes, arcs, edges)


def _posteriors(
    potentials: Potentials, targets: Targets, n_threads: int, out: NDArray[np.float64] | None
) -> Posteriors:
    nodes, arcs, edges = potentials.nodes, potentials.arcs, potentials.edges
    if targets.position_weights is not None:
        return weighted_forward_backward(
            nodes,
            arcs,
            potentials.offsets,
            targets.codes,
            targets.position_weights,
            edges=edges,
            pairs="sum" if edges is None else "each",
            out=out,
            n_jobs=n_threads,
        )
    return forward_backward(
        nodes,
        arcs,
        potentials.offsets,
        labels=targets.codes,
        edges=edges,
        pairs="sum" if edges is None else "each",
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
