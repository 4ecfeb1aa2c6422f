"""Items: lists of dicts or of attribute strings become sparse rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.sequences import Schema, Sequences, SparseRows

if TYPE_CHECKING:
    from hedgerow._core import StringIndex


def read_items(
    sequences: list[Any], index: StringIndex | None, grow: bool, n_threads: int = 1
) -> Sequences:
    """Read every attribute of every position, in C++."""
    if index is None:
        raise ValueError(
            "X holds dicts or attribute strings, but this model works on numeric and text "
            "columns and has no index of attributes; pass arrays or DataFrames"
        )
    # Imported here, so that models on columns work without it.
    from hedgerow import _core

    offsets, indptr, indices, values = _core.walk_items(sequences, index, grow, n_threads)
    sparse = SparseRows(indptr, indices, values, len(index))
    return Sequences(offsets, Schema("items", 0, None, ()), None, sparse, (), flat=False)


def seen_items(sequences: Sequences, index: StringIndex, comm: Comm = ALONE) -> StringIndex:
    """The attributes that occur in some items of any worker, in the order of their numbers."""
    from hedgerow import _core

    assert sequences.sparse is not None
    names, seen = index.names(), _core.StringIndex()
    counts = comm.sum(np.bincount(sequences.sparse.indices, minlength=len(names)).astype(np.int64))
    for number in np.flatnonzero(counts).tolist():
        seen.add(names[number])
    return seen


def number_by_count(sequences: Sequences, index: StringIndex) -> tuple[Sequences, StringIndex]:
    """Renumber items: the most frequent attribute first.

    Ties are broken by first occurrence, as if the sequences were sorted by their digests. So
    numbers do not depend on the order of the sequences, and attributes that are frequent, or occur
    together, have neighbouring numbers, which makes training faster.
    """
    numbers = index.numbers_by_count(*find_occurrences(sequences, index))
    rows = sequences.sparse
    assert rows is not None
    rows = rows.renumber(numbers, len(index))
    return replace(sequences, sparse=rows), index.renumbered(numbers)


def find_occurrences(
    sequences: Sequences, index: StringIndex
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Number of positions where each attribute occurs, (A,), and its first place, (A,).

    A place is a number made from the digest of a sequence and the position in it, so it does not
    depend on the order of the sequences. The first place is the smallest; the caller takes the
    minimum over workers.
    """
    from hedgerow import _core

    rows = sequences.sparse
    assert rows is not None
    counts = _core.count_positions(rows.indptr, rows.indices, len(index))
    return counts, _core.find_places(sequences.offsets, rows.indptr, rows.indices, index)


def renumber_items(
    sequences: Sequences, index: StringIndex, other: StringIndex, grow: bool = False
) -> Sequences:
    """The same items with the numbers of another index.

    Attributes that `other` does not have are added to it if `grow`, otherwise dropped.
    """
    assert sequences.sparse is not None
    names = index.names()
    find = other.add if grow else other.find
    numbers = np.fromiter(map(find, names), np.int32, len(names))
    rows = sequences.sparse.renumber(numbers, len(other))
    return replace(sequences, sparse=rows)
