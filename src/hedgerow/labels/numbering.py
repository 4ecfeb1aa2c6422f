"""Numbering: the distinct values among many integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["number"]


def number(
    values: NDArray[np.integer], size: int, dtype: type[np.signedinteger] = np.intp
) -> tuple[NDArray[np.integer], NDArray[Any], NDArray[np.intp]]:
    """The distinct values in order, the index of each value among them, and their counts.

    Values are from 0 to `size` - 1. If `size` is not much larger than the number of values, they
    are counted, which is faster than sorting. Indices have the given dtype.

    Examples
    --------
    >>> import numpy as np
    >>> [part.tolist() for part in number(np.array([5, 2, 5]), 6)]
    [[2, 5], [1, 0, 1], [1, 2]]
    """
    if size > 2 * len(values) + 1024:
        distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        return distinct, inverse.astype(dtype, copy=False), counts
    places = values.astype(np.intp, copy=False)
    counts = np.bincount(places, minlength=size)
    distinct = np.flatnonzero(counts)
    numbers = np.zeros(size, dtype)
    numbers[distinct] = np.arange(len(distinct))
    return distinct, numbers[places], counts[distinct]
