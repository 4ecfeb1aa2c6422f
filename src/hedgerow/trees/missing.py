"""Missing values: the methods, and the values that are imputed."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.exact_sums import SumGrid, count_all, largest_of_all

__all__ = ["METHODS", "MissingMethod", "fill_missing", "impute_bins"]

MissingMethod = Literal["learned", "fractional", "surrogate", "impute", "indicator"]
METHODS: tuple[str, ...] = get_args(MissingMethod)

# Columns with more distinct numbers have their median imputed, others the most frequent value.
FEW_VALUES = 32


def impute_bins(
    bins: NDArray[np.uint8],
    n_bins: NDArray[Any],
    categorical: NDArray[np.bool_],
    max_bins: int,
    comm: Comm = ALONE,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.uint8]:
    """The bin of each of D columns that replaces missing values, (D,).

    It is the most frequent bin for categories and for numbers with few distinct values, and the bin
    of the median for other numbers. If all values are missing, or have no weight, it is the first
    bin.

    Parameters
    ----------
    bins : (N, D) uint8
        Bins of the training data, 0 where a value is missing.
    n_bins : (D,)
        Number of bins of each column.
    categorical : (D,) bool
        Whether a column is categorical.
    max_bins
        Maximum number of bins of numeric columns.
    comm
        The workers that share the training data.
    weights : (N,) or None
        Weight of each position.
    """
    few = categorical | ((n_bins <= FEW_VALUES) & (n_bins < max_bins))
    imputed = np.ones(bins.shape[1], np.uint8)
    by_column = _count_bins(bins, comm, weights)
    for column, (is_few, counts) in enumerate(zip(few.tolist(), by_column, strict=True)):
        if is_few:
            imputed[column] = 1 + counts.argmax()
        else:
            below = np.cumsum(counts)
            imputed[column] = 1 + np.searchsorted(2 * below, below[-1])
    return imputed


def fill_missing(bins: NDArray[np.uint8], fills: NDArray[np.uint8]) -> None:
    """Replace missing values in place: bins, (N, D), by the bin of each column, (D,)."""
    together = max(1, 4096 // max(1, len(fills)))  # long rows, since short ones take longer
    n_together = len(bins) // together * together
    for rows, width in ((bins[:n_together], together), (bins[n_together:], 1)):
        wide = rows.reshape(len(rows) // width, width * len(fills))
        wide |= (wide == 0).view(np.uint8) * np.tile(fills, width)


def _count_bins(
    bins: NDArray[np.uint8], comm: Comm, weights: NDArray[np.float64] | None
) -> NDArray[Any]:
    """Total weight of each bin but that of missing values, for all workers, (D, 255)."""
    if weights is None:
        own = [np.bincount(column, minlength=256)[1:] for column in bins.T]
        return comm.sum(np.array(own, np.int64).reshape(-1, 255))
    largest = largest_of_all(float(weights.max(initial=0.0)), comm)
    grid = SumGrid(largest * count_all(len(weights), comm))
    rounded = grid.round(weights)
    sums = [np.bincount(column, rounded, minlength=256)[1:] for column in bins.T]
    return grid.share(np.array(sums, np.float64).reshape(-1, 255), comm)
