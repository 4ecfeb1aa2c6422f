"""Label patterns: runs of neighbouring labels that have weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import ALONE, Comm
from hedgerow.exact_sums import SumGrid, count_all, largest_of_all
from hedgerow.graph import positions_before
from hedgerow.labels.classes import Labels
from hedgerow.labels.numbering import number

__all__ = ["Patterns", "rare_shares"]


@dataclass(frozen=True, eq=False)
class Patterns:
    """P label patterns, as codes, concatenated.

    Attributes
    ----------
    offsets : (P + 1,) int64
        Pattern p has the labels ``offsets[p]`` to ``offsets[p + 1]``.
    labels : int32
        Their codes.

    Examples
    --------
    >>> import numpy as np
    >>> codes, offsets = np.array([0, 1, 1, 0, 1], np.int32), np.array([0, 3, 5])
    >>> list(Patterns.seen(codes, offsets, 2, n_labels=2))  # of the sequences 0 1 1 and 0 1
    [(0, 1), (1, 1), (0, 1, 1)]
    """

    offsets: NDArray[np.int64]
    labels: NDArray[np.int32]

    @classmethod
    def of(cls, patterns: Iterable[Sequence[int]]) -> Patterns:
        """Patterns from sequences of codes."""
        patterns = list(patterns)
        lengths = np.fromiter(map(len, patterns), np.int64, len(patterns))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        labels = np.fromiter(chain.from_iterable(patterns), np.int32, int(offsets[-1]))
        return cls(offsets, labels)

    @classmethod
    def from_rows(cls, rows: Iterable[NDArray[np.int32]]) -> Patterns:
        """Patterns from arrays (n, length), one for each length."""
        rows = list(rows)
        lengths = [np.full(len(part), part.shape[1]) for part in rows]
        sizes = np.concatenate([np.zeros(1, np.int64), *lengths])
        labels = np.concatenate([np.zeros(0, np.int32), *(part.ravel() for part in rows)])
        return cls(np.cumsum(sizes, dtype=np.int64), labels.astype(np.int32, copy=False))

    @classmethod
    def pairs(cls, n_labels: int) -> Patterns:
        """All pairs, (j, k) at index j * K + k."""
        before, after = np.divmod(np.arange(n_labels * n_labels, dtype=np.int32), n_labels)
        return cls.from_rows([np.stack([before, after], axis=1).astype(np.int32)])

    @classmethod
    def seen(
        cls,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        order: int,
        *,
        parents: NDArray[np.int32] | None = None,
        n_labels: int,
        min_count: int = 1,
        comm: Comm = ALONE,
    ) -> Patterns:
        """All patterns of 2 to ``order + 1`` labels that occur at least `min_count` times.

        Parameters
        ----------
        codes, offsets
            Labels of sequences, (N,) and (S + 1,); no pattern reaches across a label of code -1.
        order
            Maximum number of labels before the last one.
        parents
            Where in its sequence the parent of each position is, (N,), -1 for a root: patterns then
            run from parents to children. None for chains.
        n_labels
            Number of labels, K.
        min_count
            Patterns that occur less often are left out, and so are patterns that contain them.
        comm
            The workers; patterns are counted in the labels of all of them.
        """
        runs = _count_runs(
            codes, offsets, parents, n_labels=n_labels, min_count=min_count, comm=comm
        )
        rows = [strings for strings, _, _ in islice(runs, order)]
        return cls.from_rows(rows)

    @classmethod
    def read(cls, label_patterns: Any, labels: Labels) -> Patterns:
        """Check the user's patterns, and turn them into codes.

        Patterns of a single label are left out, since every label has a weight anyway; so are
        duplicates.
        """
        if isinstance(label_patterns, str) or not isinstance(label_patterns, Iterable):
            raise TypeError(
                f"label_patterns is {label_patterns!r}; expected a list of tuples of labels, such "
                "as [('a', 'b'), ('a', 'b', 'c')]"
            )
        found: dict[tuple[int, ...], None] = {}
        for place, pattern in enumerate(label_patterns):
            where = f"label_patterns[{place}]"
            if not isinstance(pattern, list | tuple | np.ndarray):
                raise TypeError(f"{where} is {pattern!r}; expected a tuple of labels")
            codes = labels.read_codes(list(pattern), where)
            if not codes:
                raise ValueError(f"{where} is empty; a pattern has at least two labels")
            if len(codes) > 1:
                found[tuple(codes)] = None
        return cls.of(found)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        labels = self.labels.tolist()
        return (tuple(labels[begin:end]) for begin, end in pairwise(self.offsets.tolist()))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of labels of each pattern, (P,)."""
        return np.diff(self.offsets)

    @property
    def longest(self) -> int:
        """Length of the longest pattern; 1 if there are none."""
        return int(self.lengths.max(initial=1))

    def join(self, others: Patterns) -> Patterns:
        """These patterns, then others."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + others.offsets[1:]])
        return Patterns(offsets, np.concatenate([self.labels, others.labels]))

    def select(self, keep: NDArray[np.bool_]) -> Patterns:
        """The patterns where `keep`, (P,), is true."""
        offsets = np.concatenate([[0], np.cumsum(self.lengths[keep])]).astype(np.int64)
        return Patterns(offsets, self.labels[np.repeat(keep, self.lengths)])

    def map_labels(self, codes: NDArray[np.integer]) -> Patterns:
        """The same patterns in other codes, ``codes[k]`` for k."""
        return Patterns(self.offsets, codes[self.labels].astype(np.int32))

    def suffixes(self) -> NDArray[np.int64]:
        """Number of the longest other pattern that is a suffix of each pattern, or -1, (P,)."""
        numbers = {pattern: number for number, pattern in enumerate(self)}

        def find(pattern: tuple[int, ...]) -> int:
            ends = (pattern[begin:] for begin in range(1, len(pattern) - 1))
            return next((numbers[end] for end in ends if end in numbers), -1)

        return np.fromiter(map(find, self), np.int64, len(self))

    def find(self, others: Patterns) -> NDArray[np.int64]:
        """Number of each of the other patterns among these, or -1."""
        numbers = {pattern: number for number, pattern in enumerate(self)}
        return np.fromiter((numbers.get(other, -1) for other in others), np.int64, len(others))

    def carry_over(self, others: Patterns, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of these patterns, (P,): as in `others`, and 0 for patterns not in `others`."""
        known = dict(zip(others, weights.tolist(), strict=True))
        return np.array([known.get(pattern, 0.0) for pattern in self], np.float64)


