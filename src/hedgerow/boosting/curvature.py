"""Curvature: how far a step may go before labels that depend on each other get in its way.

The Hessian of the negative log-likelihood is the covariance matrix of all events "position t has
label k", or of all events "labels j and k stand at t - 1 and t". Chen et al. (2015) bound it by a
multiple of its diagonal, H_ii = p (1 - p): where

    gamma_i H_ii >= sum_j |H_ij|    (Eq. 6)

holds for all events i, delta^T H delta <= sum_i gamma_i H_ii delta_i^2. Without dependence gamma is
2, as for independent positions; the more the labels depend on each other, the larger it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.boosting.settings import CurvatureKind
from hedgerow.labels import Grammar
from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import Posteriors, Potentials, forward_backward

__all__ = ["Curvature", "by_length", "exact", "first_order", "measure_curvature", "mixing"]


@dataclass(frozen=True, eq=False)
class Curvature:
    """Gammas of N positions of sequences over K labels."""

    nodes: NDArray[np.float32]
    """(N,) of all labels at a position, or (N, K) of each label."""
    edges: NDArray[np.float32] | None
    """(N,) of all label pairs that end at a position; 0 where a sequence begins."""
    pairs: NDArray[np.float64] | None
    """(K, K) sum over all positions of gamma p (1 - p), p the probability of a label pair."""

    def edge_gamma(self, weights: NDArray[np.float64] | None) -> float:
        """Mean of `edges` over the positions that a label pair ends at; 2 if there are none.

        ``weights`` (N,) say how much each position counts.
        """
        if self.edges is None:
            return 2.0
        counts = (self.edges > 0) * (1.0 if weights is None else weights)
        total = float(counts.sum())
        return float(np.einsum("n,n", self.edges, counts)) / total if total > 0 else 2.0


def mixing(
    potentials: Potentials, *, weights: ArrayLike | None = None, n_threads: int
) -> Curvature:
    """Bounds from the rates at which neighbours forget each other (Theorems 4.1 and 4.2).

    ``potentials`` are those of a first-order chain without edges. ``weights`` (S,) say how much
    each sequence counts in ``pairs``; None is 1. All of it is in single precision.
    """
    if potentials.automaton is not None or potentials.edges is not None:
        raise ValueError(
            "mixing rates are known of first-order chains without edges only; "
            "first_order() makes one of an automaton's arcs"
        )
    nodes = np.ascontiguousarray(potentials.nodes, dtype=np.float64)
    arcs = np.ascontiguousarray(potentials.arcs, dtype=np.float64)
    node_gammas = np.empty(len(nodes), dtype=np.float32)
    edge_gammas = np.empty(len(nodes), dtype=np.float32)
    pairs = np.empty(arcs.shape)
    _core.fill_mixing(
        nodes,
        arcs,
        np.ascontiguousarray(potentials.offsets, dtype=np.int64),
        None if weights is None else np.ascontiguousarray(weights, dtype=np.float64),
        node_gammas,
        edge_gammas,
        pairs,
        n_threads,
    )
    return Curvature(node_gammas, edge_gammas, pairs)


def first_order(potentials: Potentials, arc_sums: NDArray[np.float64]) -> Potentials:
    """A first-order chain that resembles a chain over an automaton.

    Above order 1 labels are no Markov chain: the mixing rates of this one are an estimate of how
    far they depend on each other, and no bound.

    The score of a label pair is the average over the arcs whose strings end in it, weighted by
    their expected counts ``arc_sums`` (A,); where these are all 0, it is the highest of their
    scores. A pair in which no arc ends has the score of the arc of its second label.
    """
    automaton = potentials.automaton
    if automaton is None:
        return potentials
    n_labels = automaton.n_labels
    longer, pairs = _last_pairs(automaton)
    scores = np.asarray(potentials.arcs, dtype=np.float64)
    highest = np.full(n_labels * n_labels, -np.inf)
    np.maximum.at(highest, pairs, scores[longer])
    finite = np.isfinite(scores[longer])
    counts = np.where(finite, arc_sums[longer], 0.0)
    totals = np.bincount(pairs, counts, n_labels * n_labels)
    sums = np.bincount(pairs, counts * np.where(finite, scores[longer], 0.0), n_labels * n_labels)
    arcs = np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), highest)
    seen = np.zeros(n_labels * n_labels, dtype=np.bool_)
    seen[pairs] = True
    of_label = np.tile(scores[:n_labels], n_labels)
    table = np.where(seen, arcs, of_label).reshape(n_labels, n_labels)
    return replace(potentials, arcs=table, automaton=None)


def _last_pairs(automaton: Automaton) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The arcs whose strings have two labels or more, and the pair j * K + k that ends each."""
    longer = np.arange(automaton.arc_offsets[1], automaton.n_arcs)
    before = automaton.last_labels[automaton.sources[longer]].astype(np.int64)
    return longer, before * automaton.n_labels + automaton.labels[longer]


