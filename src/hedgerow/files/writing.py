"""Writing: the rows of a file again, with further columns."""

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
        """Write the rows of a batch with further columns."""
        ...

    def close(self, *, whole: bool) -> None:
        """Write what comes after the last row, if all went well."""
        ...


class Writer:
    """Writes batches, one after the other; made by `open_writer`."""

    def __init__(self, rows: RowWriter, sink: BinaryIO, *, at_once: bool) -> None:
        self._rows = rows
        self._sink = sink
        self._at_once = at_once

    def write(self, batch: Batch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write the rows of a batch with further columns.

        Parameters
        ----------
        batch
            From `stream_file`.
        columns
            By name, a list with a sequence of values for each sequence; the same names each time.
            Values are strings, numbers or None.
        """
        self._rows.write(batch, columns)
        if self._at_once:
            self._sink.flush()


@contextmanager
def open_writer(path: Path, recipe: Recipe, *, as_csv: bool = False) -> Iterator[Writer]:
    """Write what `stream_file` read, in the format it was in, with further columns.

    Parameters
    ----------
    path
        The file, gzipped if it ends with ``.gz``; ``-`` is standard output, which gets each batch
        at once. A file is written beside its place and moved there when it is whole.
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
    """Who writes the rows of a format; Arrow is imported for tables only."""
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
