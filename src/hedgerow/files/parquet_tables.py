"""Parquet files: tables whose columns have types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from hedgerow.files.batch import Batch
from hedgerow.files.errors import Path
from hedgerow.files.request import Request
from hedgerow.files.source import Source
from hedgerow.files.typed_tables import TypedWriter, as_file_errors, place_of, stream_typed


def read_schema(source: Source) -> Any:
    """Names and types of the columns; nothing of the source is consumed."""
    place: Any = source.path if source.is_plain_file else pa.BufferReader(source.peek(-1))
    with as_file_errors(source.path, "Parquet"):
        return parquet.read_schema(place)


def stream_parquet(request: Request) -> Iterator[Batch]:
    """Read a file batch by batch."""
    with place_of(request.source) as place:
        with as_file_errors(request.path, "Parquet"):
            file = parquet.ParquetFile(place, pre_buffer=False, buffer_size=1 << 16)
        with file:
            yield from stream_typed(
                request, file.schema_arrow, partial(_read_parts, file, request.path)
            )


def _read_parts(file: Any, path: Path, n_rows: int) -> Iterator[pa.Table]:
    with as_file_errors(path, "Parquet"):
        for part in file.iter_batches(batch_size=n_rows, use_threads=False):
            yield pa.Table.from_batches([part])


ParquetWriter = partial(TypedWriter, open_writer=parquet.ParquetWriter)
"""Writes the rows of a Parquet file with additional columns."""
