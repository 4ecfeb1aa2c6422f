"""CSV files: tables as text. Rows are kept as text, and written unchanged."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from hedgerow.counting import count_of
from hedgerow.files.batch import Batch
from hedgerow.files.cells import to_cells
from hedgerow.files.chunks import MARK, decode_text
from hedgerow.files.errors import FileError, Path
from hedgerow.files.recipe import DELIMITERS
from hedgerow.files.request import Request
from hedgerow.files.source import Source
from hedgerow.files.tables import TableColumns

# A column with the unchanged text of each row.
ROW = "\n"
BYTES_PER_ROW = 64
TOO_LARGE = 1e19  # larger integers are probably not numbers, but strings of digits

_ROW_OF_ERROR = re.compile(r"Row #(\d+): (.*)", re.DOTALL)
_COLUMN_OF_ERROR = re.compile(r"In CSV column #(\d+): ")


class Header:
    """The first line of a CSV file."""

    def __init__(self, path: Path, text: bytes, delimiter: str | None = None) -> None:
        self.path = path
        self.text = text.removesuffix(b"\r")
        self.newline = b"\r\n" if text.endswith(b"\r") else b"\n"
        line = decode_text(self.text, path, 1)
        if not line.strip():
            raise FileError(path, "the first line is blank; expected the names of the columns", 1)
        self.delimiter = max(DELIMITERS, key=line.count)
        # The separator of the training file, unless this file clearly uses another one.
        if delimiter is not None and (delimiter in line or self.delimiter not in line):
            self.delimiter = delimiter
        try:
            self.names = next(csv.reader([line], delimiter=self.delimiter, strict=True))
        except csv.Error as error:
            why = f"the column names cannot be read: {error}"
            if "\r" in line:
                why = "lines end with a carriage return alone; save the file with line feeds"
            raise FileError(path, why, 1) from None


def stream_csv(request: Request) -> Iterator[Batch]:
    """Read a file batch by batch."""
    records = Records(request.source)
    text = records.first()
    if text is None:
        return
    header = Header(request.path, text, request.recipe.delimiter)
    columns = TableColumns(request, header.names)
    texts = (columns.group, columns.known, columns.heads)
    types = columns.types | {name: pa.string() for name in texts if name is not None}
    if columns.label is not None:
        types[columns.label] = columns.label_type
    parts = (
        _read_rows(rows, lines, header, types, request.path)
        for rows, lines in records.stream(columns.n_rows)
    )
    for batch in columns.stream(parts):
        yield replace(batch, rows=(header, batch.rows.column(ROW)))


class Records:
    """Rows of a CSV file as bytes; a row continues over a line break within quotes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ahead = b""
        self._line = 1

    def first(self) -> bytes | None:
        """The first row, without its line break; None if there is none."""
        data = b""
        while part := self._source.read(1 << 16):
            data += part
            rows, _ = _split_records(data)
            if rows:
                self._ahead = data[len(rows[0]) + 1 :]
                self._line += rows[0].count(b"\n") + 1
                return rows[0].removeprefix(MARK)
        return data.removeprefix(MARK) or None

    def stream(self, n_rows: int) -> Iterator[tuple[list[bytes], list[int]]]:
        """About this many rows at a time, and the numbers of their first lines."""
        size, growth = BYTES_PER_ROW, 1
        while part := self._source.read(n_rows * size * growth):
            rows, self._ahead = _split_records(self._ahead + part)
            if not rows:
                growth *= 2
                continue
            growth = 1
            size = max(1, sum(map(len, rows)) // len(rows))
            yield from self._numbered(rows)
        if self._ahead:
            rows, rest = _split_records(self._ahead + b"\n")
            yield from self._numbered(rows)
            if rest:
                raise FileError(
                    self._source.path, "a quote is opened here and never closed", self._line
                )

    def _numbered(self, rows: list[bytes]) -> Iterator[tuple[list[bytes], list[int]]]:
        lines = []
        for row in rows:
            lines.append(self._line)
            self._line += row.count(b"\n") + 1
        kept = [place for place, row in enumerate(rows) if row.strip()]
        if kept:
            yield [rows[place].removesuffix(b"\r") for place in kept], [lines[p] for p in kept]


def _split_records(data: bytes) -> tuple[list[bytes], bytes]:
    """Complete rows, and the beginning of the next one."""
    lines = data.split(b"\n")
    if b'"' not in data:
        return lines[:-1], lines[-1]
    rows, first, is_open = [], 0, False
    for place, line in enumerate(lines[:-1]):
        is_open ^= line.count(b'"') % 2 == 1
        if not is_open:
            rows.append(line if first == place else b"\n".join(lines[first : place + 1]))
            first = place + 1
    return rows, b"\n".join(lines[first:])


def _read_rows(
    rows: list[bytes], lines: list[int], header: Header, types: Mapping[str, Any], path: Path
) -> pa.Table:
    """Columns of rows in the given types, and the rows themselves."""
    data = b"\n".join(rows) + b"\n"
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(
                use_threads=False, column_names=header.names, block_size=len(data) + 1
            ),
            arrow_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=dict(types), include_columns=list(types)),
        )
    except pa.ArrowInvalid as error:
        raise _to_file_error(error, lines, header, path) from None
    if len(table) != len(rows):
        raise FileError(
            path,
            f"expected {count_of(len(rows), 'row')} from here on, got {len(table)}; look for a "
            "quote that is not closed, or for a carriage return without a line feed",
            lines[0],
        )
    return table.append_column(ROW, pa.array(rows, pa.binary()))


