"""Items: lists of dicts or of attribute strings become sparse rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
