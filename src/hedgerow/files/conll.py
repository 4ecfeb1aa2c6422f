"""CoNLL files: one line per position, several columns, a blank line between sequences.

Cells are separated by white space or, if a file has tabs, by tabs. Some lines are not positions:
``-DOCSTART-`` lines; comments (lines that begin with ``#``, come before the first position of a
sequence and have a different number of columns); and in CoNLL-U files the lines of multiword tokens
and empty nodes. If columns are added, lines of multiword tokens and empty nodes get ``_`` in the
new columns, and a comment with column names gets the new names; all other lines that are not
positions are written unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from hedgerow.encode.numbered_names import NumberedNames
from hedgerow.files.batch import Batch, cut
from hedgerow.files.cells import to_cells
from hedgerow.files.chunks import Chunk, decode, read_chunks
from hedgerow.files.columns import find_column, number_columns
from hedgerow.files.errors import FileError, Path
from hedgerow.files.heads import read_heads
from hedgerow.files.recipe import Recipe
from hedgerow.files.request import Request
from hedgerow.files.source import Source
from hedgerow.files.template import Template

NAMES_OF_CONLLU = ["ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"]

# A line with a multiword token or an empty node of CoNLL-U.
NO_POSITION = re.compile(rb"\d+[.-]\d+\t")
NAMING_LINE = re.compile(rb"#\s*(?:global\.)?columns\s*[=:]\s*(.*\S)\s*")


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of whole sequences, and which of them are positions.

    Attributes
    ----------
    first : int
        Number of the first line in its file, from 1.
    lines : list of bytes
        All lines, without their ends.
    newline : bytes
        How the lines of the file end.
    places : list of int
        Index of the line of each position.
    offsets : list of int
        Where the sequences begin and end, among the positions.
    cells : list of lists of bytes
        The cells of each position.
    """

    first: int
    lines: list[bytes]
    newline: bytes
    places: list[int]
    offsets: list[int]
    cells: list[list[bytes]]

    def joined(self, after: Lines) -> Lines:
        """These lines and the next ones."""
        n_lines, n_positions = len(self.lines), len(self.places)
        return Lines(
            self.first,
            self.lines + after.lines,
            self.newline,
            self.places + [n_lines + place for place in after.places],
            self.offsets + [n_positions + offset for offset in after.offsets[1:]],
            self.cells + after.cells,
        )

    def number(self, position: int) -> int:
        """Number of the line of a position."""
        return self.first + self.places[position]


def split_lines(lines: list[bytes], delimiter: str | None) -> list[list[bytes]]:
    """The cells of lines; none for a blank line."""
    if delimiter is None:
        return [line.split() for line in lines]
    return [line.split(b"\t") if line.strip() else [] for line in lines]


class LineReader:
    """Distinguishes positions from other lines, and checks their number of cells."""

    def __init__(
        self,
        path: Path,
        delimiter: str | None,
        widths: tuple[int, ...] = (),
        numbers_tokens: bool = False,
    ) -> None:
        self._path = path
        self._delimiter = delimiter
        self._widths = widths
        self._width: int | None = None
        self._numbers_tokens = numbers_tokens

    def read(self, chunk: Chunk) -> Lines:
        """Find the positions of whole sequences."""
        lines = chunk.lines
        rows = split_lines(lines, self._delimiter)
        places, offsets, n_positions = [], [0], 0
        for place, row in enumerate(rows):
            if not row:
                if n_positions > offsets[-1]:
                    offsets.append(n_positions)
                continue
            head = row[0][:1]
            if head == b"#" and n_positions == offsets[-1] and len(row) != self._width:
                continue
            if head == b"-" and row[0] == b"-DOCSTART-":
                continue
            if self._numbers_tokens and NO_POSITION.match(lines[place]):
                continue
            places.append(place)
            n_positions += 1
        if n_positions > offsets[-1]:
            offsets.append(n_positions)
        cells = rows if n_positions == len(rows) else [rows[place] for place in places]
        found = Lines(chunk.first, lines, chunk.newline, places, offsets, cells)
        self._check_widths(found)
        return found

    def finds_width(self, chunk: Chunk, *, is_last: bool) -> bool:
        """Learn the number of columns from the first line that does not begin with ``#``.

        Only then is it known whether lines that begin with ``#`` are comments or positions. If all
        lines begin with ``#``, the first one with an expected number of columns is used. Empty
        lines and ``-DOCSTART-`` are skipped. Returns whether the number is known.
        """
        if self._width is None:
            split = enumerate(split_lines(chunk.lines, self._delimiter))
            rows = [(place, row) for place, row in split if row and row[0] != b"-DOCSTART-"]
            plain = [(place, row) for place, row in rows if not row[0].startswith(b"#")]
            if is_last and not plain:
                plain = [(place, row) for place, row in rows if len(row) in self._widths]
            if plain:
                place, row = plain[0]
                self._check_width(row, chunk.first + place)
                self._width = len(row)
        return self._width is not None

    def _check_width(self, row: list[bytes], number: int) -> None:
        if self._widths and len(row) not in self._widths:
            expected = " or ".join(map(str, sorted(self._widths)))
            raise FileError(
                self._path,
                f"expected {expected} columns, got {len(row)}: {_show(row)}; the file needs the "
                "columns of the training file",
                number,
            )

    def _check_widths(self, found: Lines) -> None:
        if set(map(len, found.cells)) <= {self._width}:
            return
        for position, row in enumerate(found.cells):
            if len(row) != self._width:
                raise FileError(
                    self._path,
                    f"expected {self._width} columns as in the lines before, got {len(row)}: "
                    f"{_show(row)}",
                    found.number(position),
                )


