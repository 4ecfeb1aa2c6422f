"""Heads: a column that says which position is the parent of which, as CoNLL-U has it.

They count the positions of their sequence from 1; 0 is a root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hedgerow.encode.parents import ParentsError, check_parents
from hedgerow.files.batch import cut
from hedgerow.files.errors import FileError

__all__ = ["read_heads"]


def read_heads(
    cells: list[Any],
    offsets: Sequence[int],
    complain: Callable[[int, str], FileError],
) -> list[list[Any]]:
    """Heads of whole sequences, which are as they should be.

    Parameters
    ----------
    cells
        Numbers, or text that they are written in, of all positions.
    offsets
        Where the sequences begin and end.
    complain
        Makes an error of a position and of what is wrong with its head.
    """
    heads = cut(cells, offsets)
    try:
        check_parents(heads, "conllu")
    except ParentsError as error:
        raise complain(error.position, f"the head {error.reason}") from None
    return heads
