"""Writing: the rows of a file with additional columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

from hedgerow.files.batch import Batch
from hedgerow.files.conll import ConllWriter
from hedgerow.files.crfsuite import CrfsuiteWriter
from hedgerow.files.errors import Path
from hedgerow.files.recipe import COLUMNLESS, Recipe
from hedgerow.files.sink import open_sink


class RowWriter(Protocol):
    """Writes the rows of one format."""

    def write(self, batch: Batch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write the rows of a batch with additional columns."""
        ...

    def close(self, *, whole: bool) -> None:
        """Write what follows the last row, if there was no error."""
        ...


class Writer:
    """Writes batches, one after another; made by `open_writer`."""

    def __init__(self, rows: RowWriter, sink: BinaryIO, *, at_once: bool) -> None:
        self._rows = rows
        self._sink = sink
        self._at_once = at_once

    def write(self, batch: Batch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write the rows of a batch with additional columns.

        Parameters
        ----------
        batch
            From `stream_file`.
        columns
            The additional columns by name: for each, a list with the values of every sequence of
            the batch, which are strings, numbers or None. The names must be the same in every call.
        """
        self._rows.write(batch, columns)
        if self._at_once:
            self._sink.flush()


@contextmanager
def open_writer(path: Path, recipe: Recipe, *, as_csv: bool = False) -> Iterator[Writer]:
    """Open a file to write rows from `stream_file` in the same format, with additional columns.

    Parameters
    ----------
    path
        The file, gzipped if its name ends in ``.gz``; ``-`` is standard output, to which each batch
        is written immediately. A file is written atomically.
    recipe
        How the rows were read.
    as_csv
        Whether rows of a Parquet or Arrow file are written as CSV.
    """
    with open_sink(path) as sink:
        rows = _row_writer(recipe, sink, as_csv)
        try:
            yield Writer(rows, sink, at_once=os.fspath(path) == "-")
        except BaseException:
            rows.close(whole=False)
            raise
        rows.close(whole=True)


def _row_writer(recipe: Recipe, sink: BinaryIO, as_csv: bool) -> RowWriter:
    """The writer for a format; Arrow is imported for tables only."""
    if as_csv:
        from hedgerow.files.typed_tables import TypedCsvWriter

        return TypedCsvWriter(sink)
    if recipe.format == "conll":
        return ConllWriter(sink, recipe)
    if recipe.format in COLUMNLESS:
        return CrfsuiteWriter(sink)
    if recipe.format == "csv":
        from hedgerow.files.csv_tables import CsvWriter

        return CsvWriter(sink)
    if recipe.format == "jsonl":
        from hedgerow.files.json_tables import JsonWriter

        return JsonWriter(sink)
    if recipe.format == "arrow":
        from hedgerow.files.arrow_tables import ArrowWriter

        return ArrowWriter(sink)
    from hedgerow.files.parquet_tables import ParquetWriter

    return ParquetWriter(sink)
