"""Contributions: what each feature adds to a score, on the path from the root to a leaf.

Every node has a value, which it would add to the score if it were a leaf. On the path from the
root, each split changes that value, and the change is attributed to the feature of the split. So
the value of the root and all changes add up to the value of the leaf. If a missing value goes both
ways, the change is that of the mean of both; if a surrogate is used, it is attributed to the
surrogate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.ancestors import find_ancestors
from hedgerow.sequences import Sequences, SparseRows
from hedgerow.tables import Table
from hedgerow.trees.columns import Columns, is_dense, place_categories
from hedgerow.trees.entries import read_entries
from hedgerow.trees.forest import Forest, goes_left, surrogates_go_left
from hedgerow.trees.places import PARENT, name_places

__all__ = ["path_contributions"]

# Maximum number of bins of the positions, and of pairs of a position and a tree, at a time.
MAX_BINS = 1 << 24
MAX_PATHS = 1 << 17


def path_contributions(
    forest: Forest,
    columns: Columns,
    sequences: Sequences,
    positions: NDArray[np.int64],
    signs: NDArray[np.int64],
    before: NDArray[np.uint8] | None = None,
) -> list[tuple[float, Table]]:
    """What features add to sums of label scores at some positions: `Potential.contributions`.

    The bias is the sum of the values of the roots; features are those that the trees used.
    ``before`` (n, K, n_lags) are the codes of the previous labels plus 1, for the trees of each
    label; 0 where there is none. The values of previous labels in the table are those for the label
    with the largest factor in ``signs``.
    """
    if before is None:
        before = np.empty((*signs.shape, 0), np.uint8)
    offsets = _offsets_of(forest)
    largest = max(len(offsets) * columns.n_columns, 1)
    size = max(min(MAX_BINS // largest, MAX_PATHS // max(forest.n_trees, 1)), 1)
    found = []
    for begin in range(0, len(positions), size):
        part = slice(begin, begin + size)
        window = _Window.cut(columns, sequences, offsets, positions[part])
        found += _contributions(forest, window, signs[part], before[part])
    return found


def _contributions(
    forest: Forest, window: _Window, signs: NDArray[np.int64], before: NDArray[np.uint8]
) -> list[tuple[float, Table]]:
    columns, numbers = window.columns, np.arange(len(signs) + 1)
    owners, trees = np.nonzero(signs[:, forest.outputs])
    firsts, outputs = forest.tree_offsets[:-1][trees], forest.outputs[trees]
    weights = signs[owners, outputs] * forest.tree_weights[trees]
    roots = forest.values[firsts].astype(np.float64)
    bounds = np.searchsorted(owners, numbers).tolist()
    keys: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    changes: list[NDArray[np.float64]] = [np.empty(0)]
    paths = _Paths(firsts, firsts, weights, owners, outputs)
    while len((paths := paths.part(forest.columns[paths.nodes] >= 0)).nodes):
        rows, asked, shares = _answer(forest, window, paths, before)
        parents, children = paths.descend(forest, shares)
        key = (paths.owners * len(window.offsets) + rows) * columns.n_asked + asked
        keys.append(key[parents])
        values = forest.values[children.nodes].astype(np.float64)
        changes.append(children.weights * (values - forest.values[paths.nodes[parents]]))
        paths = children
    found, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    sums = np.bincount(inverse, np.concatenate(changes), minlength=len(found))
    places, columns_asked = np.divmod(found, columns.n_asked)
    owners, places = np.divmod(places, len(window.offsets))
    names = np.array(columns.asked_names(), dtype=np.object_)
    features, offsets = name_places(names[columns_asked], window.offsets[places])
    shown = before[numbers[:-1], signs.argmax(axis=1)]
    values_asked = window.values(owners, places, columns_asked, shown)
    ends = np.searchsorted(owners, numbers).tolist()
    return [
        (
            float(np.einsum("t,t", weights[first:stop], roots[first:stop])),
            Table(
                {
                    "feature": features[begin:end],
                    "offset": offsets[begin:end],
                    "value": values_asked[begin:end],
                    "contribution": sums[begin:end],
                }
            ),
        )
        for first, stop, begin, end in zip(bounds, bounds[1:], ends, ends[1:], strict=False)
    ]


@dataclass(frozen=True, eq=False)
class _Paths:
    """Nodes that positions reach, (n,) each: several per tree if missing values go both ways.

    Attributes
    ----------
    nodes, firsts : int64
        Indices of the nodes, and of the roots of their trees.
    weights : float64
        Factors of the values of the nodes.
    owners : int64
        Numbers of the positions.
    outputs : int32
        Outputs of their trees.
    """

    nodes: NDArray[np.int64]
    firsts: NDArray[np.int64]
    weights: NDArray[np.float64]
    owners: NDArray[np.int64]
    outputs: NDArray[np.int32]

    def part(self, chosen: NDArray[Any]) -> _Paths:
        """Some of the paths, by flags or indices."""
        return _Paths(
            self.nodes[chosen],
            self.firsts[chosen],
            self.weights[chosen],
            self.owners[chosen],
            self.outputs[chosen],
        )

    def descend(
        self, forest: Forest, left_shares: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], _Paths]:
        """Continue to the children, with these shares to the left; also returns the parents."""
        lefts, rights = np.flatnonzero(left_shares > 0), np.flatnonzero(left_shares < 1)
        owners = np.concatenate([lefts, rights])
        is_right = np.repeat([0, 1], [len(lefts), len(rights)])
        order = np.argsort(owners, kind="stable")
        owners, is_right = owners[order], is_right[order]
        shares = np.where(is_right, 1 - left_shares[owners], left_shares[owners])
        parents = self.part(owners)
        nodes = parents.firsts + forest.lefts[parents.nodes] + is_right
        return owners, replace(parents, nodes=nodes, weights=parents.weights * shares)


def _answer(
    forest: Forest, window: _Window, paths: _Paths, before: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """For n splits: the rows and columns that they use, and the shares that go left.

    If a surrogate replaces a split, these are those of the surrogate.
    """
    nodes, owners = paths.nodes, paths.owners
    rows, asked = window.find(forest.offsets[nodes]), forest.columns[nodes]
    labels = before[owners, paths.outputs]
    bins, outside = window.look(owners, rows, asked, labels)
    shares = goes_left(forest, nodes, bins, outside).astype(np.float64)
    missing = (bins == 0) & ~outside & (asked < window.columns.n_columns)
    if len(forest.fractions):
        shares[missing] = forest.fractions[nodes[missing]]
    starts = forest.surrogate_starts
    open_ = np.flatnonzero(missing) if len(starts) else np.empty(0, np.int64)
    numbers = starts[nodes[open_]] if len(open_) else open_
    while len(open_):
        has_more = numbers < starts[nodes[open_] + 1]
        open_, numbers = open_[has_more], numbers[has_more]
        more_rows = window.find(forest.surrogate_offsets[numbers])
        more_asked = forest.surrogate_columns[numbers]
        bins, _ = window.look(owners[open_], more_rows, more_asked, labels[open_])
        known = bins != 0
        answered = open_[known]
        rows[answered], asked[answered] = more_rows[known], more_asked[known]
        shares[answered] = surrogates_go_left(forest, numbers[known], bins[known])
        open_, numbers = open_[~known], numbers[~known] + 1
    return rows, asked, shares


def _offsets_of(forest: Forest) -> NDArray[np.int64]:
    """The offsets of a forest's splits, from the first to the last, then ancestors, (W,)."""
    asked = np.concatenate([forest.offsets[forest.columns >= 0], forest.surrogate_offsets])
    near = asked[asked < PARENT]
    window = np.arange(near.min(initial=0), near.max(initial=0) + 1, dtype=np.int64)
    return np.concatenate([window, np.arange(PARENT, asked.max(initial=0) + 1, dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class _Window:
    """What the trees can use at n positions.

    Attributes
    ----------
    columns : Columns
        The columns that trees split on.
    sequences : Sequences
        The existing positions, of the windows and of ancestors.
    offsets : (W,) int64
        The offsets, from the first to the last, then ancestors.
    rows : (n, W)
        The row at each offset; -1 beyond the ends of the sequence.
    bins : (number of rows + 1, C) uint8
        Bins of all columns, 0 where a value is missing; the last row is for -1.
    """

    columns: Columns
    sequences: Sequences
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    bins: NDArray[np.uint8]

    @classmethod
    def cut(
        cls,
        columns: Columns,
        sequences: Sequences,
        offsets: NDArray[np.int64],
        centres: NDArray[np.int64],
    ) -> _Window:
        near = offsets[offsets < PARENT]
        numbers = np.searchsorted(sequences.offsets, centres, side="right") - 1
        begins, ends = sequences.offsets[numbers][:, None], sequences.offsets[numbers + 1][:, None]
        around = centres[:, None] + near
        around[(around < begins) | (around >= ends)] = -1
        above = find_ancestors(sequences, len(offsets) - len(near))[:, centres].T
        positions = np.concatenate([around, above], axis=1)
        seen = np.unique(positions[positions >= 0])
        chain = replace(sequences, parents=None, base=None)
        own = chain.select(seen, np.array([0, len(seen)]))
        rows = np.where(positions < 0, -1, np.searchsorted(seen, positions))
        return cls(columns, own, offsets, rows, _bins_of(columns, own))

    def find(self, offsets: NDArray[np.int32]) -> NDArray[np.int64]:
        """Indices of some offsets in `offsets`."""
        return np.searchsorted(self.offsets, offsets).astype(np.int64)

    def look(
        self,
        owners: NDArray[np.int64],
        places: NDArray[np.int64],
        asked: NDArray[np.int32],
        before: NDArray[np.uint8],
    ) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The bins of m splits, and whether they are beyond the ends of the sequence, (m,).

        ``owners`` are the numbers of the positions; ``before`` (m, n_lags) is for labels.
        """
        n_columns, rows = self.columns.n_columns, self.rows[owners, places]
        is_label = asked >= n_columns
        if not is_label.any():
            return self.bins[rows, asked], rows < 0
        found = np.empty(len(rows), np.uint8)
        found[~is_label] = self.bins[rows[~is_label], asked[~is_label]]
        found[is_label] = before[np.flatnonzero(is_label), asked[is_label] - n_columns]
        return found, ~is_label & (rows < 0)

    def values(
        self,
        owners: NDArray[np.int64],
        places: NDArray[np.int64],
        asked: NDArray[np.int64],
        before: NDArray[np.uint8],
    ) -> NDArray[Any]:
        """Values of some positions and columns: numbers, text, or None for missing values.

        ``before`` (n, n_lags) are the previous labels of each position.
        """
        read, n_columns = _Reader(self.columns, self.sequences).read, self.columns.n_columns
        rows = self.rows[owners, places].tolist()
        found = [
            self._label(int(before[owner, column - n_columns]))
            if column >= n_columns
            else None
            if row < 0
            else read(row, column)
            for owner, row, column in zip(owners.tolist(), rows, asked.tolist(), strict=True)
        ]
        return np.fromiter(found, np.object_, len(found))

    def _label(self, number: int) -> str | None:
        """A previous label."""
        return self.columns.labels[number - 1] if number else None


def _bins_of(columns: Columns, sequences: Sequences) -> NDArray[np.uint8]:
    """Bins of all columns at N positions, and a last row of zeros: (N + 1, C)."""
    binned = columns.bin(sequences, 1)
    n_positions, n_dense = binned.dense.shape
    bins = np.zeros((n_positions + 1, columns.n_columns), np.uint8)
    bins[:-1, :n_dense] = binned.dense
    if binned.indptr is not None:
        bins[:-1, n_dense:] = columns.default_bins
        owners = np.repeat(np.arange(n_positions), np.diff(binned.indptr))
        assert binned.attributes is not None
        assert binned.attribute_bins is not None
        bins[owners, n_dense + binned.attributes] = binned.attribute_bins
    return bins


class _Reader:
    """Looks up values of X by the columns of the trees."""

    def __init__(self, columns: Columns, sequences: Sequences) -> None:
        self._n_numeric, self._n_dense = columns.n_numeric, columns.n_dense
        self._numbers = sequences.dense
        self._entries: SparseRows | None = None
        if sequences.sparse is not None:
            self._entries = read_entries(sequences, sequences.sparse.n_columns)
        self._sparse = columns.sparse
        texts = list(zip(sequences.categorical, columns.categories, strict=True))
        self._small = [column for column, known in texts if is_dense(known)]
        large = [
            (place_categories(column, known), len(known))
            for column, known in texts
            if not is_dense(known)
        ]
        # For each category of each large column: the index of the category at every position, (N,),
        # and the index of the category itself.
        self._large = [(places, place) for places, size in large for place in range(size)]

    def read(self, row: int, column: int) -> Any:
        if column < self._n_numeric:
            return self._number(row, column)
        if column < self._n_dense:
            text = self._small[column - self._n_numeric]
            code = int(text.codes[row])
            return None if code < 0 else text.categories[code]
        if self._sparse:
            return self._number(row, column - self._n_dense)
        places, place = self._large[column - self._n_dense]
        return float(places[row] == place)

    def _number(self, row: int, column: int) -> float | None:
        if self._numbers is not None:
            value = float(self._numbers[row, column])
        else:
            assert self._entries is not None
            entries = self._entries.part(row, row + 1)
            place = int(np.searchsorted(entries.indices, column))
            if entries.indices[place : place + 1].tolist() != [column]:
                return 0.0
            value = 1.0 if entries.values is None else float(entries.values[place])
        return None if np.isnan(value) else value
