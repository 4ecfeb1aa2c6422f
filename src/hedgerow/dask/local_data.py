"""Local data: what one worker trains on, put together from its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.dask.partitions import Part
from hedgerow.encode.groups import name_groups, read_groups
from hedgerow.raw_data import RawData

__all__ = ["ColumnRoles", "LocalData", "PartRows"]


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
    """

    group: str
    label: str
    weight: str | None = None
    position: str | None = None

    def check(self, names: Sequence[str], where: str) -> None:
        """Raise ValueError unless a table has all of these columns."""
        roles = {"group_column": self.group, "y": self.label}
        roles |= {"sample_weight": self.weight} if self.weight is not None else {}
        roles |= {"position_column": self.position} if self.position is not None else {}
        for role, name in roles.items():
            if name not in names:
                raise ValueError(
                    f"{where} has no column {name!r}, which {role} names; its columns are "
                    f"{', '.join(map(repr, names))}"
                )
        if len(set(roles.values())) < len(roles):
            raise ValueError(
                f"{' and '.join(roles)} name {', '.join(map(repr, roles.values()))}; expected "
                "different columns"
            )


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of one partition, whole groups one after the other.

    Attributes
    ----------
    name : str
        How messages call the partition.
    frame : nw.DataFrame
        The rows.
    offsets : (G + 1,) int64
        Where groups begin and end.
    groups : list, (G,)
        Their names.
    """

    name: str
    frame: nw.DataFrame[Any]
    offsets: NDArray[np.int64]
    groups: list[Any]

    @classmethod
    def read(cls, part: Part, roles: ColumnRoles) -> PartRows:
        """Read a partition; errors name it."""
        frame = nw.from_native(part.read(), eager_only=True)
        roles.check(frame.columns, part.name)
        if roles.position is not None:
            frame = frame.sort(roles.group, roles.position)
        ids = frame[roles.group].to_native()
        try:
            offsets = read_groups(ids, len(frame), roles.group) if len(frame) else np.zeros(1)
        except ValueError as error:
            raise ValueError(f"{part.name}: {error}") from None
        offsets = offsets.astype(np.int64)
        return cls(part.name, frame, offsets, name_groups(ids, offsets) if len(frame) else [])

    def select(self, first: int, stop: int) -> PartRows:
        """Only the groups `first` to `stop`."""
        begin, end = int(self.offsets[first]), int(self.offsets[stop])
        offsets = self.offsets[first : stop + 1] - begin
        return PartRows(self.name, self.frame[begin:end], offsets, self.groups[first:stop])


@dataclass(frozen=True, eq=False)
class LocalData:
    """What one worker trains on.

    Attributes
    ----------
    parts : sequence of PartRows
        Its partitions, without those that are empty.
    roles : ColumnRoles
        Which of their columns are no features.
    """

    parts: Sequence[PartRows]
    roles: ColumnRoles

    @classmethod
    def read(cls, parts: Sequence[Part], roles: ColumnRoles) -> LocalData:
        """Read all partitions of a worker."""
        read = (PartRows.read(part, roles) for part in parts)
        return cls([rows for rows in read if rows.groups], roles)

    def raw(self) -> RawData:
        """What `fit` takes: X with its column of groups, labels and weights."""
        return to_raw(join_frames([rows.frame for rows in self.parts]), self.roles)


def to_raw(frame: nw.DataFrame[Any], roles: ColumnRoles) -> RawData:
    """Take the columns that are no features out of X, but for that of groups."""
    apart = [roles.label, roles.weight, roles.position]
    X = frame.drop([name for name in apart if name is not None])
    weights = None if roles.weight is None else frame[roles.weight].to_numpy()
    return RawData(X.to_native(), frame[roles.label].to_native(), sample_weight=weights)


def join_frames(frames: Sequence[nw.DataFrame[Any]]) -> nw.DataFrame[Any]:
    """One frame of all rows."""
    if len(frames) == 1:
        return frames[0]
    if frames[0].implementation.is_pyarrow():
        import pyarrow as pa

        tables: list[Any] = [frame.to_native().unify_dictionaries() for frame in frames]
        table = pa.concat_tables(tables, promote_options="permissive")
        return nw.from_native(table, eager_only=True)
    return nw.concat(list(frames))
