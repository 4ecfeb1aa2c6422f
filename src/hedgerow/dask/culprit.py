"""Culprits: the partition and the group whose data raise an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hedgerow.dask.local_data import Portion
from hedgerow.raw_data import RawData

__all__ = ["name_culprit"]


def name_culprit(
    error: ValueError | TypeError, portions: Sequence[Portion], read: Callable[[RawData], object]
) -> Exception:
    """The same error, with the names of the partition and the first group that raise it.

    Parameters
    ----------
    error
        The error from reading all data of the worker together.
    portions
        The data, partition by partition.
    read
        Reads data as training does, and raises the same errors.

    Returns
    -------
    Exception
        The error of that group, of the same type; or `error` if no partition alone raises one.
    """
    for portion in portions:

        def try_groups(first: int, stop: int, portion: Portion = portion) -> Exception | None:
            try:
                read(portion.raw(first, stop))
            except type(error) as raised:
                return raised
            return None

        n_groups = len(portion.groups)
        found = try_groups(0, n_groups)
        if found is None:
            continue
        culprit = _first_bad(n_groups, try_groups)
        in_group = try_groups(culprit, culprit + 1)
        if in_group is None:  # no single group raises an error, only several together
            return type(error)(f"{portion.name}: {found}")
        return type(error)(f"{portion.name}, group {portion.groups[culprit]!r}: {in_group}")
    return error


def _first_bad(n_groups: int, try_groups: Callable[[int, int], Any]) -> int:
    """The first group that, with all groups before it, raises an error; by bisection."""
    good, bad = 0, n_groups  # the first `good` groups raise no error, the first `bad` groups do
    while bad - good > 1:
        middle = (good + bad) // 2
        if try_groups(0, middle) is None:
            good = middle
        else:
            bad = middle
    return bad - 1
