"""Arrow files, including Feather: tables whose columns have types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from hedgerow.files.batch import Batch
from hedgerow.files.errors import Path
from hedgerow.files.request import Request
from hedgerow.files.source import Source
from hedgerow.files.typed_tables import TypedWriter, as_file_errors, place_of, stream_typed


def read_schema(source: Source) -> Any:
    """Names and types of the columns; nothing of the source is consumed."""
    with as_file_errors(source.path, "Arrow"):
        if not source.is_plain_file:
            return ipc.open_file(pa.BufferReader(source.peek(-1))).schema
        with pa.OSFile(str(source.path)) as file:
            return ipc.open_file(file).schema


def stream_arrow(request: Request) -> Iterator[Batch]:
    """Read a file batch by batch."""
    with place_of(request.source) as place:
        file = pa.OSFile(place) if isinstance(place, str) else pa.PythonFile(place)
        with as_file_errors(request.path, "Arrow"):
            reader = ipc.open_file(file)
        yield from stream_typed(request, reader.schema, partial(_read_parts, reader, request.path))


def _read_parts(reader: Any, path: Path, n_rows: int) -> Iterator[pa.Table]:
    for number in range(reader.num_record_batches):
        with as_file_errors(path, "Arrow"):
            part = pa.Table.from_batches([reader.get_batch(number)])
        for first in range(0, len(part), n_rows):
            yield part.slice(first, n_rows)


# Categories are renumbered when new ones appear.
OPTIONS = ipc.IpcWriteOptions(emit_dictionary_deltas=True, unify_dictionaries=True)
ArrowWriter = partial(TypedWriter, open_writer=partial(ipc.new_file, options=OPTIONS))
"""Writes the rows of an Arrow file with additional columns."""
