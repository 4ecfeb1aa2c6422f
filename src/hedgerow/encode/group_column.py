"""Group columns: a column of X with the sequence id of each row."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw

from hedgerow.encode.set_apart import GROUPS, check_column, is_row, split_off


def check_group_column(group_column: Any) -> None:
    """Raise ValueError unless it can be the name or the number of a column, or is None."""
    check_column(GROUPS, group_column)


def has_group_column(x: Any, group_column: str | int, n_others: int) -> bool:
    """Whether a sequence has the column of group ids in addition to this many others.

    A numbered column is assumed to be there unless there are exactly `n_others` columns.
    """
    if isinstance(group_column, str):
        frame = nw.from_native(x, eager_only=True, pass_through=True)
        return isinstance(frame, nw.DataFrame) and group_column in frame.columns
    if isinstance(x, list | tuple):
        return bool(x) and is_row(x[0]) and len(x[0]) != n_others
    return getattr(x, "shape", None) is None or x.shape[-1] != n_others


def split_off_groups(
    block: Any, group_column: str | int, where: str, advice: str | None = None
) -> tuple[Any, Any]:
    """Split off the column of group ids from a block of rows: the ids, and all other columns.

    For the parameters see `hedgerow.encode.set_apart.split_off`.
    """
    found, rest = split_off(block, {GROUPS: group_column}, where, advice)
    return found[GROUPS], rest
