"""Default attributes of CoNLL columns, if there is no template.

They are: every column at the position and up to two positions before and after it; pairs of
neighbouring cells of a column, and triples for all columns but the first; pairs of columns; and
the lower-case text, prefixes, suffixes and the shape of the first column, which usually contains
words.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from hedgerow.files.template import Attribute, Cell, Template

REACH = 2


def default_template(columns: Mapping[int, str]) -> Template:
    """The attributes of columns, given by number and name."""
    numbers = list(columns)
    attributes = [
        _attribute(columns, Cell(offset, number))
        for number in numbers
        for offset in range(-REACH, REACH + 1)
    ]
    for number in numbers:
        cells = [Cell(offset, number) for offset in (-1, 0, 1)]
        attributes += [_attribute(columns, *cells[:2]), _attribute(columns, *cells[1:])]
        if number != numbers[0]:
            attributes.append(_attribute(columns, *cells))
    for pair in combinations(numbers, 2):
        attributes.append(_attribute(columns, *(Cell(0, number) for number in pair)))
    return Template(tuple(attributes), has_transitions=True, word_column=numbers[0])


def _attribute(columns: Mapping[int, str], *cells: Cell) -> Attribute:
    """``word[-1]|word[0]=`` and the cells, joined by ``|``."""
    name = "|".join(f"{columns[cell.column]}[{cell.offset}]" for cell in cells)
    return Attribute((f"{name}=", *["|"] * (len(cells) - 1), ""), cells)
