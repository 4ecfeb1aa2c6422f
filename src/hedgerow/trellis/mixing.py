"""Mixing rates: how strongly the labels of a sequence depend on each other.

Chen et al. (2015), Theorems 4.1 and 4.2, bound the curvature of the likelihood by mixing rates: how
much of a change at one position is passed on to the next. For tree-shaped graphs Theorem 4.2 does
not hold, and the kernel uses another bound. `hedgerow.boosting.curvature` explains gamma. An arc of
a label automaton stands for a string: the labels that its source state remembers, followed by the
label that the arc leads to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.labels.automaton import Automaton
from hedgerow.trellis.reading import kernel_arrays, read_floats
from hedgerow.trellis.trellis import Mixing, Outputs, Scores

__all__ = ["allocate_mixing", "average_edges", "average_pair_scores", "measure_mixing"]


def measure_mixing(
    scores: Scores, arcs: NDArray[np.float64], weights: ArrayLike | None, n_threads: int
) -> Mixing:
    """Mixing of a first-order model with the scores ``arcs`` (K, K), in single precision.

    If the scores have edges, these must be scores of label pairs, (N, K, K).
    ``weights`` (S,) are the weights of the sequences in the curvatures of the arcs; None is 1.
    """
    single = scores.parents is None and _core.takes_single_edges(scores.n_labels)
    nodes, _, edges, offsets = kernel_arrays(scores, single_edges=single)
    found = allocate_mixing(scores)
    if scores.parents is not None:
        bounds = Outputs(mixing=found).gammas
        counts = None if weights is None else read_floats(weights)
        graph = _core.GraphScores(nodes, read_floats(arcs), edges, offsets, scores.parents, None)
        graph.fill_posteriors(
            None, None, None, None, None, None, None, bounds, counts, n_threads, scores.bound
        )
        return found
    _core.fill_mixing(
        nodes,
        read_floats(arcs),
        edges,
        offsets,
        None if weights is None else read_floats(weights),
        found.nodes,
        found.edges,
        found.arc_curvatures,
        n_threads,
        scores.bound,
    )
    return found


def allocate_mixing(scores: Scores) -> Mixing:
    """Arrays for the mixing rates of a first-order chain."""
    n_positions, n_labels = np.shape(scores.nodes)
    gammas = [np.empty(n_positions, dtype=np.float32) for _ in range(2)]
    return Mixing(gammas[0], gammas[1], np.empty((n_labels, n_labels)))


def average_pair_scores(
    automaton: Automaton, arcs: ArrayLike, arc_sums: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores of label pairs, (K, K), of a first-order chain that resembles one over an automaton.

    Above order 1 labels are not a Markov chain: mixing rates that are computed from these scores
    are an estimate of how strongly labels depend on each other, not a bound.

    The score of a label pair is the average over the arcs whose strings end in it, weighted by
    their expected counts ``arc_sums`` (A,); if these are all 0, it is the highest of their scores.
    A pair in which no arc ends has the score of the arc of its second label.
    """
    n_labels = automaton.n_labels
    longer, pairs = _last_pairs(automaton)
    scores = np.asarray(arcs, dtype=np.float64)
    highest = np.full(n_labels * n_labels, -np.inf)
    np.maximum.at(highest, pairs, scores[longer])
    finite = np.isfinite(scores[longer])
    counts = np.where(finite, arc_sums[longer], 0.0)
    totals = np.bincount(pairs, counts, n_labels * n_labels)
    sums = np.bincount(pairs, counts * np.where(finite, scores[longer], 0.0), n_labels * n_labels)
    averages = np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), highest)
    seen = np.zeros(n_labels * n_labels, dtype=np.bool_)
    seen[pairs] = True
    of_label = np.tile(scores[:n_labels], n_labels)
    table: NDArray[np.float64] = np.where(seen, averages, of_label).reshape(n_labels, n_labels)
    return table


def average_edges(
    automaton: Automaton,
    edges: NDArray[np.float64],
    arc_sums: NDArray[np.float64],
    n_threads: int,
) -> NDArray[np.float64]:
    """Edges of label pairs, (N, K, K), that resemble edges of arcs, (N, A).

    The edge of a label pair is the average over the arcs whose strings end in it, weighted by their
    expected counts ``arc_sums`` (A,), or equally if these are all 0. A pair in which no arc ends
    has the edge of the arc of its second label.
    """
    n_labels, n_pairs = automaton.n_labels, automaton.n_labels**2
    longer, pairs = _last_pairs(automaton)
    counts = arc_sums[longer].clip(min=0)
    counts = np.where(np.bincount(pairs, counts, n_pairs)[pairs] > 0, counts, 1.0)
    totals = np.bincount(pairs, counts, n_pairs)
    unseen = np.flatnonzero(totals == 0)
    shares = np.concatenate([counts / totals[pairs], np.ones(len(unseen))])
    arcs, of_pair = np.concatenate([longer, unseen % n_labels]), np.concatenate([pairs, unseen])
    by_pair = np.argsort(of_pair, kind="stable")
    offsets = np.concatenate([[0], np.bincount(of_pair, minlength=n_pairs).cumsum()])
    averages = np.empty((len(edges), n_pairs))
    places = arcs[by_pair].astype(np.int32)
    _core.fill_row_sums(read_floats(edges), offsets, places, shares[by_pair], averages, n_threads)
    return averages.reshape(-1, n_labels, n_labels)


def _last_pairs(automaton: Automaton) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The arcs whose strings have two labels or more, and the pair j * K + k that ends each."""
    longer = np.arange(automaton.arc_offsets[1], automaton.n_arcs)
    before = automaton.last_labels[automaton.sources[longer]].astype(np.int64)
    return longer, before * automaton.n_labels + automaton.labels[longer]
