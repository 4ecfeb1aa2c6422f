"""Sequences: the container that everything below `encode` works on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core

__all__ = [
    "MAX_FEATURES",
    "Categorical",
    "CategoryKind",
    "FoldScores",
    "PositionFacts",
    "Schema",
    "SchemaJSON",
    "Sequences",
    "SparseRows",
    "check_finite",
    "check_not_infinite",
    "merely_count",
]

# Maximum number of columns of a model, and of a model file.
MAX_FEATURES = 10**8
# Maximum number of positions of all sequences together: kernels number them with 32 bits.
MAX_POSITIONS = 2**31 - 1
# Number of values that are checked at a time: small enough for the cache.
BLOCK = 1 << 18
# Larger numbers would overflow when they are multiplied by weights and added up.
LARGEST = 1e100

# The type of the values of a text column before they became strings; "text" if mixed.
CategoryKind = Literal["text", "numbers", "bools"]


class _ColumnsJSON(TypedDict):
    kind: str
    n_features: int
    names: list[str] | None
    text: list[int]


class SchemaJSON(_ColumnsJSON, total=False):
    """A `Schema` as plain JSON values; `text` lists the columns that are not numeric."""

    has_parents: bool  # absent if it is false


@dataclass(frozen=True)
class Schema:
    """The columns of X.

    Attributes
    ----------
    kind : {"columns", "items"}
        Columns (arrays, frames, sparse matrices) or named attributes (dicts, strings).
    n_features : int
        Number of columns; 0 for items, whose attributes live in an index.
    names : tuple of str or None
        Column names of a DataFrame. None for arrays, and if names are not strings.
    numeric : tuple of bool
        One flag per column: True for numbers, False for text and categories.
    has_parents : bool
        Whether X comes with parents, so that sequences are trees; otherwise they are chains.
    library : "pandas", "polars" or None
        The library of X's frames, if any; it is not part of a model, and not saved.
    """

    kind: Literal["columns", "items"]
    n_features: int
    names: tuple[str, ...] | None
    numeric: tuple[bool, ...]
    library: str | None = field(default=None, compare=False)
    has_parents: bool = False

    def column(self, number: int) -> str:
        """Name column `number` for a message: ``column 'speed'`` or ``column 3``."""
        if self.kind == "items":
            return f"attribute number {number}"
        return f"column {number if self.names is None else repr(self.names[number])}"

    def column_names(self) -> list[str]:
        """Name each column: ``x0``, ``x1``, ... where X has no names."""
        return list(self.names) if self.names else [f"x{j}" for j in range(self.n_features)]

    def to_json(self) -> SchemaJSON:
        """Return the schema as a dict of plain JSON values."""
        data: SchemaJSON = {
            "kind": self.kind,
            "n_features": self.n_features,
            "names": None if self.names is None else list(self.names),
            "text": [number for number, flag in enumerate(self.numeric) if not flag],
        }
        if self.has_parents:
            data["has_parents"] = True
        return data

    @classmethod
    def from_json(cls, data: SchemaJSON) -> Schema:
        """Rebuild the schema that `to_json` wrote."""
        names, text = data["names"], set(data["text"])
        return cls(
            kind="items" if data["kind"] == "items" else "columns",
            n_features=data["n_features"],
            names=None if names is None else tuple(names),
            numeric=tuple(number not in text for number in range(data["n_features"])),
            has_parents=data.get("has_parents", False),
        )


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Compressed sparse rows, one row per position.

    Attributes
    ----------
    indptr : (N + 1,) int64
        Row t holds the entries ``indptr[t]`` to ``indptr[t + 1]``.
    indices : (nnz,) int32
        Column of each entry.
    values : (nnz,) float64 or None
        Value of each entry; None: all are 1.
    n_columns : int
        Number of columns.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64] | None
    n_columns: int

    def part(self, begin: int, end: int) -> SparseRows:
        """Rows `begin` to `end`, as views where possible."""
        first, last = int(self.indptr[begin]), int(self.indptr[end])
        values = None if self.values is None else self.values[first:last]
        return SparseRows(
            self.indptr[begin : end + 1] - first, self.indices[first:last], values, self.n_columns
        )

    def select(self, rows: NDArray[np.int64]) -> SparseRows:
        """Only some rows, in the order given."""
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        # Entry k of row r was at k - indptr[r] + (where the row began).
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], counts)
        values = None if self.values is None else self.values[entries]
        return SparseRows(indptr, self.indices[entries], values, self.n_columns)

    def renumber(self, numbers: NDArray[np.int32], n_columns: int = 0) -> SparseRows:
        """Give each column its new number, and drop columns of number -1 and entries of value 0."""
        indices = numbers[self.indices]
        keep = indices >= 0
        if self.values is not None:
            keep &= self.values != 0
        if keep.all():
            return SparseRows(self.indptr, indices, self.values, n_columns)
        kept_before = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
        values = None if self.values is None else self.values[keep]
        return SparseRows(kept_before[self.indptr], indices[keep], values, n_columns)


@dataclass(frozen=True, eq=False)
class Categorical:
    """One column of strings or categories.

    Attributes
    ----------
    name : str
        Name of the column.
    codes : (N,) int32
        Index into `categories`; -1 is missing.
    categories : list of str
        The distinct values that occur, sorted.
    kind : {"text", "numbers", "bools"}
        The type of the values before they became strings; "text" if mixed.
    spellings : dict of tuples of str
        For categories that were numbers, other spellings of an equal number.
    declared : bool
        Whether the column has a categorical dtype, not just text or objects.
    """

    name: str
    codes: NDArray[np.int32]
    categories: list[str]
    kind: CategoryKind = "text"
    spellings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    declared: bool = field(default=False, compare=False)

    def select(self, rows: NDArray[np.int64]) -> Categorical:
        """Only some rows, and the categories that occur in them."""
        codes = self.codes[rows]
        used = np.unique(codes[codes >= 0])
        numbers = np.full(len(self.categories) + 1, -1, np.int32)  # the last stands for missing
        numbers[used] = np.arange(len(used))
        categories = [self.categories[code] for code in used.tolist()]
        spellings = {name: self.spellings[name] for name in categories if name in self.spellings}
        return replace(self, codes=numbers[codes], categories=categories, spellings=spellings)


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores of N positions by models that were not trained on their sequences.

    Attributes
    ----------
    nodes : (N, K) float64
        Scores of the labels.
    edges : (N, ...) float64 or None
        Scores of label pairs or arcs, if they differ from position to position.
    """

    nodes: NDArray[np.float64]
    edges: NDArray[np.float64] | None

    def take(self, rows: slice | NDArray[np.int64]) -> FoldScores:
        """Only some positions."""
        return FoldScores(self.nodes[rows], None if self.edges is None else self.edges[rows])