def exact(potentials: Potentials, *, n_threads: int, batch: int = 1 << 16) -> NDArray[np.float64]:
    """The smallest gamma of each label at each position, (N, K), by brute force (Eq. 9).

    With P(y_s) = p P(y_s | y_t = k) + (1 - p) P(y_s | y_t != k) Eq. 9 becomes

        gamma = 2 sum_s TV(P(y_s | y_t = k), P(y_s | y_t != k)),

    which has no small differences in it. Every label is pinned and forbidden at every position in
    turn: that takes time quadratic in the length of a sequence. Where a label is impossible or
    certain there is no curvature, and its gamma is 2. ``batch`` is how many positions of changed
    copies go together. Any trellis will do.
    """
    marginals = forward_backward(potentials, pairs=None, n_jobs=n_threads).marginals
    gammas = np.full(marginals.shape, 2.0)
    for sequence in range(potentials.n_sequences):
        begin, end = potentials.offsets[sequence : sequence + 2]
        one = potentials.part(slice(sequence, sequence + 1))
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
    sequence: Potentials, nodes: NDArray[np.float64], n_threads: int
) -> NDArray[np.float64]:
    """Marginals of a sequence with other nodes, (n, T, K)."""
    n_copies, n_positions, n_labels = nodes.shape
    edges = sequence.edges
    copies = replace(
        sequence,
        nodes=nodes.reshape(-1, n_labels),
        offsets=np.arange(n_copies + 1, dtype=np.int64) * n_positions,
        edges=None if edges is None else np.tile(edges, (n_copies, 1, 1)),
    )
    return forward_backward(copies, pairs=None, n_jobs=n_threads).marginals.reshape(nodes.shape)


def by_length(offsets: NDArray[np.int64]) -> NDArray[np.float32]:
    """The gamma that bounds any chain of n positions, 2 n (Corollary 4.1), for each position."""
    lengths = np.diff(offsets)
    return np.repeat((2 * lengths).astype(np.float32), lengths)


def measure_curvature(
    kind: CurvatureKind,
    potentials: Potentials,
    grammar: Grammar,
    posteriors: Posteriors,
    *,
    weights: NDArray[np.float64] | None,
    n_threads: int,
) -> Curvature:
    """Gammas of the nodes as `kind` says, and those of the label pairs by mixing rates.

    Labels that do not depend on each other have a gamma of 2, whatever the kind.
    """
    if not len(grammar.patterns) and grammar.constraints is None:
        return Curvature(np.full(potentials.n_positions, 2.0, dtype=np.float32), None, None)
    assert posteriors.arc_sums is not None
    counts = posteriors.arc_sums.clip(min=0)  # weighted by position, they may be negative
    found = mixing(first_order(potentials, counts), weights=weights, n_threads=n_threads)
    if potentials.automaton is not None:
        found = replace(found, pairs=None)
    if kind == "exact":
        return replace(found, nodes=exact(potentials, n_threads=n_threads).astype(np.float32))
    if kind == "length":
        return replace(found, nodes=by_length(potentials.offsets))
    return found
