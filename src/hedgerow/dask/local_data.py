"""Local data: the data of one worker, assembled from its partitions.

Partitions are read one after another, and their numeric columns are written to disk, see
`TableStore`. So if they come from Parquet files, memory holds the numbers of only one partition at
a time while they are read; training of trees keeps only the bins of all partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.dask.partitions import ParquetRows, Part
from hedgerow.encode.groups import name_groups, read_groups
from hedgerow.encode.table_store import StoredTable, TableStore
from hedgerow.files import Batch, Recipe
from hedgerow.files.parquet_sets import ParquetSet
from hedgerow.raw_data import RawData

__all__ = ["ColumnRoles", "FileReader", "LocalData", "Portion", "Reader", "TableReader"]


class Portion(Protocol):
    """The data of one partition; it is read again to find the cause of an error."""

    @property
    def name(self) -> str:
        """Name of the partition in messages."""

    @property
    def groups(self) -> list[Any]:
        """Names of its sequences."""

    def raw(self, first: int, stop: int) -> RawData:
        """Only its sequences `first` to `stop`."""


@dataclass(frozen=True, eq=False)
class LocalData:
    """The training data of one worker.

    Attributes
    ----------
    raw : RawData
        X, y and further arguments.
    portions : sequence of Portion
        Its partitions, without empty ones.
    group_column : str
        Column with the names of groups.
    """

    raw: RawData
    portions: Sequence[Portion]
    group_column: str


class Reader(Protocol):
    """How workers read their partitions."""

    def read(self, parts: Sequence[Part]) -> LocalData:
        """All partitions of a worker."""


@dataclass(frozen=True)
class ColumnRoles:
    """Columns of a table that are not features.

    Attributes
    ----------
    group : str
        The sequence of each row.
    label : str
        Labels.
    weight : str or None
        Weight of each row.
    position : str or None
        Sort key of the rows of a sequence; None: they are in order.
    parents : str or None
        Index of the parent of each row in its sequence.
    """

    group: str
    label: str
    weight: str | None = None
    position: str | None = None
    parents: str | None = None

    def check(self, names: Sequence[str], where: str) -> None:
        """Raise ValueError unless a table has all of these columns."""
        roles = {
            "group_column": self.group,
            "y": self.label,
            "sample_weight": self.weight,
            "position_column": self.position,
            "parents_column": self.parents,
        }
        given = {role: name for role, name in roles.items() if name is not None}
        for role, name in given.items():
            if name not in names:
                raise ValueError(
                    f"{where} has no column {name!r}, which {role} names; its columns are "
                    f"{', '.join(map(repr, names))}"
                )
        if len(set(given.values())) < len(given):
            shown = ", ".join(f"{role}={name!r}" for role, name in given.items())
            raise ValueError(f"a column is used twice: {shown}; pass different columns")

    def features(self, frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
        """All other columns."""
        apart = (self.group, self.label, self.weight, self.position, self.parents)
        return frame.drop([name for name in apart if name is not None])


@dataclass(frozen=True)
class TableReader:
    """Reads partitions that are tables with column names."""

    roles: ColumnRoles

    def read(self, parts: Sequence[Part]) -> LocalData:
        """All partitions of a worker."""
        roles, portions = self.roles, []
        y, weights, parents = [], [], []
        with TableStore() as store:
            for part in parts:
                rows = _Rows.read(part, roles)
                if not rows.groups:
                    continue
                with naming(part.name):
                    store.append(roles.features(rows.frame), rows.offsets, rows.groups)
                y.append(rows.column(roles.label))
                weights.append(rows.column(roles.weight))
                parents.append(rows.column(roles.parents))
                portions.append(_TablePortion(part, roles, rows.groups))
            X = store.finish(flat=True)
        raw = RawData(X, _join(y), parents=_join(parents), sample_weight=_join(weights))
        return LocalData(raw, portions, roles.group)


@dataclass(frozen=True)
class FileReader:
    """Reads Parquet files as the command line does, by a recipe."""

    recipe: Recipe

    def read(self, parts: Sequence[Part]) -> LocalData:
        """All files of a worker."""
        portions, recipe = [], self.recipe
        with ParquetSet(recipe) as files:
            for part in parts:
                assert isinstance(part.rows, ParquetRows)
                names = files.read(part.rows.path)
                portions.append(_FilePortion(part.rows.path, recipe, names))
            raw = _to_raw(files.finish())
        assert recipe.group is not None
        return LocalData(raw, portions, recipe.columns[recipe.group])


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Prefix the messages of errors with the name of a partition."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"{part}: {error}") from error


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a partition, one group after another.

    `offsets` (G + 1,) are the bounds of the groups.
    """

    frame: nw.DataFrame[Any]
    offsets: NDArray[np.int64]
    groups: list[Any]

    @classmethod
    def read(cls, part: Part, roles: ColumnRoles) -> _Rows:
        # The index of a pandas frame often has the name of a column.
        frame = nw.maybe_reset_index(nw.from_native(part.read(), eager_only=True))
        roles.check(frame.columns, part.name)
        if not len(frame):
            return cls(frame, np.zeros(1, np.int64), [])
        if roles.position is not None:
            frame = frame.sort(roles.group, roles.position)
        ids = frame[roles.group].to_native()
        with naming(part.name):
            offsets = read_groups(ids, len(frame), roles.group)
        return cls(frame, offsets, name_groups(ids, offsets))

    def select(self, first: int, stop: int) -> _Rows:
        begin, end = int(self.offsets[first]), int(self.offsets[stop])
        offsets = self.offsets[first : stop + 1] - begin
        return _Rows(self.frame[begin:end], offsets, self.groups[first:stop])

    def column(self, name: str | None) -> NDArray[Any] | None:
        """The values of a column, (N,); equal strings are the same object."""
        if name is None:
            return None
        series = self.frame[name]
        if series.dtype.is_numeric() and not series.null_count():
            return series.to_numpy()
        one: dict[Any, Any] = {}
        values = [one.setdefault(value, value) for value in series.to_list()]
        return np.fromiter(values, np.object_, len(values))


@dataclass(frozen=True, eq=False)
class _TablePortion:
    part: Part
    roles: ColumnRoles
    groups: list[Any]

    @property
    def name(self) -> str:
        return self.part.name

    def raw(self, first: int, stop: int) -> RawData:
        roles, rows = self.roles, _Rows.read(self.part, self.roles).select(first, stop)
        with TableStore() as store:
            store.append(roles.features(rows.frame), rows.offsets, rows.groups)
            X = store.finish(flat=True)
        values = (rows.column(name) for name in (roles.label, roles.parents, roles.weight))
        y, parents, weights = values
        return RawData(X, y, parents=parents, sample_weight=weights)


@dataclass(frozen=True, eq=False)
class _FilePortion:
    name: str
    recipe: Recipe
    groups: list[Any]

    def raw(self, first: int, stop: int) -> RawData:
        with ParquetSet(self.recipe) as files:
            files.read(self.name)
            whole = _to_raw(files.finish())
        X = StoredTable(whole.X.sequences.part(first, stop))
        parents = None if whole.parents is None else whole.parents[first:stop]
        return RawData(X, whole.y[first:stop], parents=parents)


def _to_raw(batch: Batch) -> RawData:
    return RawData(batch.X, batch.y, parents=batch.parents)


def _join(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if given else None
