"""Curvature: bounds on the curvature of the loss if labels depend on each other.

The Hessian of the negative log-likelihood is the covariance matrix of all events "position t has
label k", or of all events "positions t - 1 and t have the labels j and k". Chen et al. (2015) bound
it by a multiple of its diagonal, H_ii = p (1 - p): where

    gamma_i H_ii >= sum_j |H_ij|    (Eq. 6)

holds for all events i, delta^T H delta <= sum_i gamma_i H_ii delta_i^2. If positions are
independent, gamma is 2; the more their labels depend on each other, the larger it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.settings import CurvatureKind
from hedgerow.labels import Grammar
from hedgerow.trellis import Mixing, Posteriors, Scores, forward_backward

__all__ = ["by_length", "exact", "measure_curvature", "needs_mixing", "temper"]

Float = TypeVar("Float", np.float32, np.float64)

# A gamma up to this is used unchanged: of 2, 4 and 8 it was best on most of eleven tasks.
MODEST = 4.0


def exact(scores: Scores, *, n_threads: int, batch: int = 1 << 16) -> NDArray[np.float64]:
    """The smallest gamma of each label at each position, (N, K), by brute force (Eq. 9).

    With P(y_s) = p P(y_s | y_t = k) + (1 - p) P(y_s | y_t != k) Eq. 9 becomes

        gamma = 2 sum_s TV(P(y_s | y_t = k), P(y_s | y_t != k)),

    which avoids cancellation. Every label is fixed and forbidden at every position in turn, which
    takes time quadratic in the length of a sequence. If a label is impossible or certain, there is
    no curvature, and its gamma is 2. ``batch`` is the number of positions of modified copies that
    are processed together. Any trellis is supported.
    """
    marginals = forward_backward(scores, pairs=None, n_threads=n_threads).marginals
    gammas = np.full(marginals.shape, 2.0)
    for sequence in range(scores.n_sequences):
        begin, end = scores.offsets[sequence : sequence + 2]
        one = scores.part(slice(sequence, sequence + 1))
        possible = marginals[begin:end] > 0
        unsure = np.argwhere(possible & (possible.sum(axis=1, keepdims=True) > 1))
        n_together = max(1, batch // max(1, 2 * len(possible)))
        for first in range(0, len(unsure), n_together):
            t, k = unsure[first : first + n_together].T
            pinned, forbidden = _change_nodes(one.nodes, t, k)
            with_label = _marginals_of_copies(one, pinned, n_threads)
            without = _marginals_of_copies(one, forbidden, n_threads)
            gammas[begin + t, k] = np.abs(with_label - without).sum(axis=(1, 2))
    return gammas


def _change_nodes(
    nodes: NDArray[np.float64], t: NDArray[np.int64], k: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes (n, T, K) with label k alone allowed at t, and with label k forbidden at t."""
    copies = np.arange(len(t))
    forbidden = np.tile(nodes, (len(t), 1, 1))
    pinned = forbidden.copy()
    forbidden[copies, t, k] = -np.inf
    pinned[copies, t] = -np.inf
    pinned[copies, t, k] = nodes[t, k]
    return pinned, forbidden


def _marginals_of_copies(
    sequence: Scores, nodes: NDArray[np.float64], n_threads: int
) -> NDArray[np.float64]:
    """Marginals of a sequence with other nodes, (n, T, K)."""
    n_copies, n_positions, n_labels = nodes.shape
    edges = sequence.edges
    copies = replace(
        sequence,
        nodes=nodes.reshape(-1, n_labels),
        offsets=np.arange(n_copies + 1, dtype=np.int64) * n_positions,
        edges=None if edges is None else np.tile(edges, (n_copies, *[1] * (edges.ndim - 1))),
        parents=None if sequence.parents is None else np.tile(sequence.parents, n_copies),
    )
    return forward_backward(copies, pairs=None, n_threads=n_threads).marginals.reshape(nodes.shape)


def by_length(offsets: NDArray[np.int64]) -> NDArray[np.float32]:
    """The gamma that bounds any graph of n positions, 2 n (Corollary 4.1), for each position."""
    lengths = np.diff(offsets)
    return np.repeat((2 * lengths).astype(np.float32), lengths)


def temper(gammas: NDArray[Float], learning_rate: float) -> NDArray[Float]:
    """The gammas to use if each step is shortened by a learning rate r.

    A step of -r g / (gamma' h), with g the slope and h = p (1 - p), changes the bound by

        -r g^2 / (gamma' h) (1 - r gamma / (2 gamma')),

    and so decreases the loss if gamma' > r gamma / 2. Both the learning rate and gamma shorten
    steps; with both in full, trees stop learning if labels depend strongly on each other. Therefore
    gamma' is r gamma, but at least `MODEST`, and never more than gamma.
    """
    rate = min(learning_rate, 1.0)
    tempered: NDArray[Float] = np.asarray(rate * gammas)
    np.maximum(tempered, MODEST, out=tempered)
    return np.minimum(tempered, gammas, out=tempered)


def needs_mixing(scores: Scores, grammar: Grammar) -> bool:
    """Whether labels depend on each other."""
    return (
        bool(len(grammar.patterns)) or grammar.constraints is not None or scores.edges is not None
    )


def measure_curvature(
    kind: CurvatureKind,
    scores: Scores,
    grammar: Grammar,
    posteriors: Posteriors,
    arc_sums: NDArray[np.float64],
    *,
    weights: NDArray[np.float64] | None,
    n_threads: int,
) -> Mixing:
    """Gammas of the nodes according to `kind`, and those of the label pairs from mixing rates.

    Labels that do not depend on each other have a gamma of 2, whatever the kind.
    """
    if not needs_mixing(scores, grammar):
        twos, nothing = (np.full(scores.n_positions, gamma, np.float32) for gamma in (2.0, 0.0))
        return Mixing(twos, nothing, None)
    mixing = posteriors.mixing
    if mixing is None:
        counts = arc_sums.clip(min=0)  # weighted by position, they may be negative
        mixing = scores.trellis.mixing(scores, counts, weights, n_threads)
    if kind == "exact":
        return replace(mixing, nodes=exact(scores, n_threads=n_threads).astype(np.float32))
    if kind == "length":
        return replace(mixing, nodes=by_length(scores.offsets))
    return mixing
