"""Entries: the attributes of each position, sorted and without duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hedgerow.sequences import Sequences, SparseRows

# Number of cells in a dense block of float64.
BLOCK = 1 << 20


def read_entries(sequences: Sequences, n_attributes: int) -> SparseRows:
    """Attributes of items, or the numeric columns of X as attributes; others are left out."""
    if sequences.sparse is None:
        return _entries_of_dense(sequences)
    rows = sequences.sparse
    if rows.n_columns > n_attributes:
        rows = keep_entries(rows, rows.indices < n_attributes)
    return _sorted_entries(rows)


def presence_entries(numbers: NDArray[np.int32], n_attributes: int) -> SparseRows:
    """Rows of binary attributes, from their numbers (N, k), ascending or -1 for none."""
    there = numbers >= 0
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1), dtype=np.int64)])
    return SparseRows(indptr, numbers[there], None, n_attributes)


def keep_entries(rows: SparseRows, keep: NDArray[np.bool_]) -> SparseRows:
    """Leave out the entries whose flag, (nnz,), is False."""
    if keep.all():
        return rows
    kept_before = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
    values = None if rows.values is None else rows.values[keep]
    return SparseRows(kept_before[rows.indptr], rows.indices[keep], values, rows.n_columns)


def dense_blocks(sequences: Sequences) -> Iterator[NDArray[np.float64]]:
    """Split the numeric columns of X, dense or sparse, into blocks of rows."""
    matrix = sequences.dense
    if matrix is None:
        assert sequences.sparse is not None
        matrix = _to_matrix(sequences.sparse)
    step = max(1, BLOCK // matrix.shape[1])
    for start in range(0, matrix.shape[0], step):
        block = matrix[start : start + step]
        dense = block if isinstance(block, np.ndarray) else block.toarray()
        yield np.ascontiguousarray(dense, np.float64)


def _entries_of_dense(sequences: Sequences) -> SparseRows:
    blocks = [scipy.sparse.csr_array(block) for block in dense_blocks(sequences)]
    matrix = scipy.sparse.vstack(blocks, format="csr")
    return _to_rows(matrix, matrix.data)


def _sorted_entries(rows: SparseRows) -> SparseRows:
    """Sort the entries of each row and merge those of the same attribute.

    If an attribute is repeated, ones count once, and other values are added up.
    """
    matrix = _to_matrix(rows)
    if matrix.has_canonical_format:
        return rows
    matrix = matrix.copy()
    matrix.sort_indices()
    ordered = _to_rows(matrix, None if rows.values is None else matrix.data)
    is_first = np.ones(len(ordered.indices), np.bool_)
    is_first[1:] = ordered.indices[1:] != ordered.indices[:-1]
    is_first[ordered.indptr[:-1][np.diff(ordered.indptr) > 0]] = True
    if ordered.values is not None:
        starts = np.flatnonzero(is_first)
        ones = ordered.values == 1
        sums = np.add.reduceat(np.where(ones, 0.0, ordered.values), starts)
        ordered.values[starts] = sums + np.logical_or.reduceat(ones, starts)
    return keep_entries(ordered, is_first)


def _to_matrix(rows: SparseRows) -> Any:
    """Return a SciPy matrix, which may share the entries."""
    ones = rows.values is None
    values = np.ones(len(rows.indices), np.uint8) if ones else rows.values
    shape = (len(rows.indptr) - 1, rows.n_columns)
    return scipy.sparse.csr_array((values, rows.indices, rows.indptr), shape)


def _to_rows(matrix: Any, values: NDArray[np.float64] | None) -> SparseRows:
    return SparseRows(
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        values,
        matrix.shape[1],
    )
