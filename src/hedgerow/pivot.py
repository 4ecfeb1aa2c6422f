"""Pivot tables: a column of numbers by two other columns of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.tables import Table


def pivot(
    table: Table, row: str, column: str, value: str
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Distinct entries of two columns, sorted, and the sums of a third one by both.

    Returns
    -------
    rows, columns : (R,), (C,) arrays
    sums : (R, C) array
        NaN where the table has no such row.
    """
    rows, at_rows = _distinct(table[row])
    columns, at_columns = _distinct(table[column])
    sums = np.zeros((len(rows), len(columns)))
    np.add.at(sums, (at_rows, at_columns), table[value])
    is_there = np.zeros(sums.shape, np.bool_)
    is_there[at_rows, at_columns] = True
    sums[~is_there] = np.nan
    return rows, columns, sums


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    texts = values.astype(np.str_) if values.dtype == np.object_ else values
    distinct, numbers = np.unique(texts, return_inverse=True)
    return distinct, numbers
