"""Parquet sets: one or several Parquet files as one data set, whose numbers stay on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hedgerow.encode.table_store import TableStore
from hedgerow.files.batch import Batch
from hedgerow.files.errors import FileError, Path, display_name
from hedgerow.files.reading import stream_file
from hedgerow.files.recipe import Recipe
from hedgerow.files.source import open_source

__all__ = ["ParquetSet", "count_rows", "read_parquet_files"]

# Number of positions that are read at a time: large enough to be fast, small enough for memory.
N_POSITIONS = 1 << 16


def count_rows(path: Path) -> int:
    """Number of rows of a Parquet file, from its metadata."""
    from pyarrow import parquet

    from hedgerow.files.typed_tables import as_file_errors, place_of

    with (
        open_source(path) as source,
        place_of(source) as place,
        as_file_errors(path, "Parquet"),
    ):
        n_rows: int = parquet.read_metadata(place).num_rows
    return n_rows


def read_parquet_files(
    paths: Sequence[Path], recipe: Recipe, report: Callable[[int], object] | None = None
) -> Batch:
    """Read the sequences of Parquet files, which may be larger than memory.

    Parameters
    ----------
    paths
        The files. Every sequence must be in a single file.
    recipe
        How they are read.
    report
        Called after each batch with its number of rows.

    Raises
    ------
    FileError
        A file does not match the recipe, no file has a sequence, or a group is in two files.
    """
    with ParquetSet(recipe) as files:
        for path in paths:
            files.read(path, report)
        return files.finish()


class ParquetSet:
    """Reads files, one after another, within a ``with`` block, into one data set.

    Labels, names of sequences and, for every text column, 4 bytes per position are in memory;
    numbers are in a temporary file, see `hedgerow.encode.table_store.TableStore`.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._store = TableStore()
        self._y: list[list[Any]] = []
        self._parents: list[list[Any]] = []
        self._found_in: dict[Any, Path] = {}
        self._one: dict[Any, Any] = {}  # equal labels are the same object

    def __enter__(self) -> ParquetSet:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.__exit__()

    def read(self, path: Path, report: Callable[[int], object] | None = None) -> list[Any]:
        """Read a file; returns the names of its groups."""
        names: list[Any] = []
        share = self._one.setdefault
        for batch in stream_file(path, self._recipe, labels=True, n_positions=N_POSITIONS):
            frames: Any = batch.X
            assert batch.names is not None
            assert batch.y is not None
            for name in batch.names:
                self._check_new(name, path)
            self._store.append(frames.frame, frames.offsets, batch.names)
            self._y += [[share(label, label) for label in labels] for labels in batch.y]
            self._parents += batch.parents or ()
            names += batch.names
            if report is not None:
                report(batch.n_positions)
        self._last = path
        return names

    def finish(self) -> Batch:
        """The data set of all files."""
        if not self._y:
            raise FileError(self._last, "the file is empty: it has no sequence")
        parents = None if self._recipe.heads is None else self._parents
        X: Any = self._store.finish()
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
        return Batch(X, self._y, None, parents=parents, names=list(self._found_in))

    def _check_new(self, name: Any, path: Path) -> None:
        before = self._found_in.setdefault(name, path)
        if before != path:
            assert self._recipe.group is not None
            raise FileError(
                path,
                f"group {name!r} of column {self._recipe.columns[self._recipe.group]!r} is in "
                f"{display_name(before)} too; the rows of a group must be in one file",
            )
