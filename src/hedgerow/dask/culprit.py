"""Culprits: which partition and which group an error of a worker's data is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hedgerow.dask.local_data import LocalData, PartRows, to_raw
from hedgerow.raw_data import RawData

__all__ = ["name_culprit"]


def name_culprit(
    error: ValueError | TypeError, data: LocalData, read: Callable[[RawData], object]
) -> Exception:
    """The same error with the names of the partition and of the first group that raise it.

    Parameters
    ----------
    error
        What was raised when all data of the worker were read together.
    data
        The data.
    read
        Reads data as training does, and raises for what is wrong with them.

    Returns
    -------
    Exception
        The error of that group alone, of the same kind; or `error` if no partition alone raises
        one.
    """

    def try_rows(rows: PartRows) -> Exception | None:
        try:
            read(to_raw(rows.frame, data.roles))
        except type(error) as found:
            return found
        return None

    for rows in data.parts:
        found = try_rows(rows)
        if found is None:
            continue
        culprit = _first_bad_group(rows, try_rows)
        in_group = try_rows(rows.select(culprit, culprit + 1))
        if in_group is None:  # several groups together are wrong, none of them alone
            return type(error)(f"{rows.name}: {found}")
        return type(error)(f"{rows.name}, group {rows.groups[culprit]!r}: {in_group}")
    return error


def _first_bad_group(rows: PartRows, try_rows: Callable[[PartRows], Any]) -> int:
    """The group at which the rows from the first one on begin to raise, by bisection."""
    good, bad = 0, len(rows.groups)  # the first `good` groups are good, the first `bad` are not
    while bad - good > 1:
        middle = (good + bad) // 2
        if try_rows(rows.select(0, middle)) is None:
            good = middle
        else:
            bad = middle
    return bad - 1
