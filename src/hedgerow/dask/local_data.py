"""Local data: what one worker trains on, put together from its partitions.

Partitions are read one after the other; their numbers go to disk, see `TableStore`, so that memory
has to hold the bins of a training alone, and one partition.
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
    """What a worker has read of one partition; it is read again where an error is looked for."""

    @property
    def name(self) -> str:
        """How messages call the partition."""

    @property
    def groups(self) -> list[Any]:
        """Names of its sequences."""

    def raw(self, first: int, stop: int) -> RawData:
        """Its sequences `first` to `stop` alone."""


@dataclass(frozen=True, eq=False)
class LocalData:
    """What one worker trains on.

    Attributes
    ----------
    raw : RawData
        X, y and all that belongs to them.
    portions : sequence of Portion
        What it consists of, partitions without rows left out.
    group_column : str
        Where the names of groups come from.
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
    """Columns of a table that are no features.

    Attributes
    ----------
    group : str
        The sequence of each row.
    label : str
        Labels.
    weight : str or None
        How much each row counts.
    position : str or None
        What the rows of a sequence are sorted by; None: they are in order.
    parents : str or None
        Where in its sequence the parent of each row is.
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
            raise ValueError(
                f"{' and '.join(given)} name {', '.join(map(repr, given.values()))}; expected "
                "different columns"
            )

    def features(self, frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
        """All other columns."""
        apart = (self.group, self.label, self.weight, self.position, self.parents)
        return frame.drop([name for name in apart if name is not None])


@dataclass(frozen=True)
class TableReader:
    """Reads partitions that are tables, whose columns have names."""

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
    """Put the name of a partition before errors of its data."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"{part}: {error}") from error


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a partition, whole groups one after the other, from `offsets` (G + 1,) on."""

    frame: nw.DataFrame[Any]
    offsets: NDArray[np.int64]
    groups: list[Any]

    @classmethod
    def read(cls, part: Part, roles: ColumnRoles) -> _Rows:
        # An index of pandas often has the name of a column.
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
        """The values of a column, (N,); equal texts are one object."""
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
