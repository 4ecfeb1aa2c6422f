"""Parquet sets: one or several Parquet files as one data set, whose numbers stay on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from hedgerow.encode.table_store import TableStore
from hedgerow.files.batch import Batch
from hedgerow.files.errors import FileError, Path, display_name
from hedgerow.files.reading import stream_file
from hedgerow.files.recipe import Recipe

__all__ = ["count_rows", "read_parquet_files"]

# Positions that are read at a time: enough to be quick, few enough to need little memory.
N_POSITIONS = 1 << 16


def count_rows(path: Path) -> int:
    """Number of rows of a Parquet file, which it says itself."""
    from pyarrow import parquet

    from hedgerow.files.typed_tables import as_file_errors

    with as_file_errors(path, "Parquet"):
        n_rows: int = parquet.read_metadata(path).num_rows
    return n_rows


def read_parquet_files(
    paths: Sequence[Path], recipe: Recipe, report: Callable[[int], object] = lambda n_rows: None
) -> Batch:
    """Read the sequences of some files, larger than memory if need be.

    Memory holds the labels, the names of sequences and, for every column of text, 4 bytes per
    position; numbers are in a temporary file, see `hedgerow.encode.table_store.TableStore`.

    Parameters
    ----------
    paths
        The files. Every sequence is in one of them.
    recipe
        How they are read.
    report
        Called with the number of rows that were read, again and again.

    Raises
    ------
    FileError
        A file does not fit the recipe, none has a sequence, or a group is in two files.
    """
    y: list[list[list[Any]] | None] = []
    parents: list[list[list[Any]] | None] = []
    found_in: dict[Any, Path] = {}
    with TableStore() as store:
        for path in paths:
            for batch in stream_file(path, recipe, labels=True, n_positions=N_POSITIONS):
                for name in batch.names or ():
                    _check_new(name, found_in, path, recipe)
                store.append(batch.X.frame, batch.X.offsets, batch.names or [])  # type: ignore[attr-defined]
                y.append(batch.y)
                parents.append(batch.parents)
                report(batch.n_positions)
        if not y:
            raise FileError(paths[0], "the file is empty: it has no sequence")
        X: Any = store.finish()
    return Batch(X, _join(y), None, parents=_join(parents), names=list(found_in))


def _check_new(name: Any, found_in: dict[Any, Path], path: Path, recipe: Recipe) -> None:
    before = found_in.setdefault(name, path)
    if before != path:
        assert recipe.group is not None
        raise FileError(
            path,
            f"group {name!r} of column {recipe.columns[recipe.group]!r} is in "
            f"{display_name(before)} too; the rows of a group must be in one file",
        )


def _join(parts: list[list[list[Any]] | None]) -> list[list[Any]] | None:
    """The lists of all parts, in which equal labels are one object."""
    if any(part is None for part in parts):
        return None
    one: dict[Any, Any] = {}
    sequences = chain.from_iterable(part for part in parts if part is not None)
    return [[one.setdefault(value, value) for value in sequence] for sequence in sequences]
