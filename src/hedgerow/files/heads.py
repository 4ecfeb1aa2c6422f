"""Heads: a column with the parent of each position, as in CoNLL-U.

Positions of a sequence are counted from 1; 0 is a root.
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
    """Read and check the heads of whole sequences.

    Parameters
    ----------
    cells
        The heads of all positions, as numbers or as text.
    offsets
        Bounds of the sequences.
    complain
        Makes an error from a position and a description of what is wrong with its head.
    """
    heads = cut(cells, offsets)
    try:
        check_parents(heads, "conllu")
    except ParentsError as error:
        raise complain(error.position, f"the head {error.reason}") from None
    return heads
