"""Cuts: the values at which one bin of a column ends and the next begins.

A cut c separates the values v < c from the values v >= c. It lies halfway between two neighbouring
values of the training data. Columns of few distinct values have a bin for each; the others have
bins that hold about equally many positions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.sequences import SparseRows

# Value bins of a numeric column: bin 0 is for what is missing, and bins are uint8.
MAX_BINS = 255
# The cut of an attribute that is there or not, 1 or 0.
PRESENCE = 0.5
# Rows of a dense X that are looked at; more say little more about where quantiles lie.
MAX_ROWS = 200_000
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


def cut_dense(dense: NDArray[Any], max_bins: int) -> ColumnCuts:
    """Find the cuts of the columns of an array (N, C); NaN is missing."""
    n_rows, n_columns = dense.shape
    rows: slice | NDArray[np.int64] = slice(None)
    if n_rows > MAX_ROWS:
        drawn = np.random.default_rng(0).choice(n_rows, MAX_ROWS, replace=False, shuffle=False)
        rows = np.sort(drawn)
    step = max(1, BLOCK // min(n_rows, MAX_ROWS))
    cuts = []
    for start in range(0, n_columns, step):
        block = dense[rows, start : start + step].T
        cuts += [_cut_values(values, max_bins) for values in block.astype(np.float64, order="C")]
    counts = np.fromiter(map(len, cuts), np.int64, n_columns)
    return ColumnCuts(counts, np.concatenate(cuts))


def cut_attributes(rows: SparseRows, n_attributes: int, max_bins: int) -> ColumnCuts:
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

    Notes
    -----
    An attribute whose values are all 0 or 1 has the one cut `PRESENCE`, also if it never occurs.
    """
    if rows.values is None:
        return ColumnCuts(np.ones(n_attributes, np.int64), np.full(n_attributes, PRESENCE))
    usable = np.isfinite(rows.values)
    valued = np.zeros(n_attributes, np.bool_)
    valued[rows.indices[usable & (rows.values != 0) & (rows.values != 1)]] = True
    owners, cuts = _cut_valued(rows, usable, valued, max_bins)
    plain = np.flatnonzero(~valued)
    owners = np.concatenate([plain, owners])
    cuts = np.concatenate([np.full(len(plain), PRESENCE), cuts])
    order = np.argsort(owners, kind="stable")
    return ColumnCuts(np.bincount(owners, minlength=n_attributes), cuts[order])


def _cut_values(values: NDArray[np.float64], max_bins: int) -> NDArray[np.float64]:
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    return _midpoints(distinct)[_choose_gaps(counts, max_bins)]


def _cut_valued(
    rows: SparseRows, usable: NDArray[np.bool_], valued: NDArray[np.bool_], max_bins: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cuts of the `valued` attributes, and the attribute of each cut."""
    assert rows.values is not None
    present = valued[rows.indices] & (rows.values != 0)
    n_present = np.bincount(rows.indices[present], minlength=len(valued))
    attributes = np.flatnonzero(valued)
    # Each attribute's values, and one 0 for all the positions that lack it.
    owners = np.concatenate([rows.indices[present & usable], attributes])
    values = np.concatenate([rows.values[present & usable], np.zeros(len(attributes))])
    counts: NDArray[np.int64] = np.ones(len(values), np.int64)
    counts[len(values) - len(attributes) :] = len(rows.indptr) - 1 - n_present[attributes]

    order = np.lexsort((values, owners))
    owners, values, counts = owners[order], values[order], counts[order]
    is_new = np.ones(len(values), np.bool_)
    is_new[1:] = (owners[1:] != owners[:-1]) | (values[1:] != values[:-1])
    starts = np.flatnonzero(is_new)
    if not len(starts):
        return np.empty(0, np.int64), np.empty(0)
    owners, values, counts = owners[starts], values[starts], np.add.reduceat(counts, starts)

    gaps = owners[1:] == owners[:-1]
    ends = np.cumsum(np.bincount(owners, minlength=len(valued))[attributes])
    n_distinct = np.diff(ends, prepend=0)
    for end, n in zip(ends[n_distinct > max_bins], n_distinct[n_distinct > max_bins], strict=True):
        gaps[end - n : end - 1] = _choose_gaps(counts[end - n : end], max_bins)
    return owners[:-1][gaps], _midpoints(values)[gaps]


def _midpoints(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cuts (m - 1,) between m rising values: low < cut <= high, also where low and high touch."""
    low, high = values[:-1], values[1:]
    middle = low / 2 + high / 2  # their sum could overflow
    return np.where((low < middle) & (middle <= high), middle, high)


def _choose_gaps(counts: NDArray[np.int64], max_bins: int) -> NDArray[np.bool_]:
    """Choose where to cut m rising values that occur `counts` times: (m - 1,), True for a cut.

    At most one count is 0: that of an attribute's being absent.
    There are min(m, `max_bins`) bins. A value that fills more than a bin has one of its own, where
    there are bins enough, and does not narrow the choice among the others.
    """
    if len(counts) <= max_bins:
        return np.ones(max(0, len(counts) - 1), np.bool_)
    heavy, size = _find_heavy(counts, max_bins)
    light = np.where(heavy, 0, counts)
    bins = np.floor((np.cumsum(light) - light / 2) / size)
    gaps: NDArray[np.bool_] = (bins[1:] != bins[:-1]) | heavy[1:] | heavy[:-1]
    # Heavy values may stand in the middle of a bin and part it: join neighbours, small ones first.
    starts = np.concatenate([[0], np.flatnonzero(gaps) + 1])
    sizes = np.add.reduceat(counts, starts)
    while len(starts) > max_bins:
        left = int(np.argmin(sizes[:-1] + sizes[1:]))
        gaps[starts[left + 1] - 1] = False
        sizes[left] += sizes[left + 1]
        starts, sizes = np.delete(starts, left + 1), np.delete(sizes, left + 1)
    return gaps


def _find_heavy(counts: NDArray[np.int64], max_bins: int) -> tuple[NDArray[np.bool_], float]:
    """Which values fill more than a bin, (m,), and how large a bin of the others is.

    With H heavy values, size = (sum of the light counts) / (max_bins - H), and a value is heavy if
    it occurs more often than that: the more are heavy, the smaller is the size.
    """
    heavy: NDArray[np.bool_] = np.zeros(len(counts), np.bool_)
    while True:
        size = float(counts[~heavy].sum() / max(1, max_bins - int(heavy.sum())))
        heavier = counts > size
        if (heavier == heavy).all():
            return heavy, size
        heavy = heavier
