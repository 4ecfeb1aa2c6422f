"""Columns: what trees split on, with every column of X divided into at most 255 bins.

Bin 0 is for missing values; the values of a column have the bins 1 to ``n_bins``.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import ALONE, Comm
from hedgerow.encode import check_schema, number_categories
from hedgerow.identity import identify_positions, identify_sequences
from hedgerow.lazy import LazyAttributes, lazy
from hedgerow.parameters import check_number
from hedgerow.sequences import Categorical, Schema, Sequences, SparseRows
from hedgerow.trees.cuts import (
    MAX_BINS,
    PRESENCE,
    READ_AS_THEY_ARE,
    ColumnCuts,
    cut_attributes,
    cut_dense,
)
from hedgerow.trees.entries import (
    dense_blocks,
    keep_entries,
    presence_entries,
    read_entries,
)
from hedgerow.trees.missing import MissingMethod, fill_missing, impute_bins

# A text column with more categories becomes sparse: one attribute per category.
MAX_CATEGORIES = 254
# Bin of a binary attribute where it is present.
PRESENT = 2


@dataclass(frozen=True, eq=False)
class Binned:
    """N positions of S sequences as bins of D dense columns and of A sparse attributes.

    Attributes
    ----------
    dense : (N, D) uint8, C-contiguous
        Bin of each dense column; 0 is missing.
    indptr : (N + 1,) int64, or None without attributes
        Position t holds the entries ``indptr[t]`` to ``indptr[t + 1]``.
    attributes : (nnz,) int32, or None
        Attribute of each entry, 0 to A - 1, ascending within a position.
    attribute_bins : (nnz,) uint8, or None
        Bin of each entry; entries in the attribute's default bin are left out.
    offsets : (S + 1,) int64
        Sequence s holds the positions ``offsets[s]`` to ``offsets[s + 1]``.
    """

    dense: NDArray[np.uint8]
    indptr: NDArray[np.int64] | None
    attributes: NDArray[np.int32] | None
    attribute_bins: NDArray[np.uint8] | None
    offsets: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Columns(LazyAttributes):
    """The C columns and the bounds of their bins.

    First come the D dense columns: the numeric columns of X, then its text columns of at most
    `MAX_CATEGORIES` categories. Then come the A sparse attributes: those of items, or the columns
    of a sparse X, or one for each category of the other text columns.

    Attributes
    ----------
    schema : Schema
        The columns of the X that this was learned from.
    index : StringIndex or None
        Names of the attributes of items; None for columns.
    sparse : bool
        Whether the numeric columns of X are sparse attributes, or X contains items.
    cut_offsets : (C + 1,) int64
        Column c has the cuts ``cut_offsets[c]`` to ``cut_offsets[c + 1]``; a dense text column
        has none.
    cuts : (cut_offsets[-1],) float64
        Ascending within a column. The bin of a value is 1 + the number of cuts that are <= it.
    categories : tuple of lists of str
        For each text column of X its categories, sorted. Category k has bin k + 1 if the column
        is dense.
    labels : tuple of str
        Names of the labels, if trees split on previous labels.
    n_lags : int
        Number of previous labels that trees can split on, or 0. They follow the C columns, as
        categorical columns whose categories are the labels: one position before, two positions
        before and so on. They are not columns of X, so `Binned` does not contain them.
    missing : MissingMethod
        How trees treat missing values.
    fills : (C,) uint8 or None
        Bin that replaces missing values, if any.
    """

    schema: Schema
    index: _core.StringIndex | None
    sparse: bool
    cut_offsets: NDArray[np.int64]
    cuts: NDArray[np.float64]
    categories: tuple[list[str], ...]
    labels: tuple[str, ...] = ()
    n_lags: int = 0
    missing: MissingMethod = "learned"
    fills: NDArray[np.uint8] | None = None

    @classmethod
    def learn(
        cls,
        sequences: Sequences,
        index: _core.StringIndex | None,
        max_bins: int,
        n_threads: int,
        missing: MissingMethod = "learned",
        comm: Comm = ALONE,
        weights: NDArray[np.float64] | None = None,
    ) -> Columns:
        """Choose the cuts of all columns.

        Parameters
        ----------
        sequences
            Training data, without infinite numbers.
        index
            Names of the attributes, if X contains items.
        max_bins
            Maximum number of bins of a numeric column, from 2 to 255.
        n_threads
            Number of threads; the cuts do not depend on it.
        missing
            How trees will treat missing values.
        comm
            The workers; cuts are computed from the data of all of them.
        weights : (N,) or None
            Weight of each position, for the values that are imputed. Cuts do not depend on it.
        """
        check_max_bins(max_bins)
        index = index if sequences.schema.kind == "items" else None
        categories = tuple(column.categories for column in sequences.categorical)
        parts: list[ColumnCuts] = []
        if sequences.dense is not None:

            def identify() -> NDArray[np.uint64]:
                own = identify_sequences(sequences, n_threads=n_threads, comm=comm)
                return identify_positions(own, sequences.offsets, n_threads=n_threads)

            parts.append(cut_dense(sequences.dense, max_bins, n_threads, identify, comm))
        n_dense_text = sum(map(is_dense, categories))
        parts.append(ColumnCuts(np.zeros(n_dense_text, np.int64), np.empty(0)))
        if sequences.sparse is not None:
            n_attributes = sequences.sparse.n_columns if index is None else len(index)
            rows = read_entries(sequences, n_attributes)
            parts.append(cut_attributes(rows, n_attributes, max_bins, n_threads, comm))
        n_presence = sum(len(names) for names in categories if not is_dense(names))
        parts.append(ColumnCuts.presence(n_presence))
        counts, cuts = ColumnCuts.join(parts)
        columns = cls(
            sequences.schema,
            index,
            sequences.sparse is not None,
            np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
            cuts,
            categories,
            missing=missing,
        )
        if missing == "indicator":
            return replace(columns, fills=columns._bins_of(0.0))
        if missing == "impute":
            binned = columns.bin(sequences, n_threads)
            return replace(columns, fills=columns._imputed(binned, max_bins, comm, weights))
        return columns

    def bin(self, sequences: Sequences, n_threads: int) -> Binned:
        """Find the bin of every value, in training data and in new data.

        Categories that did not occur in training are treated as missing; attributes that did not
        occur in training are left out. If the method for missing values is to impute them, those of
        dense columns get the bin of the imputed value; those of attributes keep bin 0, and go the
        way of the bin in `fills`. The result does not depend on `n_threads`.
        """
        check_schema(self.schema, sequences.schema)
        dense = np.empty((sequences.n_positions, self.n_dense), np.uint8)
        if self.n_numeric:
            self._fill_numeric(sequences, dense, n_threads)
        numbers = [
            place_categories(column, known)
            for column, known in zip(sequences.categorical, self.categories, strict=True)
        ]
        pairs = zip(numbers, self.categories, strict=True)
        dense_text = [codes for codes, known in pairs if is_dense(known)]
        for place, codes in enumerate(dense_text, self.n_numeric):
            dense[:, place] = codes + 1
        if self.missing == "impute" and self.fills is not None:
            fill_missing(dense, self.fills[: self.n_dense])
        if self.n_attributes == 0:
            return Binned(dense, None, None, None, sequences.offsets)
        if self.sparse:
            rows = read_entries(sequences, self.n_attributes)
        else:
            rows = self._presence_rows(numbers)
        bins = self._bin_entries(rows, n_threads)
        keep = bins != self.default_bins[rows.indices]
        rows = keep_entries(rows, keep)
        return Binned(dense, rows.indptr, rows.indices, bins[keep], sequences.offsets)

    def bins(self, sequences: Sequences, n_threads: int) -> _core.Bins:
        """The bins in the format of the kernels."""
        return self.to_core(self.bin(sequences, n_threads), sequences.parents, n_threads)

    def to_core(
        self, binned: Binned, parents: NDArray[np.int32] | None, n_threads: int
    ) -> _core.Bins:
        """Bins in the format of the kernels."""
        return _core.Bins(
            binned.dense,
            binned.indptr,
            binned.attributes,
            binned.attribute_bins,
            self.n_bins,
            self.default_bins,
            self.categorical.astype(np.uint8),
            binned.offsets,
            parents,
            n_threads,
        )

    def with_attributes(self, n_more: int) -> Columns:
        """The same columns with more binary attributes of items."""
        end = int(self.cut_offsets[-1])
        return replace(
            self,
            cut_offsets=np.append(self.cut_offsets, end + 1 + np.arange(n_more)),
            cuts=np.append(self.cuts, np.full(n_more, PRESENCE)),
        )

    def cuts_of(self, column: int) -> NDArray[np.float64]:
        """The cuts of one of the C columns."""
        return self.cuts[self.cut_offsets[column] : self.cut_offsets[column + 1]]

    def values(self, sequences: Sequences) -> _core.Values | None:
        """Numbers that trees can use directly; None if they have to be binned."""
        check_schema(self.schema, sequences.schema)
        dense = _readable(sequences)
        if dense is None or self.n_numeric < self.n_columns:
            return None
        return _core.Values(dense, self.cut_offsets, self.cuts, sequences.offsets)

    def of_schema(self) -> NDArray[np.int64]:
        """Column of X, or attribute of items, from which each of the C columns comes, (C,)."""
        if self.index is not None:
            return np.arange(self.n_columns)
        numeric = np.array(self.schema.numeric, dtype=np.bool_)
        text = np.flatnonzero(~numeric)
        dense = [
            place for place, names in zip(text, self.categories, strict=True) if is_dense(names)
        ]
        large = [
            np.full(len(names), place)
            for place, names in zip(text, self.categories, strict=True)
            if not is_dense(names)
        ]
        return np.concatenate([np.flatnonzero(numeric), np.array(dense, np.int64), *large])

    @property
    def n_columns(self) -> int:
        """Number of columns, C."""
        return len(self.cut_offsets) - 1

    @property
    def n_asked(self) -> int:
        """Number of columns that trees can split on, including previous labels."""
        return self.n_columns + self.n_lags

    def asked_names(self) -> list[str]:
        """Name of each column that trees can split on."""
        return self.column_names() + [f"label[-{lag}]" for lag in range(1, self.n_lags + 1)]

    @property
    def n_numeric(self) -> int:
        """Number of dense columns of numbers; they come first."""
        return 0 if self.sparse else sum(self.schema.numeric)

    @property
    def n_dense(self) -> int:
        """Number of dense columns, D."""
        return self.n_numeric + sum(map(is_dense, self.categories))

    @property
    def n_attributes(self) -> int:
        """Number of sparse attributes, A."""
        return self.n_columns - self.n_dense

    @lazy
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns are categorical, so that their bins have no order, (C,)."""
        places = np.arange(self.n_columns)
        return (places >= self.n_numeric) & (places < self.n_dense)

    @lazy
    def n_bins(self) -> NDArray[np.int32]:
        """Number of bins of each column, without the bin for missing values, (C,)."""
        n_bins = (1 + np.diff(self.cut_offsets)).astype(np.int32)
        sizes = [len(names) for names in self.categories if is_dense(names)]
        n_bins[self.categorical] = np.maximum(1, np.array(sizes, np.int32))
        return n_bins

    @lazy
    def default_bins(self) -> NDArray[np.uint8]:
        """Bin of each sparse attribute where it is absent (value 0), (A,)."""
        return self._bins_of(0.0)[self.n_dense :]

    def column_names(self) -> list[str]:
        """Name of each column; ``column=value`` for a category that is an attribute."""
        if self.index is not None:
            return self.index.names()[: self.n_columns]
        names = self.schema.column_names()
        numeric = [name for name, flag in zip(names, self.schema.numeric, strict=True) if flag]
        text = [name for name, flag in zip(names, self.schema.numeric, strict=True) if not flag]
        pairs = list(zip(text, self.categories, strict=True))
        dense = [name for name, known in pairs if is_dense(known)]
        presence = [f"{n}={value}" for n, known in pairs if not is_dense(known) for value in known]
        return numeric + dense + presence

    @lazy
    def _bins_of_one(self) -> NDArray[np.uint8]:
        return self._bins_of(1.0)[self.n_dense :]

    def _bins_of(self, value: float) -> NDArray[np.uint8]:
        """Bin of a number in each column, (C,); the first bin for categorical columns."""
        cuts_below = np.concatenate([[0], np.cumsum(self.cuts <= value)])
        return (1 + np.diff(cuts_below[self.cut_offsets])).astype(np.uint8)

    def _imputed(
        self, binned: Binned, max_bins: int, comm: Comm, weights: NDArray[np.float64] | None
    ) -> NDArray[np.uint8]:
        """Bin that is imputed in each column, (C,); for attributes, the bin of 0."""
        imputed, n_dense = self._bins_of(0.0), self.n_dense
        n_bins, categorical = self.n_bins[:n_dense], self.categorical[:n_dense]
        imputed[:n_dense] = impute_bins(binned.dense, n_bins, categorical, max_bins, comm, weights)
        return imputed

    def _fill_numeric(self, sequences: Sequences, bins: NDArray[np.uint8], n_threads: int) -> None:
        cut_offsets = self.cut_offsets[: self.n_numeric + 1]
        dense = _readable(sequences)
        start = 0
        for block in dense_blocks(sequences) if dense is None else [dense]:
            stop = start + len(block)
            _core.fill_bins(block, cut_offsets, self.cuts, bins[start:stop], n_threads)
            start = stop

    def _presence_rows(self, numbers: list[NDArray[np.int32]]) -> SparseRows:
        """Rows of the categories of large text columns, from their numbers, each (N,)."""
        columns, first = [], 0
        for codes, known in zip(numbers, self.categories, strict=True):
            if not is_dense(known):
                columns.append(np.where(codes < 0, -1, codes + first).astype(np.int32))
                first += len(known)
        return presence_entries(np.stack(columns, axis=1), self.n_attributes)

    def _bin_entries(self, rows: SparseRows, n_threads: int) -> NDArray[np.uint8]:
        if rows.values is None:
            return self._bins_of_one[rows.indices]
        bins = np.empty(len(rows.indices), np.uint8)
        cut_offsets = self.cut_offsets[self.n_dense :]
        _core.fill_entry_bins(rows.values, rows.indices, cut_offsets, self.cuts, bins, n_threads)
        return bins


def check_max_bins(max_bins: Any) -> None:
    """Raise ValueError unless columns can have this maximum number of bins."""
    check_number("max_bins", max_bins, minimum=2, maximum=MAX_BINS, integer=True)


def is_dense(categories: list[str]) -> bool:
    """Whether a text column with these categories is one dense column."""
    return len(categories) <= MAX_CATEGORIES


def _readable(sequences: Sequences) -> NDArray[Any] | None:
    """The dense columns, if kernels can read their numbers directly."""
    dense = sequences.dense
    return dense if dense is not None and dense.dtype in READ_AS_THEY_ARE else None


def place_categories(column: Categorical, known: list[str]) -> NDArray[np.int32]:
    """Index of each value in `known`, (N,); -1 for missing or unknown values."""
    if column.categories == known:
        return column.codes

    def find(category: str) -> int:
        place = bisect_left(known, category)
        return place if known[place : place + 1] == [category] else -1

    return number_categories(column, find, lambda: known)[column.codes]
