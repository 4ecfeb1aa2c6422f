"""Typed tables: what Parquet and Arrow files have in common, columns with types."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import csv

from hedgerow.files.batch import Batch
from hedgerow.files.cells import flatten
from hedgerow.files.csv_tables import check_new_names
from hedgerow.files.errors import FileError, Path
from hedgerow.files.request import Request
from hedgerow.files.source import Readable, Source
from hedgerow.files.tables import TableColumns, kind_of

# Number of bytes of rows that are written at a time; they take several times as much memory.
GROUP_BYTES = 1 << 22


@contextmanager
def place_of(source: Source) -> Iterator[Any]:
    """A seekable file to read from: a stream is first copied to a temporary file."""
    with tempfile.TemporaryFile() as spool:
        if source.is_plain_file:
            yield os.fspath(source.path)
        else:
            shutil.copyfileobj(Readable(source), spool)
            spool.seek(0)
            yield spool


@contextmanager
def as_file_errors(path: Path, what: str) -> Iterator[None]:
    """Turn Arrow's errors about a file of the kind `what` into a `FileError`."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FileError(path, f"the {what} file cannot be read: {error}") from None


def stream_typed(
    request: Request, schema: Any, read_parts: Callable[[int], Iterable[pa.Table]]
) -> Iterator[Batch]:
    """Batches of a table; ``read_parts(n)`` yields its rows, about n at a time."""
    columns = TableColumns(request, schema.names)
    _check_kinds(schema, columns, request.path)
    for batch in columns.stream(read_parts(columns.n_rows)):
        yield replace(batch, rows=(request.path, batch.rows))


def _check_kinds(schema: Any, columns: TableColumns, path: Path) -> None:
    """Check that columns have the same types as in training: numbers, or text."""
    for name in columns.features:
        dtype = schema.field(name).type
        is_text = columns.types[name] == pa.string()
        if (kind_of(dtype) == "text") != is_text or kind_of(dtype) is None:
            raise FileError(
                path,
                f"column {name!r} is of type {dtype}, but the model was trained on "
                f"{'text' if is_text else 'numbers'}; convert it",
            )


class TypedWriter:
    """Writes the rows of a typed table with additional columns.

    Parameters
    ----------
    sink
        Destination of the bytes.
    open_writer
        Called with the sink and the schema of the rows; returns an Arrow writer.
    """

    def __init__(self, sink: BinaryIO, open_writer: Callable[[BinaryIO, Any], Any]) -> None:
        self._sink = sink
        self._open_writer = open_writer
        self._writer: Any = None
        self._types: dict[str, Any] = {}
        self._held: list[pa.Table] = []
        self._held_bytes = 0

    def write(self, batch: Batch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append columns to the rows of a batch."""
        path, rows = batch.rows
        if self._writer is None:
            check_new_names(columns, rows.schema.names, path)
        values = {name: flatten(sequences) for name, sequences in columns.items()}
        if self._writer is None:
            self._types = _find_types(values)
        for name, column in values.items():
            rows = rows.append_column(name, pa.array(column, self._types[name]))
        if self._writer is None:
            self._writer = self._open_writer(self._sink, rows.schema)
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= GROUP_BYTES:
            self._flush()

    def close(self, *, whole: bool) -> None:
        """Write the remaining rows and the end of the file; nothing if the file is incomplete."""
        if self._writer is None:
            return
        if whole:
            self._flush()
            self._writer.close()
        self._writer.is_open = False  # otherwise it writes the end when it is garbage-collected

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._held))
        self._held, self._held_bytes = [], 0


class CsvRows:
    """An Arrow writer for CSV."""

    def __init__(self, sink: BinaryIO, schema: Any) -> None:
        for field in schema:
            if pa.types.is_nested(field.type):
                raise ValueError(
                    f"column {field.name!r} is of type {field.type}, which CSV cannot hold; write "
                    "to a file of the format that was read"
                )
        self.is_open = True
        self._sink = sink
        self._has_header = False

    def write_table(self, rows: pa.Table) -> None:
        """Write rows, after the column names if they are the first."""
        buffer = io.BytesIO()
        csv.write_csv(rows, buffer, csv.WriteOptions(include_header=not self._has_header))
        self._sink.write(buffer.getvalue())
        self._has_header = True

    def close(self) -> None:
        """Nothing follows the last row."""


TypedCsvWriter = partial(TypedWriter, open_writer=CsvRows)
"""Writes the rows of a typed table as CSV, with additional columns."""


def _find_types(values: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Types of additional columns; a column without values gets the type of the first column."""
    types = {name: pa.array(column).type for name, column in values.items()}
    first = next(iter(types.values()))
    return {name: first if pa.types.is_null(dtype) else dtype for name, dtype in types.items()}
