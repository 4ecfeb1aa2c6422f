"""Targets: the true labels of positions, and the weight of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.exact_sums import ExactTotal, SumGrid, count_all, exact_sum
from hedgerow.graph import find_roots
from hedgerow.labels import pin_known
from hedgerow.lazy import LazyAttributes, lazy
from hedgerow.trellis import Chain, Scores, Trellis

__all__ = ["Partial", "Targets"]


@dataclass(frozen=True, eq=False)
class Targets(LazyAttributes):
    """The true labels of N positions of S sequences, and the weight of each.

    Attributes
    ----------
    offsets : (S + 1,) int64
        Sequence s holds the positions ``offsets[s]`` to ``offsets[s + 1]``.
    codes : (N,) int32
        Label of each position, -1 if it is not known.
    trellis : Trellis
        The trellis of the scores; it defines what their arcs are.
    sequence_weights : (S,) or None
        Weight of each sequence.
    position_weights : (N,) or None
        Weight of each position, including that of its sequence, if positions differ within a
        sequence; see `hedgerow.trellis.weighted_forward_backward`. All labels must be known then.
    parents : (N,) int32 or None
        Index of the parent of each position in its sequence, see `Scores`.
    comm : Comm
        The workers; these targets are a part of those of all workers.
    bound_of_all : float or None
        If these are a `part` of other targets: the `bound` of those targets.
    """

    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    trellis: Trellis
    sequence_weights: NDArray[np.float64] | None = None
    position_weights: NDArray[np.float64] | None = None
    parents: NDArray[np.int32] | None = None
    comm: Comm = ALONE
    bound_of_all: float | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels, K."""
        return self.trellis.n_labels

    @lazy
    def n_positions(self) -> int:
        """Number of positions, of all workers."""
        return count_all(len(self.codes), self.comm)

    @lazy
    def n_known(self) -> int:
        """Number of positions whose label is known, of all workers."""
        return count_all(int(np.sum(self.codes >= 0)), self.comm)

    @lazy
    def bound(self) -> float:
        """Upper bound on expected counts of all workers, see `Scores.bound`.

        With weights of sequences, or without weights, it is the total weight of all positions.
        """
        if self.bound_of_all is not None:
            return self.bound_of_all
        if self.position_weights is not None:
            return exact_sum(_bound_weighted_counts(self), self.comm)
        if self.sequence_weights is not None:
            return exact_sum(np.diff(self.offsets) * self.sequence_weights, self.comm)
        return float(self.n_positions)

    def sum(self, losses: NDArray[np.float64]) -> ExactTotal:
        """Sum of losses of sequences or positions, of all workers."""
        return ExactTotal.of(losses, self.bound).share(self.bound, self.comm)

    def count(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected counts of all workers, from those of this one.

        ``counts`` must be sums of numbers that `round` returned; the result then does not depend on
        the order of summation.
        """
        return SumGrid(self.bound).share(counts, self.comm)

    def round(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected counts of positions, rounded to multiples of the unit of `bound`."""
        return SumGrid(self.bound).round(counts)

    @lazy
    def total_weight(self) -> float:
        """Total weight of all positions whose label is known."""
        if self.weights is None:
            return float(self.n_known)
        return float(self.count(np.array(self.round(self.known_weights).sum())))

    @lazy
    def mean_weights(self) -> NDArray[np.float64] | None:
        """Mean weight of the positions of each sequence, (S,); None: all are 1."""
        if self.position_weights is None:
            return self.sequence_weights
        lengths = np.diff(self.offsets)
        sums = _sum_each(self.position_weights, self.offsets)
        means: NDArray[np.float64] = sums / lengths.clip(min=1)
        return means

    def part(self, sequences: slice) -> Targets:
        """Only some consecutive sequences."""
        offsets = self.offsets[sequences.start : sequences.stop + 1]
        positions = slice(int(offsets[0]), int(offsets[-1]))
        by_sequence, by_position = self.sequence_weights, self.position_weights
        return Targets(
            offsets - offsets[0],
            self.codes[positions],
            self.trellis,
            None if by_sequence is None else by_sequence[sequences],
            None if by_position is None else by_position[positions],
            None if self.parents is None else self.parents[positions],
            bound_of_all=self.bound,
        )

    def along(self, parts: Iterable[Scores]) -> Iterator[tuple[Scores, Targets]]:
        """Scores of all sequences, in runs of consecutive ones, each with its targets."""
        first = 0
        for scores in parts:
            end = first + scores.n_sequences
            yield scores, self.part(slice(first, end))
            first = end

    @lazy
    def partial(self) -> Partial | None:
        """The sequences with unknown labels; None if there are none."""
        unknown = np.flatnonzero(self.codes < 0)
        if not len(unknown):
            return None
        lengths = np.diff(self.offsets)
        of_position = np.repeat(np.arange(len(lengths)), lengths)
        sequences = np.unique(of_position[unknown])
        positions = np.flatnonzero(np.isin(of_position, sequences))
        offsets = np.concatenate([[0], np.cumsum(lengths[sequences])]).astype(np.int64)
        parents = None if self.parents is None else self.parents[positions]
        return Partial(sequences, positions, offsets, self.codes[positions], parents)

    @lazy
    def full_codes(self) -> NDArray[np.int32]:
        """Labels of the completely labelled sequences, (N,); -1 in the others."""
        if self.partial is None:
            return self.codes
        codes = self.codes.copy()
        codes[self.partial.positions] = -1
        return codes

    @lazy
    def pair_codes(self) -> NDArray[np.int32]:
        """Label pair j * K + k that ends at each position, (N,).

        -1 if it is not known, or at the start of a sequence.
        """
        return Chain(self.n_labels).arcs_taken(self.codes, self.offsets, self.parents)

    @lazy
    def arc_codes(self) -> NDArray[np.int32]:
        """Arc into each position, (N,), -1 if it is not known, or at the start of a sequence."""
        taken = self.trellis.arcs_taken(self.codes, self.offsets, self.parents)
        taken[find_roots(self.offsets, self.parents)] = -1
        return taken

    def edge_codes(self, edges: NDArray[np.float64]) -> NDArray[np.int32]:
        """The edge that the labels take into each position, (N,).

        -1 if it is not known, or at the start of a sequence. ``edges`` are those of label pairs,
        (N, K, K), or of arcs, (N, A).
        """
        return self.pair_codes if edges.ndim == 3 else self.arc_codes

    @lazy
    def arc_counts(self) -> NDArray[np.float64]:
        """Weighted count of each arc, without partially labelled sequences."""
        weights = None if self.weights is None else self.round(self.weights)
        return self.trellis.count_arcs(self.full_codes, self.offsets, self.parents, weights)

    @lazy
    def known_weights(self) -> NDArray[np.float64]:
        """Weight of each position, (N,); 0 where the label is not known."""
        known = (self.codes >= 0).astype(np.float64)
        return known if self.weights is None else known * self.weights

    @lazy
    def weights(self) -> NDArray[np.float64] | None:
        """Weight of each position, (N,); None: all are 1."""
        if self.position_weights is not None or self.sequence_weights is None:
            return self.position_weights
        return np.repeat(self.sequence_weights, np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Partial:
    """Partially labelled sequences: their numbers, positions (M,), offsets, codes and parents."""

    sequences: NDArray[np.int64]
    positions: NDArray[np.int64]
    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    parents: NDArray[np.int32] | None = None

    def restrict(self, scores: Scores) -> Scores:
        """The scores of these sequences, with all labels but the known ones forbidden."""
        nodes = scores.nodes[self.positions]
        pin_known(nodes, self.codes)
        edges = None if scores.edges is None else scores.edges[self.positions]
        return replace(scores, nodes=nodes, offsets=self.offsets, edges=edges, parents=self.parents)


def _bound_weighted_counts(targets: Targets) -> NDArray[np.float64]:
    """Upper bound on expected counts of each sequence if its positions have weights, (S,).

    With p_u the probability of a label at position t given the known labels up to u, its weighted
    count is the sum over u <= t of w_u (p_(u-1) - p_u), plus w_t if it is the observed label.
    Summation by parts bounds the first by w_1 plus the increases of the weights up to t.
    """
    weights, offsets = targets.position_weights, targets.offsets
    assert weights is not None
    lengths, filled = np.diff(offsets), offsets[:-1][np.diff(offsets) > 0]
    if targets.parents is not None:  # positions are in any order, so the bound is coarser
        return (lengths + 1) * _sum_each(weights, offsets)
    rises = np.diff(weights, prepend=0.0).clip(min=0)
    rises[filled] = weights[filled]
    to_end = np.repeat(offsets[1:], lengths) - np.arange(len(weights))  # positions from each one on
    return _sum_each(rises * to_end + weights, offsets)


def _sum_each(values: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum of the values of each sequence, (S,)."""
    sums = np.add.reduceat(np.append(values, 0.0), offsets[:-1])
    found: NDArray[np.float64] = np.where(np.diff(offsets) > 0, sums, 0.0)
    return found