def _to_file_error(error: Exception, lines: list[int], header: Header, path: Path) -> FileError:
    """An error from Arrow, with the line and the column."""
    message, line = str(error), None
    column = _COLUMN_OF_ERROR.match(message)
    row = _ROW_OF_ERROR.search(message)
    if row:
        line = lines[min(int(row[1]), len(lines)) - 1]
        message = row[2]
    message = message.removeprefix("CSV conversion error to ").splitlines()[0]
    if column:
        name = f"column {header.names[int(column[1])]!r}"
        message = f"{name} cannot be read as {message}"
        if "UTF8" in message:
            message = f"{name} is not valid UTF-8; save the file as UTF-8"
    return FileError(path, message, line)


def infer_types(path: Path, source: Source, header: Header, features: Sequence[int]) -> list[Any]:
    """Arrow types of all columns, from the whole file; `features` are the feature columns."""
    data = source.peek(-1).removeprefix(MARK)
    options = arrow_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True)
    try:
        table = arrow_csv.read_csv(pa.BufferReader(data), parse_options=options)
    except pa.ArrowInvalid as error:
        # Reading it as text fails at a line that can be named.
        records, types = Records(source), dict.fromkeys(header.names, pa.string())
        records.first()
        for rows, lines in records.stream(1 << 16):
            _read_rows(rows, lines, header, types, path)
        raise FileError(path, str(error)) from None
    for number in features:
        if pa.types.is_floating(table.schema.types[number]):
            largest = pc.max(pc.abs(table.column(number))).as_py()
            if largest is not None and largest >= TOO_LARGE:
                _refuse_digits(path, data, options, table.column_names[number])
    # Binary data are text that is not UTF-8: the error when it is read names the line.
    return [pa.string() if pa.types.is_binary(dtype) else dtype for dtype in table.schema.types]


def _refuse_digits(path: Path, data: bytes, options: Any, name: str) -> None:
    """Raise `FileError` if a numeric column contains strings of digits that are too long."""
    as_text = arrow_csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()})
    column = arrow_csv.read_csv(
        pa.BufferReader(data), parse_options=options, convert_options=as_text
    ).column(0)
    row = pc.index(pc.match_substring_regex(column, r"^\s*[+-]?\d{20,}\s*$"), True).as_py()
    if row >= 0:
        digits = column[row].as_py().strip()
        raise FileError(
            path,
            f"column {name!r} has a string of {len(digits)} digits in row {row + 1}, "
            f"{digits[:12]}..., which is too long for a number. If a row holds a whole sequence, "
            "write one row per position; if the digits are an id, choose other columns as features "
            "(--features)",
        )


class CsvWriter:
    """Writes the rows of a CSV file with additional columns."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._has_header = False

    def write(self, batch: Batch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append columns to the rows of a batch."""
        header, rows = batch.rows
        more = [_quote(cells, header.delimiter) for cells in to_cells(columns, empty="")]
        gap = header.delimiter.encode()
        if not self._has_header:
            check_new_names(columns, header.names, header.path)
            names = _quote(list(columns), header.delimiter)
            self._sink.write(gap.join([header.text, *(n.encode() for n in names)]) + header.newline)
            self._has_header = True
        ends = map(header.delimiter.join, zip(*more, strict=True))
        self._sink.writelines(
            row + gap + end.encode() + header.newline
            for row, end in zip(rows.to_pylist(), ends, strict=True)
        )

    def close(self, *, whole: bool) -> None:
        """Nothing follows the last row."""


def check_new_names(new: Mapping[str, Any], old: Sequence[str], path: Path) -> None:
    """Raise an error for an additional column whose name exists already."""
    for name in new:
        if name in old:
            raise FileError(
                path,
                f"there is already a column {name!r}, so the output would have two of this name; "
                "rename it first",
            )


def _quote(cells: list[str], delimiter: str) -> list[str]:
    special = re.compile(f'["\r\n{delimiter}]')
    return ['"' + cell.replace('"', '""') + '"' if special.search(cell) else cell for cell in cells]
