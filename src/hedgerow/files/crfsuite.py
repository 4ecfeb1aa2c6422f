r"""CRFsuite files: one line per position, with its label and its attributes, separated by tabs.

An attribute is a name, or ``name:value``; in names ``\:`` is a colon and ``\\`` a backslash. Blank
lines separate sequences. A line ``@weight:2.5`` sets the weight of a sequence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import add
from typing import Any, BinaryIO

from hedgerow.files.batch import Batch
from hedgerow.files.cells import to_cells
from hedgerow.files.chunks import decode, read_chunks
from hedgerow.files.columns import find_column
from hedgerow.files.errors import FileError, Path
from hedgerow.files.request import Request

# A name, which may contain escaped characters, and a value.
_FIELD = re.compile(r"((?:[^:\\]|\\.)*):(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\([:\\])")

Position = list[str] | dict[str, float]


class ItemReader:
    """Assembles the lines of a file into sequences."""

    def __init__(self, path: Path, shared: dict[str, str] | None) -> None:
        self._path = path
        self._shared = shared
        self.X: list[list[Position]] = []
        self.y: list[list[str | None]] = []
        self.weights: list[float] = []
        self._begins = True
        self._weight = 1.0

    def read(self, line: str, number: int) -> None:
        """Process one line."""
        if not line or line.isspace():
            self._begins, self._weight = True, 1.0
        elif line.startswith("@weight"):
            self._weight = self._read_weight(line, number)
            if not self._begins:
                self.weights[-1] = self._weight
        else:
            if self._begins:
                self.X.append([])
                self.y.append([])
                self.weights.append(self._weight)
                self._begins = False
            label, *fields = line.split("\t")
            self.X[-1].append(self._read_fields(fields, number))
            self.y[-1].append((_unescape(label) if "\\" in label else label) or None)

    def _read_fields(self, fields: list[str], number: int) -> Position:
        """A list of names; a dict if there are values."""
        if "" in fields:
            fields = [field for field in fields if field]
        if self._shared is not None:
            fields = list(map(self._shared.setdefault, fields, fields))
        if not any(":" in field or "\\" in field for field in fields):
            return fields
        items = [self._read_field(field, number) for field in fields]
        if all(value == 1 for _, value in items):
            return [name for name, _ in items]
        position: dict[str, float] = {}
        for name, value in items:
            position[name] = position.get(name, 0.0) + value
        return position

    def _read_field(self, field: str, number: int) -> tuple[str, float]:
        found = _FIELD.fullmatch(field)
        if not found:
            return _unescape(field), 1.0
        value = _to_number(found[2])
        if value is None:
            raise FileError(
                self._path,
                f"expected a number after the colon of {field[:60]!r}; write a colon that belongs "
                "to a name as \\:",
                number,
            )
        return _unescape(found[1]), value

    def _read_weight(self, line: str, number: int) -> float:
        weight = _to_number(re.sub(r"^@weight[:\t ]", "", line))
        if weight is None or weight < 0:
            raise FileError(
                self._path, f"expected a weight such as @weight:2.5, got {line[:60]!r}", number
            )
        return weight


def format_position(label: Any, names: Sequence[str]) -> str:
    """A position as a line; if it has neither label nor names, it gets the name ``(none)``.

    Otherwise the line would be blank, and end the sequence.
    """
    names = names if label is not None or names else ["(none)"]
    return "\t".join(_escape(str(text)) for text in ("" if label is None else label, *names))


def _escape(name: str) -> str:
    if "\t" in name or "\n" in name or "\r" in name:
        raise ValueError(
            f"the name {name!r} contains a tab or a line break, which a CRFsuite file cannot "
            "represent; replace it"
        )
    return name.replace("\\", "\\\\").replace(":", "\\:")


def _unescape(name: str) -> str:
    return _ESCAPED.sub(r"\1", name) if "\\" in name else name


def _to_number(text: str) -> float | None:
    """A finite number; empty text is 1, as in CRFsuite."""
    try:
        value = float(text) if text.strip() else 1.0
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def stream_crfsuite(request: Request) -> Iterator[Batch]:
    """Read a file batch by batch."""
    path = request.path
    if request.known is not None:
        find_column(["label"], request.known, path)
    shared: dict[str, str] | None = {} if request.keeps_all else None
    for chunk in read_chunks(request.source, request.n_positions):
        lines = decode(chunk.lines, path, partial(add, chunk.first))
        items = ItemReader(path, shared)
        for number, line in enumerate(lines, start=chunk.first):
            items.read(line, number)
        if items.X:
            y = items.y if request.labels else None
            known = None if request.known is None else items.y
            yield Batch(items.X, y, None, known, items.weights)


class CrfsuiteWriter:
    """Writes labels, one line per position, with a blank line after each sequence."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write(self, batch: Batch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write columns, without the attributes."""
        lines = map("\t".join, zip(*to_cells(columns, empty=""), strict=True))
        for sequence in batch.X:
            for line in islice(lines, len(sequence)):
                self._sink.write(line.encode() + b"\n")
            self._sink.write(b"\n")

    def close(self, *, whole: bool) -> None:
        """Nothing follows the last row."""