class PositionFacts(Protocol):
    """Facts about N positions, see `hedgerow.relational.facts.Facts`."""

    def select(self, positions: NDArray[np.int64]) -> PositionFacts:
        """The facts about some positions."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """N positions of S sequences, concatenated.

    Attributes
    ----------
    offsets : (S + 1,) int64
        Sequence s holds the positions ``offsets[s]`` to ``offsets[s + 1]``.
    schema : Schema
        What the columns are.
    dense : (N, number of numeric columns) array or None
        The numeric columns, C-contiguous; NaN is missing. None if there are none, or if
        they are sparse.
    sparse : SparseRows or None
        Sparse columns, or the attributes of items.
    categorical : tuple of Categorical
        The text columns, in the order of X.
    flat : bool
        X was one block of rows, not a list of sequences; the output is flat as well.
    ids : list or None
        Ids of the sequences of a flat X, (S,); None if there are none, or if ids that were passed
        separately from X merely number the sequences.
    numbers : list or None
        The ids, (S,), if all of them are numbers; otherwise None. If the numbers of all workers
        together are just 0, 1, 2, ... or 1, 2, 3, ..., they do not identify sequences.
    parents : (N,) int32 or None
        Index of the parent of each position in its sequence, -1 for a root; None if sequences are
        chains, in which the parent is the previous position.
    base_scores : (N, K) float64 or None
        Label scores that the user passes.
    base : Sequences or None
        The same positions with the features of a base model.
    fold_scores : FoldScores or None
        For the sequences of a base model: cross-fitted scores that replace its own.
    facts : PositionFacts or None
        The facts in which attributes were found, if training may find more of them.
    """

    offsets: NDArray[np.int64]
    schema: Schema
    dense: NDArray[Any] | None
    sparse: SparseRows | None
    categorical: tuple[Categorical, ...]
    flat: bool
    ids: list[Any] | None = field(default=None, compare=False)
    numbers: list[float] | None = field(default=None, compare=False)
    parents: NDArray[np.int32] | None = None
    base_scores: NDArray[np.float64] | None = None
    base: Sequences | None = None
    fold_scores: FoldScores | None = None
    facts: PositionFacts | None = None

    def __post_init__(self) -> None:
        if self.n_positions > MAX_POSITIONS:
            raise ValueError(
                f"X has {self.n_positions:,} positions; expected at most {MAX_POSITIONS:,} in one "
                "process: pass fewer sequences at a time, or train on several workers"
            )

    @property
    def n_sequences(self) -> int:
        """Number of sequences, S."""
        return len(self.offsets) - 1

    @property
    def n_positions(self) -> int:
        """Number of positions of all sequences together, N."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of positions of each sequence, (S,)."""
        return np.diff(self.offsets)

    def part(self, first: int, stop: int) -> Sequences:
        """Only the sequences `first` to `stop`, as views where possible."""
        begin, end = int(self.offsets[first]), int(self.offsets[stop])
        return replace(
            self,
            offsets=self.offsets[first : stop + 1] - begin,
            dense=None if self.dense is None else self.dense[begin:end],
            sparse=None if self.sparse is None else self.sparse.part(begin, end),
            categorical=tuple(
                replace(column, codes=column.codes[begin:end]) for column in self.categorical
            ),
            ids=None if self.ids is None else self.ids[first:stop],
            numbers=None if self.numbers is None else self.numbers[first:stop],
            parents=None if self.parents is None else self.parents[begin:end],
            base_scores=None if self.base_scores is None else self.base_scores[begin:end],
            base=self.base and self.base.part(first, stop),
            fold_scores=self.fold_scores and self.fold_scores.take(slice(begin, end)),
            facts=self.facts and self.facts.select(np.arange(begin, end)),
        )

    def select(self, positions: NDArray[np.int64], offsets: NDArray[np.int64]) -> Sequences:
        """Some positions, which form unnamed sequences according to `offsets`.

        They are consecutive within a sequence, and their parents are included.
        """
        return replace(
            self,
            offsets=offsets,
            dense=None if self.dense is None else self.dense[positions],
            sparse=None if self.sparse is None else self.sparse.select(positions),
            categorical=tuple(column.select(positions) for column in self.categorical),
            ids=None,
            numbers=None,
            parents=self._select_parents(positions, offsets),
            base_scores=None if self.base_scores is None else self.base_scores[positions],
            base=self.base and self.base.select(positions, offsets),
            fold_scores=self.fold_scores and self.fold_scores.take(positions),
            facts=self.facts and self.facts.select(positions),
        )

    def _select_parents(
        self, positions: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> NDArray[np.int32] | None:
        """Indices of parents, counted from the first selected position of each sequence."""
        if self.parents is None:
            return None
        begins = positions[offsets[:-1]]
        owners = np.searchsorted(self.offsets, begins, side="right") - 1
        skipped = np.repeat(begins - self.offsets[owners], np.diff(offsets)).astype(np.int32)
        parents = self.parents[positions]
        return np.where(parents < 0, np.int32(-1), parents - skipped)

    def mirror(self, array: NDArray[Any]) -> NDArray[Any] | list[NDArray[Any]]:
        """Give an array over positions the same structure as the user's X.

        Parameters
        ----------
        array : (N, ...) array
            One row per position.

        Returns
        -------
        array or list of arrays
            `array` itself for flat input, else a list of views, one per sequence.
        """
        if self.flat:
            return array
        lengths = self.lengths
        if len(lengths) > 0 and (lengths == lengths[0]).all():
            rows = array.reshape(len(lengths), int(lengths[0]), *array.shape[1:])
            return list(rows)  # faster than slices
        bounds = self.offsets.tolist()
        return list(map(array.__getitem__, map(slice, bounds[:-1], bounds[1:])))

    def locate(self, position: int) -> tuple[int, int]:
        """Return the sequence that contains a position, and the position within it."""
        if not 0 <= position < self.n_positions:
            raise IndexError(
                f"position {position} is outside the {self.n_positions} positions; "
                f"expected 0 to {self.n_positions - 1}"
            )
        sequence = int(np.searchsorted(self.offsets, position, side="right")) - 1
        return sequence, position - int(self.offsets[sequence])


def cut_runs(offsets: NDArray[np.int64], n_positions: int) -> Iterator[tuple[int, int]]:
    """Divide sequences into runs of up to this many positions.

    Yields for each run the number of its first sequence, and the number after that of its last
    sequence. A single sequence may be longer. If there are no sequences, as on a worker whose
    sequences are all held out, there is one empty run.
    """
    first, n_sequences = 0, len(offsets) - 1
    if n_sequences == 0:
        yield 0, 0
    while first < n_sequences:
        stop = int(np.searchsorted(offsets, offsets[first] + n_positions, side="right")) - 1
        stop = min(max(stop, first + 1), n_sequences)
        yield first, stop
        first = stop


def check_finite(sequences: Sequences, model: str = "the model", *, n_threads: int = 1) -> None:
    """Raise ValueError if a number of X is NaN, or not between -`LARGEST` and `LARGEST`."""
    cell = _first_unusable(sequences, _Range(float(np.nextafter(LARGEST, 0)), False), n_threads)
    if cell is not None:
        need = "needs finite numbers: impute or drop it"
        if np.isfinite(cell.value):
            need = f"takes numbers between {-LARGEST:g} and {LARGEST:g}: scale the column"
        raise _refused(sequences, cell, f"{model} {need}")


def check_not_infinite(
    sequences: Sequences, model: str = "the model", *, n_threads: int = 1
) -> None:
    """Raise ValueError if a number of X is infinite; NaN, for missing values, is accepted."""
    cell = _first_unusable(sequences, _Range(float(np.finfo(np.float64).max), True), n_threads)
    if cell is not None:
        need = "needs finite numbers, or NaN for missing ones: clip or drop it"
        raise _refused(sequences, cell, f"{model} {need}")


class _Range(NamedTuple):
    """The range of valid numbers: from -largest to largest, and NaN if they may be missing."""

    largest: float
    may_be_missing: bool


class _Cell(NamedTuple):
    row: int
    column: int
    value: float


def _first_unusable(sequences: Sequences, usable: _Range, n_threads: int) -> _Cell | None:
    dense, sparse = sequences.dense, sequences.sparse
    if dense is not None and dense.dtype.kind == "f":
        place = _find_unusable(dense.reshape(-1), usable, n_threads)
        if place is not None:
            row, column = divmod(place, dense.shape[1])
            number = int(np.flatnonzero(sequences.schema.numeric)[column])
            return _Cell(row, number, float(dense[row, column]))
    if sparse is not None and sparse.values is not None:
        entry = _find_unusable(sparse.values, usable, n_threads)
        if entry is not None:
            row = int(np.searchsorted(sparse.indptr, entry, side="right")) - 1
            return _Cell(row, int(sparse.indices[entry]), float(sparse.values[entry]))
    return None


def _find_unusable(values: NDArray[Any], usable: _Range, n_threads: int) -> int | None:
    """Index of the first invalid number."""
    is_read = values.dtype in (np.float32, np.float64)  # others are converted block by block
    step = len(values) if is_read else BLOCK
    for start in range(0, len(values), max(step, 1)):
        block = values[start : start + step]
        if not is_read:
            with np.errstate(over="ignore"):
                block = block.astype(np.float64)
        found = _core.find_unusable(block, *usable, n_threads)
        if found < len(block):
            return start + found
    return None


def _refused(sequences: Sequences, cell: _Cell, why: str) -> ValueError:
    what = "NaN" if np.isnan(cell.value) else str(cell.value)
    sequence, position = sequences.locate(cell.row)
    where = f"X has {what} at row {cell.row}"
    if not sequences.flat:
        where = f"X[{sequence}] has {what} at position {position}"
    return ValueError(f"{where}, {sequences.schema.column(cell.column)}; {why}")


def merely_count(ids: Iterable[Any]) -> bool:
    """Whether ids are 0, 1, 2, ... or 1, 2, 3, ..., in any order, as in many unrelated data sets.

    Several workers may have the same ids, if each numbers its own sequences.
    """
    distinct = set(ids)
    return any(distinct == set(range(first, first + len(distinct))) for first in (0, 1))
