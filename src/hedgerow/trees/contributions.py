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

NOTHING_BEFORE = np.empty((1, 0), np.uint8)


def path_contributions(
    forest: Forest,
    columns: Columns,
    sequences: Sequences,
    position: int,
    signs: NDArray[np.int64],
    before: NDArray[np.uint8] = NOTHING_BEFORE,
) -> tuple[float, Table]:
    """The parts of a sum of label scores at one position, see `Potential.contributions`.

    The bias is the sum of the values of the roots; features are those that the trees used.
    ``before`` (K, n_lags) are 1 + the previous labels, 0 where there is none, for the trees of each
    label; those of the labels with the largest factors are shown.
    """
    window = _Window.cut(forest, columns, sequences, position)
    shown = before[signs.argmax() if len(before) > 1 else 0]
    trees = np.flatnonzero(signs[forest.outputs])
    outputs = forest.outputs[trees] if len(before) > 1 else np.zeros(len(trees), np.int64)
    weights = signs[forest.outputs[trees]] * forest.tree_weights[trees]
    firsts = forest.tree_offsets[:-1][trees]
    bias = float(np.einsum("t,t", weights, forest.values[firsts].astype(np.float64)))
    keys: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    changes: list[NDArray[np.float64]] = [np.empty(0)]
    paths = _Paths(firsts, firsts, weights, outputs)
    while len((paths := paths.part(forest.columns[paths.nodes] >= 0)).nodes):
        rows, asked, shares = _answer(forest, window, paths.nodes, before[paths.outputs])
        owners, children = paths.descend(forest, shares)
        keys.append((rows.astype(np.int64) * columns.n_asked + asked)[owners])
        values = forest.values[children.nodes].astype(np.float64)
        changes.append(children.weights * (values - forest.values[paths.nodes[owners]]))
        paths = children
    found, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    places, columns_asked = np.divmod(found, columns.n_asked)
    names = np.array(columns.asked_names(), dtype=np.object_)
    features, offsets = name_places(names[columns_asked], window.offsets[places])
    return bias, Table(
        {
            "feature": features,
            "offset": offsets,
            "value": window.values(places, columns_asked, shown),
            "contribution": np.bincount(inverse, np.concatenate(changes), minlength=len(found)),
        }
    )


@dataclass(frozen=True, eq=False)
class _Paths:
    """Nodes that a position reaches, (n,) each: several per tree if values are fractional.

    Attributes
    ----------
    nodes, firsts : int64
        Indices of the nodes, and of the roots of their trees.
    weights : float64
        Their weights.
    outputs : int64
        Rows of the previous labels, for their trees.
    """

    nodes: NDArray[np.int64]
    firsts: NDArray[np.int64]
    weights: NDArray[np.float64]
    outputs: NDArray[Any]

    def part(self, chosen: NDArray[Any]) -> _Paths:
        """Some of them, by flags or indices."""
        return _Paths(
            self.nodes[chosen], self.firsts[chosen], self.weights[chosen], self.outputs[chosen]
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
    forest: Forest, window: _Window, nodes: NDArray[np.int64], before: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """The answers of n splits: the rows and columns they use, and the shares that go left.

    If a surrogate replaces a split, it is the one that is reported.
    """
    rows, asked = window.find(forest.offsets[nodes]), forest.columns[nodes]
    bins, outside = window.look(rows, asked, before)
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
        bins, _ = window.look(more_rows, more_asked, before[open_])
        known = bins != 0
        answered = open_[known]
        rows[answered], asked[answered] = more_rows[known], more_asked[known]
        shares[answered] = surrogates_go_left(forest, numbers[known], bins[known])
        open_, numbers = open_[~known], numbers[~known] + 1
    return rows, asked, shares


@dataclass(frozen=True, eq=False)
class _Window:
    """What the trees can use at a position.

    Attributes
    ----------
    columns : Columns
        The columns that trees split on.
    sequences : Sequences
        The existing positions, of the window and of ancestors.
    offsets : (W,) int64
        The offsets, from the first to the last, then ancestors.
    rows : (W,)
        The row at each offset; -1 beyond the ends of the sequence.
    bins : (W, C) uint8
        Bins of all columns, 0 where a value is missing or there is no row.
    """

    columns: Columns
    sequences: Sequences
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    bins: NDArray[np.uint8]

    @classmethod
    def cut(cls, forest: Forest, columns: Columns, sequences: Sequences, position: int) -> _Window:
        splits = forest.columns >= 0
        asked = np.concatenate([forest.offsets[splits], forest.surrogate_offsets])
        near = asked[asked < PARENT]
        window = np.arange(near.min(initial=0), near.max(initial=0) + 1, dtype=np.int64)
        ancestors = np.arange(PARENT, asked.max(initial=0) + 1, dtype=np.int64)
        above = find_ancestors(sequences, len(ancestors))[:, position]
        positions = np.concatenate([position + window, above])
        positions[(positions < 0) | (positions >= sequences.n_positions)] = -1
        seen = np.unique(positions[positions >= 0])
        chain = replace(sequences, parents=None, base=None)
        own = chain.select(seen, np.array([0, len(seen)]))
        rows = np.where(positions < 0, -1, np.searchsorted(seen, positions))
        bins = _bins_of(columns, own)[rows]
        return cls(columns, own, np.concatenate([window, ancestors]), rows, bins)

    def find(self, offsets: NDArray[np.int32]) -> NDArray[np.int64]:
        """Numbers of the rows at some offsets."""
        return np.searchsorted(self.offsets, offsets).astype(np.int64)

    def look(
        self, rows: NDArray[np.int64], asked: NDArray[np.int32], before: NDArray[np.uint8]
    ) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The bins of n splits, and whether they are beyond the ends of the sequence, (n,).

        ``before`` (n, n_lags) is for those about labels.
        """
        n_columns, found = self.columns.n_columns, np.empty(len(rows), np.uint8)
        is_label = asked >= n_columns
        found[~is_label] = self.bins[rows[~is_label], asked[~is_label]]
        found[is_label] = before[np.flatnonzero(is_label), asked[is_label] - n_columns]
        return found, ~is_label & (self.rows[rows] < 0)

    def values(
        self, rows: NDArray[np.int64], asked: NDArray[np.int64], before: NDArray[np.uint8]
    ) -> NDArray[Any]:
        """Values at some rows and columns: numbers, text, or None for missing values."""
        read = _Reader(self.columns, self.sequences).read
        found = [
            self._label(int(before[column - self.columns.n_columns]))
            if column >= self.columns.n_columns
            else None
            if row < 0
            else read(row, column)
            for row, column in zip(self.rows[rows].tolist(), asked.tolist(), strict=True)
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
        # For each category of a large column, the indices of its values, (N,), and its own index.
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
