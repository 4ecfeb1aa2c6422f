"""Codes: map distinct values to small integers, as fast as a dict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Number of values that are converted to Python objects at a time, to save memory.
BLOCK = 1 << 16


def in_blocks(values: NDArray[Any] | list[Any]) -> Iterator[list[Any]]:
    """Split values into short lists of Python objects."""
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        yield block if isinstance(block, list) else block.tolist()


def code_values(blocks: Iterable[list[Any]]) -> tuple[list[Any], NDArray[np.int32]]:
    """Number values by first appearance.

    Parameters
    ----------
    blocks : iterable of lists
        The values, hashable, split anywhere.

    Returns
    -------
    distinct : list
        The distinct values in the order in which they first appear.
    codes : (n,) int32
        Index of each value into `distinct`.
    """
    lookup: dict[Any, int] = {}
    codes: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    for block in blocks:
        for value in dict.fromkeys(block):
            lookup.setdefault(value, len(lookup))
        codes.append(np.fromiter(map(lookup.__getitem__, block), np.int32, len(block)))
    return list(lookup), np.concatenate(codes)


def is_missing(value: Any) -> bool:
    """Whether a value means "no value": None, NaN, NaT or pandas' NA."""
    if isinstance(value, str):  # by far the most common
        return False
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (float, np.floating, Decimal)):
        return math.isnan(value)
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))
