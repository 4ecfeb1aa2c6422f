"""Cuts: the values at which one bin of a column ends and the next begins.

A cut c separates the values v < c from the values v >= c. It is the midpoint of two neighbouring
values in the training data. Columns with few distinct values have one bin per value; others have
bins with about the same number of positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import ALONE, Comm
from hedgerow.exact_sums import count_all
from hedgerow.identity import draw_uniforms, find_uniform
from hedgerow.sequences import SparseRows

# Value bins of a numeric column: bin 0 is for missing values, and bins are uint8.
MAX_BINS = 255
# The cut of a binary attribute, 1 or 0.
PRESENCE = 0.5
# Number of rows of a dense X that are used; more would hardly change the quantiles.
MAX_ROWS = 200_000
# Number types that kernels read directly; others are converted to float64 first.
READ_AS_THEY_ARE = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.uint8))
# Number of cells that are converted to float64 at a time.
BLOCK = 1 << 21


class ColumnCuts(NamedTuple):
    """Cuts of C columns, one after another.

    Attributes
    ----------
    counts : (C,) int64
        Number of cuts of each column.
    values : (counts.sum(),) float64
        The cuts, ascending within a column.
    """

    counts: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def join(cls, parts: Sequence[ColumnCuts]) -> ColumnCuts:
        """Concatenate columns."""
        counts, values = zip(*parts, strict=True)
        return cls(np.concatenate(counts), np.concatenate(values))

    @classmethod
    def presence(cls, n_attributes: int) -> ColumnCuts:
        """Cuts of binary attributes."""
        return cls(np.ones(n_attributes, np.int64), np.full(n_attributes, PRESENCE))


def cut_dense(
    dense: NDArray[Any],
    max_bins: int,
    n_threads: int,
    identify: Callable[[], NDArray[np.uint64]] | None = None,
    comm: Comm = ALONE,
) -> ColumnCuts:
    """Find the cuts of the columns of an array (N, C); NaN is missing.

    If there are so many rows that a sample is drawn, the draw depends on what ``identify`` returns,
    (N,); None: on the numbers of the rows. The rows of all workers are used.
    """
    n_rows, n_columns = dense.shape
    rows, n_everywhere = None, count_all(n_rows, comm)
    if n_everywhere > MAX_ROWS:
        identities = np.arange(n_rows, dtype=np.uint64) if identify is None else identify()
        uniforms = draw_uniforms(identities, 0, n_threads=n_threads)
        last = find_uniform(uniforms, MAX_ROWS, comm, n_threads=n_threads)
        rows = np.flatnonzero(uniforms < last)
    if comm.size > 1:
        dense = np.concatenate(comm.gather(dense if rows is None else dense[rows]))
        n_rows, rows = len(dense), None
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
    rows: SparseRows, n_attributes: int, max_bins: int, n_threads: int, comm: Comm = ALONE
) -> ColumnCuts:
    """Find the cuts of sparse attributes, numbered 0 to `n_attributes` - 1.

    Parameters
    ----------
    rows
        Entries of N positions, each attribute at most once per position. An absent attribute has
        the value 0; NaN is missing.
    n_attributes
        Number of attributes.
    max_bins
        Maximum number of bins of an attribute.
    n_threads
        Number of threads; the cuts do not depend on it.
    comm
        The workers; the entries of all of them are used.

    Notes
    -----
    An attribute whose values are all 0 or 1 has the single cut `PRESENCE`, even if it never occurs.
    """
    if all(comm.gather(rows.values is None)):
        return ColumnCuts.presence(n_attributes)
    values = np.ones(len(rows.indices)) if rows.values is None else rows.values
    indices, n_rows = rows.indices, count_all(len(rows.indptr) - 1, comm)
    if comm.size > 1:
        parts = comm.gather((indices, values))
        indices, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    counts, cuts = _core.cut_attributes(indices, values, n_rows, n_attributes, max_bins, n_threads)
    plain = counts == 0
    cuts = np.insert(cuts, np.cumsum(counts)[plain], PRESENCE)
    return ColumnCuts(np.where(plain, 1, counts), cuts)
