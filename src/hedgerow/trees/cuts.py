"""Cuts: the values at which one bin of a column ends and the next begins.

A cut c separates the values v < c from the values v >= c. It lies halfway between two neighbouring
values of the training data. Columns of few distinct values have a bin for each; the others have
bins that hold about equally many positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.sequences import SparseRows

# Value bins of a numeric column: bin 0 is for what is missing, and bins are uint8.
MAX_BINS = 255
# The cut of an attribute that is there or not, 1 or 0.
PRESENCE = 0.5
# Rows of a dense X that are looked at; more say little more about where quantiles lie.
MAX_ROWS = 200_000
# Numbers that kernels read as they are; others become float64 first.
READ_AS_THEY_ARE = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.uint8))
# Cells that become float64 in one go.
BLOCK = 1 << 21


class ColumnCuts(NamedTuple):
    """Cuts of C columns, one after the other.

    Attributes
    ----------
    counts : (C,) int64
        How many cuts each column has.
    values : (counts.sum(),) float64
        The cuts, rising within a column.
    """

    counts: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def join(cls, parts: Sequence[ColumnCuts]) -> ColumnCuts:
        """Put columns side by side."""
        counts, values = zip(*parts, strict=True)
        return cls(np.concatenate(counts), np.concatenate(values))

    @classmethod
    def presence(cls, n_attributes: int) -> ColumnCuts:
        """Cuts of attributes that are there or not."""
        return cls(np.ones(n_attributes, np.int64), np.full(n_attributes, PRESENCE))


def cut_dense(dense: NDArray[Any], max_bins: int, n_threads: int) -> ColumnCuts:
    """Find the cuts of the columns of an array (N, C); NaN is missing."""
    n_rows, n_columns = dense.shape
    rows = None
    if n_rows > MAX_ROWS:
        drawn = np.random.default_rng(0).choice(n_rows, MAX_ROWS, replace=False, shuffle=False)
        rows = np.sort(drawn)
    if dense.dtype in READ_AS_THEY_ARE:
        return ColumnCuts(*_core.cut_columns(dense, rows, max_bins, n_threads))
    step = max(1, BLOCK // min(n_rows, MAX_ROWS))
    parts = []
    for start in range(0, n_columns, step):
        block = dense[slice(None) if rows is None else rows, start : start + step]
        block = np.ascontiguousarray(block, np.float64)
        parts.append(ColumnCuts(*_core.cut_columns(block, None, max_bins, n_threads)))
    return ColumnCuts.join(parts)


def cut_attributes(
    rows: SparseRows, n_attributes: int, max_bins: int, n_threads: int
) -> ColumnCuts:
    """Find the cuts of sparse attributes, numbered 0 to `n_attributes` - 1.

    Parameters
    ----------
    rows
        Entries of N positions, each attribute at most once a position. An attribute that a
        position lacks has the value 0 there; NaN is missing.
    n_attributes
        How many there are.
    max_bins
        Most bins of an attribute.
    n_threads
        How many threads; the cuts do not depend on it.

    Notes
    -----
    An attribute whose values are all 0 or 1 has the one cut `PRESENCE`, also if it never occurs.
    """
    if rows.values is None:
        return ColumnCuts.presence(n_attributes)
    n_rows = len(rows.indptr) - 1
    counts, cuts = _core.cut_attributes(
        rows.indices, rows.values, n_rows, n_attributes, max_bins, n_threads
    )
    plain = counts == 0
    cuts = np.insert(cuts, np.cumsum(counts)[plain], PRESENCE)
    return ColumnCuts(np.where(plain, 1, counts), cuts)