def rare_shares(
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    longest: int,
    *,
    parents: NDArray[np.int32] | None = None,
    n_labels: int,
    comm: Comm = ALONE,
) -> list[float]:
    """Share of the distinct label n-grams that occur once, for n = 2, 3, ... `longest`.

    With ``weights`` (N,), the share of those whose total weight is at most 1; each occurrence of
    an n-gram has the weight of its last position.

    Examples
    --------
    >>> import numpy as np
    >>> codes, offsets = np.array([0, 1, 1, 0, 1], np.int32), np.array([0, 3, 5])
    >>> rare_shares(codes, offsets, None, 3, n_labels=2)  # pairs 0 1, 1 1 and 0 1 again; 0 1 1
    [0.5, 1.0]
    """
    if longest == 2 and weights is None and parents is None:
        counts = comm.sum(_core.count_pairs(codes, offsets, n_labels))
        return [_share_of_single(counts)]
    shares = []
    runs = _count_runs(codes, offsets, parents, n_labels=n_labels, min_count=1, comm=comm)
    largest = 1.0 if weights is None else float(weights.max(initial=0.0))
    grid = SumGrid(largest_of_all(largest, comm) * count_all(len(codes), comm))
    for strings, ends, numbers in islice(runs, longest - 1):
        own = None if weights is None else grid.round(weights[ends])
        own_counts = np.bincount(numbers, own, len(strings)).astype(np.float64)
        shares.append(_share_of_single(grid.share(own_counts, comm)))
    return shares + [0.0] * (longest - 1 - len(shares))


def _share_of_single(counts: NDArray[Any]) -> float:
    """Share of the positive counts that are at most 1."""
    occur = counts[counts > 0]
    return float(np.mean(occur <= 1)) if len(occur) else 0.0


def _count_runs(
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    parents: NDArray[np.int32] | None,
    *,
    n_labels: int,
    min_count: int,
    comm: Comm = ALONE,
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.intp], NDArray[np.intp]]]:
    """Runs of 2 labels, then of 3 and so on, as long as there are any.

    A candidate is a run that is frequent enough without its last label. Yields the labels of the
    candidates that occur at least `min_count` times, (n, length); the positions where candidates
    end; and for each of these positions the index of its candidate among all candidates.
    """
    before = positions_before(offsets, parents)
    can_end = (codes >= 0) & (before >= 0)  # no run continues across sequences
    # Number of the run of the current length that ends at each position, -1 if none does.
    numbers = codes.astype(np.int64)
    strings = np.arange(n_labels, dtype=np.int32)[:, None]
    while True:
        ends = np.flatnonzero(can_end & (numbers[before] >= 0))
        runs = numbers[before[ends]] * n_labels + codes[ends]
        keys, inverse, counts = number(runs, len(strings) * n_labels)
        if comm.size > 1:
            keys, inverse, counts = _share_counts(keys.astype(np.int64), inverse, counts, comm)
        kept = counts >= min_count
        if not kept.any():
            return
        prefixes, last = np.divmod(keys[kept], n_labels)
        strings = np.column_stack([strings[prefixes], last.astype(np.int32)])
        yield strings, ends, inverse
        numbers = np.full(len(codes), -1)
        numbers[ends] = np.where(kept, np.cumsum(kept) - 1, -1)[inverse]


def _share_counts(
    keys: NDArray[np.int64], inverse: NDArray[np.intp], counts: NDArray[np.int64], comm: Comm
) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.int64]]:
    """Keys of all workers, sorted, the indices of this worker's keys, and the counts."""
    parts = comm.gather((keys, counts))
    every, places = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    totals = np.zeros(len(every), np.int64)
    np.add.at(totals, places, np.concatenate([part[1] for part in parts]))
    return every, np.searchsorted(every, keys)[inverse], totals
