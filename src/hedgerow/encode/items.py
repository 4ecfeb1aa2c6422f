"""Items: lists of dicts or of attribute strings become sparse rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.sequences import Schema, Sequences, SparseRows

if TYPE_CHECKING:
    from hedgerow._core import StringIndex


def read_items(sequences: list[Any], index: StringIndex | None, grow: bool) -> Sequences:
    """Walk over every attribute of every position, natively."""
    if index is None:
        raise ValueError(
            "X holds dicts or attribute strings, but this model works on numeric and text "
            "columns and has no index of attributes; pass arrays or DataFrames"
        )
    # Here, so that models on columns work without the walker.
    from hedgerow import _core

    offsets, indptr, indices, values = _core.walk_items(sequences, index, grow)
    sparse = SparseRows(indptr, indices, values, len(index))
    return Sequences(offsets, Schema("items", 0, None, ()), None, sparse, (), flat=False)


def seen_items(sequences: Sequences, index: StringIndex) -> StringIndex:
    """The attributes that occur in some items, in the order in which they first do."""
    from hedgerow import _core

    assert sequences.sparse is not None
    numbers, first = np.unique(sequences.sparse.indices, return_index=True)
    names, seen = index.names(), _core.StringIndex()
    for number in numbers[np.argsort(first)].tolist():
        seen.add(names[number])
    return seen


def renumber_items(
    sequences: Sequences, index: StringIndex, other: StringIndex, grow: bool = False
) -> Sequences:
    """The same items by the numbers of another index.

    Attributes that it does not have are added to it, or dropped.
    """
    assert sequences.sparse is not None
    names = index.names()
    find = other.add if grow else other.find
    numbers = np.fromiter(map(find, names), np.int32, len(names))
    rows = sequences.sparse.renumber(numbers, len(other))
    return replace(sequences, sparse=rows)
