"""Group columns: a column of X that says which sequence each row belongs to."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from hedgerow.counting import count_of
from hedgerow.encode.forms import is_sparse

MAX_SHOWN = 10


def check_group_column(group_column: Any) -> None:
    """Raise ValueError unless it can be the name or the number of a column, or is None."""
    is_number = isinstance(group_column, Integral) and not isinstance(group_column, bool)
    if not (group_column is None or isinstance(group_column, str) or is_number):
        raise ValueError(
            f"group_column is {group_column!r}; expected the name or the number of a column of X, "
            "or None"
        )


def has_group_column(x: Any, group_column: str | int, n_features: int) -> bool:
    """Whether one sequence carries the column of group ids beside its features.

    A column with a name is there or not; that of a number is if there is one column too many.
    """
    if isinstance(group_column, str):
        frame = nw.from_native(x, eager_only=True, pass_through=True)
        return isinstance(frame, nw.DataFrame) and group_column in frame.columns
    if isinstance(x, list | tuple):
        return bool(x) and _is_row(x[0]) and len(x[0]) != n_features
    return getattr(x, "shape", None) is None or x.shape[-1] != n_features


def check_given_once(block: Any, group_column: str | int) -> None:
    """Raise ValueError if X has the column of group ids, as far as can be told: groups are given.

    A column with a name is there or not; whether that of a number is there, nobody knows.
    """
    names = list(block.columns) if isinstance(block, nw.DataFrame) else []
    if isinstance(group_column, str) and group_column not in names:
        return
    raise ValueError(
        f"groups are given twice: by a column of X, group_column={group_column!r}, and by groups; "
        "leave groups out, or take the column out of X and set group_column=None"
    )


def split_off_groups(block: Any, group_column: str | int, where: str) -> tuple[Any, Any]:
    """Take the column of group ids out of a block of rows.

    Parameters
    ----------
    block : 2-D array, wrapped frame, sparse matrix, or list of rows
        What `hedgerow.encode.forms.settle` gave.
    group_column : str or int
        Name or number of the column; numbers below 0 count from the end.
    where : str
        What the user calls the block, for messages.

    Returns
    -------
    ids : (N,) array, Series or list
    rest : of the same form as `block`
        All other columns.
    """
    if isinstance(block, list | tuple) and not all(map(_is_row, block)):
        raise ValueError(
            f"{where} holds {type(block[0]).__name__} in the place of rows, so it has no "
            f"group_column={group_column!r}; pass one table, or a list of sequences"
        )
    names = list(block.columns) if isinstance(block, nw.DataFrame) else None
    n_columns = min(map(len, block)) if isinstance(block, list | tuple) else block.shape[1]
    number = find_column(group_column, n_columns, names, where)
    if n_columns == 1:
        raise ValueError(
            f"{where} has no column but that of group ids, group_column={group_column!r}; at least "
            "one feature is needed"
        )
    if isinstance(block, list | tuple):
        rest = [[cell for place, cell in enumerate(row) if place != number] for row in block]
        return [row[number] for row in block], rest
    others = np.delete(np.arange(n_columns), number)
    if isinstance(block, nw.DataFrame):
        return block[:, number], block[:, others.tolist()]
    if is_sparse(block):
        rows = block.tocsr()
        return rows[:, [number]].toarray().ravel(), rows[:, others]
    return block[:, number], block[:, others]


def _is_row(value: Any) -> bool:
    """Whether a member of a list can be a row: a list of cells."""
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) == 1


def find_column(
    group_column: str | int, n_columns: int, names: list[Any] | None, where: str
) -> int:
    """Find the number of the column, from 0 on."""
    if names is not None and group_column in names:
        return names.index(group_column)
    if isinstance(group_column, str) and names is None:
        raise ValueError(
            f"group_column is {group_column!r}, but {where} has no column names; pass the number "
            "of the column, or a DataFrame"
        )
    if isinstance(group_column, str) or not -n_columns <= group_column < n_columns:
        columns = count_of(n_columns, "column")
        if names is not None:
            more = ", ..." if n_columns > MAX_SHOWN else ""
            columns = f"the columns {', '.join(map(repr, names[:MAX_SHOWN]))}{more}"
        advice = "pass X with the column of group ids, also to predict, or pass groups beside it"
        if where != "X":  # one of several sequences
            advice = "pass sequences that have this column too, or fit with group_column=None"
        raise ValueError(f"group_column is {group_column!r}, but {where} has {columns}; {advice}")
    return int(group_column) % n_columns
