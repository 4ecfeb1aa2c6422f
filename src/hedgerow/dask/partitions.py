"""Partitions: the parts of a data set that workers read, each with a name for messages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ParquetRows", "Part", "find_files", "is_parquet"]

# A path with one of these characters is a pattern, not the name of a file.
WILDCARDS = "*?["


@dataclass(frozen=True)
class ParquetRows:
    """All rows of a Parquet file, read by the worker."""

    path: str

    def read(self) -> pa.Table:
        """All columns as an Arrow table, except those in which pandas or Dask store an index."""
        from pyarrow import parquet

        table = parquet.read_table(self.path, partitioning=None)
        index = (table.schema.pandas_metadata or {}).get("index_columns", [])
        return table.drop_columns([name for name in index if isinstance(name, str)])


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a data set.

    Attributes
    ----------
    name : str
        Its name in messages.
    rows : Any
        A DataFrame of any library (on the client: a future), or `ParquetRows`.
    """

    name: str
    rows: Any

    def read(self) -> Any:
        """The rows, as a DataFrame of any library."""
        return self.rows.read() if isinstance(self.rows, ParquetRows) else self.rows


def is_parquet(X: Any) -> bool:
    """Whether an argument names Parquet files: a path, a pattern, or a list of them."""
    if isinstance(X, (str, os.PathLike)):
        return True
    is_list = isinstance(X, (list, tuple)) and len(X) > 0
    return is_list and all(isinstance(each, (str, os.PathLike)) for each in X)


def find_files(paths: str | os.PathLike[str] | Sequence[Any]) -> list[str]:
    """The Parquet files that match paths, folders and patterns, in order, without repetition.

    Raises
    ------
    FileNotFoundError
        One of them matches no file.
    """
    given: Iterable[Any] = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    found: dict[str, None] = {}
    for each in map(os.fspath, given):
        pattern = os.path.join(each, "*.parquet") if os.path.isdir(each) else each
        has_wildcard = any(mark in pattern for mark in WILDCARDS)
        files = sorted(glob(pattern)) if has_wildcard else [pattern]
        if not files or not all(map(os.path.isfile, files)):
            raise FileNotFoundError(
                f"there is no Parquet file {each!r}; expected the path of a file, of a folder of "
                "files whose names end in .parquet, or a pattern such as 'data/*.parquet'"
            )
        found.update(dict.fromkeys(files))
    return list(found)
