"""Output edges: from scores of label pairs or patterns by position to edge scores, and back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels.automaton import PatternArcs
from hedgerow.lazy import LazyAttributes, lazy
from hedgerow.trellis.trellis import Trellis

__all__ = ["OutputEdges", "PairEdges", "PatternEdges", "flatten_edges"]


def flatten_edges(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of each position in a row, (N, ...) as (N, n); there may be no positions."""
    return edges.reshape(len(edges), math.prod(edges.shape[1:]))


class OutputEdges(ABC):
    """Turns the scores of outputs, which are label pairs or label patterns, into edge scores.

    The scores of the outputs at N positions are called sums, (N, n_outputs).
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the edges of a position."""

    @abstractmethod
    def spread(self, sums: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """Edges ``(N, *shape)`` from the sums (N, n_outputs), possibly the same array."""

    @abstractmethod
    def collect(self, slopes: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """Slopes of the sums (N, n_outputs), from the slopes of the edges ``(N, *shape)``."""


@dataclass(frozen=True)
class PairEdges(OutputEdges):
    """The outputs are all pairs (j, k) of K labels, at j * K + k; the sums are the edge scores."""

    n_labels: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a table of label pairs."""
        return self.n_labels, self.n_labels

    def spread(self, sums: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """The sums, (N, K, K)."""
        return sums.reshape(-1, *self.shape)

    def collect(self, slopes: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """The slopes, (N, K * K)."""
        return flatten_edges(slopes)


@dataclass(frozen=True, eq=False)
class PatternEdges(OutputEdges, LazyAttributes):
    """The outputs are label patterns; an arc's score is the sum over those that it ends in."""

    trellis: Trellis

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the arcs."""
        return self.trellis.arc_shape

    @lazy
    def _members(self) -> PatternArcs:
        """The arcs that end in each pattern."""
        return self.trellis.pattern_arcs

    @lazy
    def _suffixes(self) -> PatternArcs:
        """The inverse: the patterns that each arc ends in."""
        offsets, arcs = self._members
        counts = np.bincount(arcs, minlength=int(np.prod(self.shape)))
        owners = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
        by_arc = owners[np.argsort(arcs, kind="stable")]
        return PatternArcs(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), by_arc)

    def spread(self, sums: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """For each arc, the sum over the patterns that it ends in."""
        return _sum_rows(sums, self._suffixes, n_threads).reshape(-1, *self.shape)

    def collect(self, slopes: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """For each pattern, the sum over the arcs that end in it."""
        return _sum_rows(flatten_edges(slopes), self._members, n_threads)

    def ending(
        self,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
    ) -> Iterator[NDArray[np.int32]]:
        """Numbers of the patterns that end at each position of labelled sequences.

        Yields arrays (N,), with -1 where no more patterns end; patterns do not extend across a
        label of code -1.
        """
        begins, patterns = self._suffixes
        taken = self.trellis.arcs_taken(codes, offsets, parents)
        counts = np.where(taken >= 0, np.diff(begins)[taken], 0)
        for place in range(int(counts.max(initial=0))):
            numbers = np.full(len(codes), -1, np.int32)
            some = counts > place
            numbers[some] = patterns[begins[taken[some]] + place]
            yield numbers


def _sum_rows(
    values: NDArray[np.float64], wanted: PatternArcs, n_threads: int
) -> NDArray[np.float64]:
    """Sums over entries of each row: ``wanted`` lists the entries of each sum."""
    offsets, places = wanted
    own = np.arange(values.shape[1] + 1)
    if np.array_equal(offsets, own) and np.array_equal(places, own[:-1]):
        return values  # each sum has one entry, in its own place
    sums = np.empty((len(values), len(offsets) - 1))
    _core.fill_row_sums(values, offsets, places, None, sums, n_threads)
    return sums
