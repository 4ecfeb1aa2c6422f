"""Templates: attributes made of the columns around a position, as CRF++ writes them.

``U05:%x[-1,0]/%x[0,1]`` is an attribute of each position: the text with its macros filled in, here
column 0 of the position before and column 1 of the position itself. Positions beyond the ends of a
sequence are ``_B-1``, ``_B-2``, ... before it and ``_B+1``, ``_B+2``, ... after it. A line that
begins with ``B`` is about pairs of neighbouring labels: alone, it gives them weights; with macros,
it is an attribute that has weights for pairs of labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from hedgerow.files.batch import cut
from hedgerow.files.errors import FileError, Path
from hedgerow.files.words import word_attributes
from hedgerow.lazy import LazyAttributes, lazy

# Attributes with this prefix have weights for pairs of labels.
PAIR_PREFIX = "B"

# From the cells of all positions, column by column, to the attributes of each position.
Fill = Callable[[list[list[str]]], list[tuple[str, ...]]]

_MACRO = re.compile(r"%x\[\s*([+-]?\d{1,4})\s*,\s*(\d{1,6})\s*\]")


@dataclass(frozen=True)
class Cell:
    """A macro: a column at an offset from the position."""

    offset: int
    column: int


@dataclass(frozen=True)
class Attribute:
    """Text with cells in between: ``texts[0] cells[0] texts[1] ... texts[-1]``."""

    texts: tuple[str, ...]
    cells: tuple[Cell, ...]

    @classmethod
    def parse(cls, line: str) -> Attribute:
        """Parse one line; ValueError says what is wrong with it."""
        pieces = _MACRO.split(line)
        texts = tuple(pieces[0::3])
        for text in texts:
            if "%" in text:
                rest = text[text.index("%") :]
                raise ValueError(
                    f"{rest!r} is not a macro; expected %x[row,column], such as %x[-1,0]"
                )
        cells = tuple(
            Cell(int(row), int(column))
            for row, column in zip(pieces[1::3], pieces[2::3], strict=True)
        )
        return cls(texts, cells)


@dataclass(frozen=True)
class Template(LazyAttributes):
    """The attributes of a position.

    Attributes
    ----------
    attributes : tuple of Attribute
        The attributes that are made from the columns.
    has_transitions : bool
        Whether pairs of labels have weights.
    word_column : int or None
        A column of words, whose prefixes, suffixes and shapes are additional attributes.
    """

    attributes: tuple[Attribute, ...]
    has_transitions: bool
    word_column: int | None = None

    @classmethod
    def parse(cls, lines: Iterable[str], path: Path = "template") -> Template:
        """Parse the lines of a template file; raises `FileError`."""
        attributes, has_transitions = [], False
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            if text[0] not in "UB":
                raise FileError(
                    path, f"expected a line that begins with U, B or #, got {_short(text)}", number
                )
            try:
                attribute = Attribute.parse(text)
            except ValueError as error:
                raise FileError(path, str(error), number) from None
            if attribute.cells or text[0] == "U":
                attributes.append(attribute)
            else:
                has_transitions = True
        if not attributes:
            raise FileError(path, "the template has no line such as U00:%x[0,0]; add one")
        return cls(tuple(dict.fromkeys(attributes)), has_transitions)

    @property
    def has_pair_attributes(self) -> bool:
        """Whether a line such as ``B01:%x[0,0]`` defines attributes of label pairs."""
        return any(attribute.texts[0].startswith(PAIR_PREFIX) for attribute in self.attributes)

    @lazy
    def columns(self) -> tuple[int, ...]:
        """The columns that are used, ascending."""
        return tuple(
            sorted({cell.column for attribute in self.attributes for cell in attribute.cells})
        )

    def expand(
        self, columns: Mapping[int, list[str]], offsets: Sequence[int]
    ) -> list[list[tuple[str, ...]]]:
        """The attributes of every position of every sequence.

        Parameters
        ----------
        columns
            By number, the cells of all positions, one sequence after another.
        offsets : (S + 1,)
            Bounds of the sequences.
        """
        cells = [_shift(columns[cell.column], offsets, cell.offset) for cell in self._cells]
        positions = self._fill(cells) if cells else [self._fixed] * offsets[-1]
        if self.word_column is not None:
            looks = map(word_attributes, columns[self.word_column])
            positions = list(map(tuple.__add__, positions, looks))
        return cut(positions, offsets)

    @lazy
    def _cells(self) -> tuple[Cell, ...]:
        """The distinct cells that are used."""
        return tuple(
            dict.fromkeys(cell for attribute in self.attributes for cell in attribute.cells)
        )

    @lazy
    def _fixed(self) -> tuple[str, ...]:
        """The attributes of a template without cells."""
        return tuple(attribute.texts[0] for attribute in self.attributes)

    @lazy
    def _fill(self) -> Fill:
        """Joins texts and cells: a function compiled for this template.

        It is one loop over the positions, with texts and cells as variables: twice as fast as a
        loop that interprets the template.
        """
        number = {cell: f"cell{n}" for n, cell in enumerate(self._cells)}
        texts: list[str] = []
        strings = []
        for attribute in self.attributes:
            pieces = []
            for text, cell in zip_longest(attribute.texts, attribute.cells):
                if text:
                    pieces.append(f"text{len(texts)}")
                    texts.append(text)
                if cell is not None:
                    pieces.append(number[cell])
            short = len(pieces) == 2  # concatenating two strings is faster than formatting
            strings.append(
                " + ".join(pieces) if short else "".join(["f'", *(f"{{{p}}}" for p in pieces), "'"])
            )
        loop = f"[({', '.join(strings)},) for {', '.join(number.values())}, in zip(*cells)]"
        names = ", ".join(f"text{n}" for n in range(len(texts)))
        fill: Fill = eval(f"lambda {names}: lambda cells: {loop}")(*texts)
        return fill


def _shift(column: list[str], offsets: Sequence[int], offset: int) -> list[str]:
    """For each position, the cell at an offset in its sequence."""
    if offset == 0:
        return column
    size, reach = len(column), abs(offset)
    if offset < 0:
        beyond = [f"_B-{place}" for place in range(reach, 0, -1)]
        out = (beyond + column)[:size]
        for start, stop in pairwise(offsets):
            length = min(reach, stop - start)
            out[start : start + length] = beyond[:length]
        return out
    beyond = [f"_B+{place}" for place in range(1, reach + 1)]
    out = (column + beyond)[-size:]
    for start, stop in pairwise(offsets):
        length = min(reach, stop - start)
        out[stop - length : stop] = beyond[reach - length :]
    return out


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")
