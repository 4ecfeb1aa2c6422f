"""Codes: distinct values in, small integers out, at the speed of a dict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Values turned into Python objects at a time: an array of a million strings
# never becomes a million Python strings at once.
BLOCK = 1 << 16


def in_blocks(values: NDArray[Any] | list[Any]) -> Iterator[list[Any]]:
    """Cut values into short lists of Python objects."""
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        yield block if isinstance(block, list) else block.tolist()


def code_values(blocks: Iterable[list[Any]]) -> tuple[list[Any], NDArray[np.int32]]:
    """Give values numbers by first appearance.

    Parameters
    ----------
    blocks : iterable of lists
        The values, hashable, cut anywhere.

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
    """Whether a value stands for "no value": None, NaN, NaT or pandas' NA."""
    if isinstance(value, str):  # the most common by far
        return False
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (float, np.floating, Decimal)):
        return math.isnan(value)
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))
