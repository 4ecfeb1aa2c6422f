"""Sparse: scipy's sparse matrices become sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.encode.arrays import check_same_count, to_offsets
from hedgerow.encode.forms import name_of
from hedgerow.sequences import MAX_FEATURES, Schema, Sequences, SparseRows


def read_sparse(blocks: Sequence[Any], flat: bool, n_apart: int = 0) -> Sequences:
    """Concatenate sparse matrices, one per sequence.

    `n_apart` is the number of columns of X that were split off: messages count them too.
    """
    n_features = int(blocks[0].shape[1])
    for s, block in enumerate(blocks):
        check_same_count(int(block.shape[1]), n_features, s, n_apart)
        _check_real(block, name_of(s, flat))
    if n_features > MAX_FEATURES:
        raise ValueError(
            f"X has {n_features} columns; at most {MAX_FEATURES} are supported: drop the empty "
            "ones, or hash to fewer"
        )
    rows = [_canonical(block) for block in blocks]
    starts = to_offsets(row.nnz for row in rows)
    indptr = np.zeros(sum(row.shape[0] for row in rows) + 1, np.int64)
    offsets = to_offsets(row.shape[0] for row in rows)
    for row, start, first, last in zip(rows, starts, offsets, offsets[1:], strict=False):
        np.add(row.indptr[1:], start, out=indptr[first + 1 : last + 1])
    indices = np.concatenate([row.indices for row in rows]).astype(np.int32, copy=False)
    values = np.concatenate([row.data for row in rows]).astype(np.float64, copy=False)
    sparse = SparseRows(indptr, indices, None if (values == 1).all() else values, n_features)
    schema = Schema("columns", n_features, None, (True,) * n_features)
    return Sequences(offsets, schema, None, sparse, (), flat)


def _check_real(block: Any, where: str) -> None:
    if block.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {where} has dtype {block.dtype}; "
            "pass real and imaginary parts as two columns"
        )


def _canonical(block: Any) -> Any:
    """CSR with sorted columns without duplicates; the user's matrix is not changed."""
    is_canonical = block.format == "csr" and block.has_canonical_format
    if block.dtype.kind in "iu" and not is_canonical:
        block = block.astype(np.float64)  # sums of duplicates fit
    rows = block.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows
