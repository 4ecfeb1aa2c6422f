"""Parquet files: tables whose columns have types."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from hedgerow.files.batch import Batch
from hedgerow.files.cells import flatten
from hedgerow.files.csv_tables import check_new_names
from hedgerow.files.errors import FileError, Path
from hedgerow.files.request import Request
from hedgerow.files.source import Readable, Source
from hedgerow.files.tables import TableColumns, kind_of

# Bytes of rows that are written together; they take several times as much memory meanwhile.
GROUP_BYTES = 1 << 22


def read_schema(source: Source) -> Any:
    """Names and types of the columns; the source stays as it was."""
    place: Any = source.path if source.is_plain_file else pa.BufferReader(source.peek(-1))
    with _as_file_errors(source.path):
        return parquet.read_schema(place)


@contextmanager
def open_parquet(source: Source) -> Iterator[Any]:
    """Open a Parquet file, which is read from its end: what has none yet is stored away first."""
    path = source.path
    with tempfile.TemporaryFile() as spool:
        place: Any = spool
        if source.is_plain_file:
            place = os.fspath(path)
        else:
            shutil.copyfileobj(Readable(source), spool)
            spool.seek(0)
        with _as_file_errors(path):
            file = parquet.ParquetFile(place, pre_buffer=False, buffer_size=1 << 16)
        with file:
            yield file


@contextmanager
def _as_file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FileError(path, f"the Parquet file cannot be read: {error}") from None


def stream_parquet(request: Request) -> Iterator[Batch]:
    """Read a file batch by batch."""
    with open_parquet(request.source) as file:
        schema = file.schema_arrow
        columns = TableColumns(request, schema.names)
        _check_kinds(schema, columns, request.path)
        for batch in columns.stream(_read_parts(file, columns.n_rows, request.path)):
            yield replace(batch, rows=(request.path, batch.rows))


def _read_parts(file: Any, n_rows: int, path: Path) -> Iterator[pa.Table]:
    with _as_file_errors(path):
        for part in file.iter_batches(batch_size=n_rows, use_threads=False):
            yield pa.Table.from_batches([part])


def _check_kinds(schema: Any, columns: TableColumns, path: Path) -> None:
    """Columns hold what they held in training: numbers, or text."""
    for name in columns.features:
        dtype = schema.field(name).type
        is_text = columns.types[name] == pa.string()
        if (kind_of(dtype) == "text") != is_text or kind_of(dtype) is None:
            raise FileError(
                path,
                f"column {name!r} is of type {dtype}, but the model was trained on "
                f"{'text' if is_text else 'numbers'}; convert it",
            )


class ParquetWriter:
    """Writes the rows of a Parquet file again, with further columns."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
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
            self._writer = parquet.ParquetWriter(self._sink, rows.schema)
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= GROUP_BYTES:
            self._flush()

    def close(self, *, whole: bool) -> None:
        """Write what is held back, and the end of the file; nothing of a file that is not whole."""
        if self._writer is None:
            return
        if whole:
            self._flush()
            self._writer.close()
        self._writer.is_open = False  # else it writes the end when it is forgotten

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._held))
        self._held, self._held_bytes = [], 0


def _find_types(values: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Types of further columns; one without a value yet is taken to be as the first of them."""
    types = {name: pa.array(column).type for name, column in values.items()}
    first = next(iter(types.values()))
    return {name: first if pa.types.is_null(dtype) else dtype for name, dtype in types.items()}
