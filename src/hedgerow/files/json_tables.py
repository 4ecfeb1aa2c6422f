"""JSON lines: tables as text, one object per row. Rows are written unchanged."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

import pyarrow as pa

from hedgerow.files.batch import Batch
from hedgerow.files.cells import flatten
from hedgerow.files.chunks import MARK
from hedgerow.files.csv_tables import ROW, check_new_names
from hedgerow.files.errors import FileError, Path
from hedgerow.files.request import Request
from hedgerow.files.source import Source
from hedgerow.files.tables import TableColumns

# Number of bytes that are read at a time.
BLOCK = 1 << 18


class Rows:
    """Some consecutive rows: the lines, without line breaks, and their objects.

    Parameters
    ----------
    path
        The file, for messages.
    first
        Number of the first line, from 1.
    lines
        Lines of the file; blank ones are left out.
    """

    def __init__(self, path: Path, first: int, lines: Iterable[bytes]) -> None:
        numbered = [(number, line.strip()) for number, line in enumerate(lines, start=first)]
        self.path = path
        self.numbers = [number for number, line in numbered if line]
        self.lines = [line for _, line in numbered if line]
        self.objects = [
            _read_object(path, *both) for both in zip(self.numbers, self.lines, strict=True)
        ]

    @property
    def names(self) -> list[str]:
        """All keys, in the order in which they appear."""
        return list(dict.fromkeys(name for row in self.objects for name in row))

    def infer_types(self, used: Collection[int]) -> list[Any]:
        """Arrow types of all columns; null for those not in `used`, which may contain anything."""
        return [
            self.column(name).type if number in used else pa.null()
            for number, name in enumerate(self.names)
        ]

    def column(self, name: str, dtype: Any = None) -> pa.Array:
        """The values of a key, None where it is missing."""
        values = [row.get(name) for row in self.objects]
        try:
            return pa.array(values, dtype)
        except (pa.ArrowException, OverflowError):
            raise self._odd_value(name, values, dtype) from None

    def _odd_value(self, name: str, values: list[Any], dtype: Any) -> FileError:
        """What is wrong with a column: the first value of an unexpected type."""
        first = next(value for value in values if value is not None)
        for number, value in zip(self.numbers, values, strict=True):
            line = number
            try:
                pa.array([first, value] if dtype is None else [value], dtype)
            except (pa.ArrowException, OverflowError):
                break
        found, expected = json.dumps(value)[:40], str(dtype)
        if isinstance(value, int) and abs(value) >= 1 << 63:
            expected = (
                "a number of at most 18 digits; if the numbers are ids or codes, write all of them "
                "as text, in quotes"
            )
        elif dtype is None:
            expected = "values of one type"
            if value is not first:
                found += f", but an earlier row has {json.dumps(first)[:40]}"
        return FileError(self.path, f"column {name!r} holds {found}; expected {expected}", line)


def _read_object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileError(path, f"expected a JSON object, {{...}}: {error}", number) from None
    if not isinstance(found, dict):
        raise FileError(path, f"expected a JSON object, {{...}}, got {line[:40].decode()}", number)
    return found


def read_rows(source: Source) -> Iterator[Rows]:
    """All rows of a file, some at a time."""
    first, ahead = 1, b""
    if source.peek(len(MARK)) == MARK:
        source.read(len(MARK))
    while part := source.read(BLOCK):
        *lines, ahead = (ahead + part).split(b"\n")
        yield Rows(source.path, first, lines)
        first += len(lines)
    if ahead:
        yield Rows(source.path, first, [ahead])


def peek_rows(source: Source) -> Rows:
    """All rows of a file, without consuming it."""
    rows = Rows(source.path, 1, source.peek(-1).removeprefix(MARK).split(b"\n"))
    if not rows.lines:
        raise FileError(source.path, "the file is empty: it has no line with an object")
    return rows


def stream_json(request: Request) -> Iterator[Batch]:
    """Read a file batch by batch."""
    parts = (rows for rows in read_rows(request.source) if rows.lines)
    head = next(parts, None)
    if head is None:
        return
    columns = TableColumns(request, head.names)

    def tables() -> Iterator[pa.Table]:
        for rows in (head, *parts):
            yield _to_table(rows, columns)

    for batch in columns.stream(tables()):
        yield replace(batch, rows=(request.path, head.names, batch.rows.column(ROW)))


def _to_table(rows: Rows, columns: TableColumns) -> pa.Table:
    """Columns of rows in the types used in training, and the rows themselves."""
    found = {name: rows.column(name, dtype) for name, dtype in columns.types.items()}
    if columns.label is not None:
        found[columns.label] = rows.column(columns.label, columns.label_type)
    # Ids may be numbers in one file and text in another.
    for name in (columns.group, columns.known, columns.heads):
        if name is not None:
            values = [row.get(name) for row in rows.objects]
            texts = [None if value is None else str(value) for value in values]
            found[name] = pa.array(texts, pa.string())
    return pa.table({**found, ROW: pa.array(rows.lines, pa.binary())})


class JsonWriter:
    """Writes the rows of a file of JSON lines with additional columns."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._is_checked = False

    def write(self, batch: Batch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append columns to the rows of a batch."""
        path, names, rows = batch.rows
        if not self._is_checked:
            check_new_names(columns, names, path)
            self._is_checked = True
        values = zip(*(flatten(sequences) for sequences in columns.values()), strict=True)
        for row, more in zip(rows.to_pylist(), values, strict=True):
            added = json.dumps(dict(zip(columns, more, strict=True)), ensure_ascii=False)
            self._sink.write(row[:-1].rstrip() + b", " + added[1:].encode() + b"\n")

    def close(self, *, whole: bool) -> None:
        """Nothing follows the last row."""