def stream_lines(source: Source, reader: LineReader, n_positions: int) -> Iterator[Lines]:
    """All lines of the file, at least one whole sequence at a time."""
    held: Lines | None = None
    for chunk in _with_width(read_chunks(source, n_positions), reader):
        lines = reader.read(chunk)
        if held is None:
            held = lines
        elif lines.places and held.places:
            yield held
            held = lines
        else:
            held = held.joined(lines)
    if held is not None and held.places:
        yield held


def _with_width(chunks: Iterator[Chunk], reader: LineReader) -> Iterator[Chunk]:
    """The same chunks, with leading chunks joined until the number of columns is known."""
    ahead: Chunk | None = None
    for chunk in chunks:
        if ahead is not None:
            chunk = Chunk(ahead.first, ahead.lines + chunk.lines, chunk.newline)
        if reader.finds_width(chunk, is_last=False):
            yield chunk
            ahead = None
        else:
            ahead = chunk
    if ahead is not None and reader.finds_width(ahead, is_last=True):
        yield ahead


def stream_conll(request: Request) -> Iterator[Batch]:
    """Read a file batch by batch."""
    recipe = request.recipe
    n_columns = len(recipe.columns)
    widths = {n_columns}
    if recipe.label_is_last and not request.labels:
        widths.add(n_columns - 1)
    if request.known is not None:
        widths.add(n_columns + 1)
    reader = LineReader(request.path, recipe.delimiter, tuple(widths), is_conllu(recipe.columns))
    template = recipe.read_template()
    kept: NumberedNames | None = None
    for lines in stream_lines(request.source, reader, request.n_positions):
        batch = _to_batch(lines, template, request)
        if request.keeps_all:
            kept = NumberedNames(list(batch.X), kept)
            batch = replace(batch, X=kept)
        yield batch


def _read_labels(texts: list[str]) -> list[str | None]:
    """Labels, None where a cell is empty; equal labels are the same object."""
    labels: dict[str, str | None] = {text: text or None for text in dict.fromkeys(texts)}
    return [labels[text] for text in texts]


def _to_batch(lines: Lines, template: Template, request: Request) -> Batch:
    columns = list(zip(*lines.cells, strict=True))
    label = request.recipe.label if request.labels else None
    known = None if request.known is None else _find_known(request, request.known, len(columns))
    heads = request.recipe.heads
    named = (number for number in (label, known, heads) if number is not None)
    wanted = {*template.columns, *named}
    texts = {number: decode(columns[number], request.path, lines.number) for number in wanted}
    y = None if label is None else cut(_read_labels(texts[label]), lines.offsets)
    hints = None if known is None else cut([text or None for text in texts[known]], lines.offsets)
    parents = None
    if heads is not None:
        parents = read_heads(
            texts[heads],
            lines.offsets,
            lambda position, what: FileError(request.path, what, lines.number(position)),
        )
    return Batch(template.expand(texts, lines.offsets), y, lines, hints, parents=parents)


def _find_known(request: Request, known: int | str, width: int) -> int:
    """Number of the column of known labels, which may follow the columns of the recipe."""
    columns = request.recipe.columns
    names = [*columns, *number_columns(width)[len(columns) :]]
    return find_column(names[:width], known, request.path)


class ConllWriter:
    """Writes the lines of a CoNLL file with additional columns."""

    def __init__(self, sink: BinaryIO, recipe: Recipe) -> None:
        self._sink = sink
        self._has_tabs = recipe.delimiter is not None
        self._gap = b"\t" if self._has_tabs else b" "
        self._is_conllu = is_conllu(recipe.columns)

    def write(self, batch: Batch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append columns to the positions of a batch, and ``_`` or names to some other lines."""
        rows: Lines = batch.rows
        out = list(rows.lines)
        cells = to_cells(columns, empty="_")
        text = "\n".join(map(self._gap.decode().join, zip(*cells, strict=True))).encode()
        for place, more in zip(rows.places, text.split(b"\n"), strict=True):
            line = out[place] if self._has_tabs else out[place].rstrip()
            out[place] = line + self._gap + more
        for place, line in enumerate(rows.lines):
            if line.startswith(b"#") and NAMING_LINE.fullmatch(line):
                out[place] = line.rstrip() + b" " + " ".join(columns).encode()
            elif self._is_conllu and NO_POSITION.match(line):
                out[place] = line + self._gap + self._gap.join([b"_"] * len(columns))
        self._sink.write(rows.newline.join(out) + rows.newline)

    def close(self, *, whole: bool) -> None:
        """Nothing follows the last row."""


def is_conllu(columns: Sequence[str]) -> bool:
    """Whether the first column numbers the tokens of a sentence, as CoNLL-U does."""
    return columns[:1] == ("ID",)


def _show(row: list[bytes]) -> str:
    text = b" ".join(row)[:60].decode(errors="replace")
    return repr(text)
