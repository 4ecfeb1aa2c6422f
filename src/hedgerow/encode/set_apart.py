"""Columns that are set apart: columns of X that are not features, but describe its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from hedgerow.counting import count_of
from hedgerow.encode.forms import is_sparse

MAX_SHOWN = 10


@dataclass(frozen=True)
class Role:
    """The purpose of a column of X that is not a feature.

    Attributes
    ----------
    parameter : str
        The parameter of the estimators that names the column.
    argument : str
        The argument of their methods with the same meaning.
    holds : str
        The contents of the column.
    in_lists : bool
        Whether the argument can be passed for a list of sequences too.
    """

    parameter: str
    argument: str
    holds: str
    in_lists: bool

    def argument_for(self, column: str | int) -> str:
        """How to pass the argument instead of a column that X does not have.

        If the column is given by its number, the parameter must also be set to None, since
        `check_given_once` assumes that X has this column.
        """
        unset = "" if isinstance(column, str) else f"set {self.parameter}=None and "
        return f"{unset}pass the argument {self.argument}"


GROUPS = Role("group_column", "groups", "group ids", in_lists=False)
PARENTS = Role("parents_column", "parents", "parents", in_lists=True)


def check_column(role: Role, column: Any) -> None:
    """Raise ValueError unless it can be the name or the number of a column, or is None."""
    is_number = isinstance(column, Integral) and not isinstance(column, bool)
    if not (column is None or isinstance(column, str) or is_number):
        raise ValueError(
            f"{role.parameter} is {column!r}; expected the name or the number of a column of X, "
            "or None"
        )


def check_given_once(block: Any, role: Role, column: str | int) -> None:
    """Raise ValueError if X has the column although the argument is given too.

    X is assumed to have a column that is given by its number.
    """
    names = list(block.columns) if isinstance(block, nw.DataFrame) else []
    if isinstance(column, str) and column not in names:
        return
    raise ValueError(
        f"{role.argument} are given twice: by a column of X, {role.parameter}={column!r}, and by "
        f"{role.argument}; leave {role.argument} out, or take the column out of X and set "
        f"{role.parameter}=None"
    )


def split_off(
    block: Any, columns: Mapping[Role, str | int], where: str, advice: str | None = None
) -> tuple[dict[Role, Any], Any]:
    """Split off columns that are not features from a block of rows.

    Parameters
    ----------
    block : 2-D array, wrapped frame, sparse matrix, or list of rows
        The output of `hedgerow.encode.forms.settle`.
    columns : dict
        Name or number of each column; numbers below 0 count from the end.
    where : str
        Name of the block in messages.
    advice : str, optional
        What to do if the block does not have a column; by default, as for `fit` and `predict`.

    Returns
    -------
    values : dict of (N,) arrays, Series or lists
    rest : of the same form as `block`
        All other columns.
    """
    if isinstance(block, list | tuple) and not all(map(is_row, block)):
        role, column = next(iter(columns.items()))
        raise ValueError(
            f"the entries of {where} are not rows but of type {type(block[0]).__name__}, so there "
            f"is no column for {role.parameter}={column!r}; pass one table, or a list of sequences"
        )
    names = list(block.columns) if isinstance(block, nw.DataFrame) else None
    n_columns = min(map(len, block)) if isinstance(block, list | tuple) else block.shape[1]
    numbers = {
        role: find_column(role, column, n_columns, names, where, advice)
        for role, column in columns.items()
    }
    _check_apart(numbers, columns, n_columns, where)
    others = np.delete(np.arange(n_columns), list(numbers.values())).tolist()
    if isinstance(block, list | tuple):
        dropped = set(numbers.values())
        rest = [[cell for place, cell in enumerate(row) if place not in dropped] for row in block]
        return {role: [row[n] for row in block] for role, n in numbers.items()}, rest
    if is_sparse(block):
        rows = block.tocsr()
        found = {role: rows[:, [n]].toarray().ravel() for role, n in numbers.items()}
        return found, rows[:, others]
    return {role: block[:, n] for role, n in numbers.items()}, block[:, others]


def is_row(value: Any) -> bool:
    """Whether an entry of a list can be a row: a list of cells."""
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) == 1


def find_column(
    role: Role,
    column: str | int,
    n_columns: int,
    names: list[Any] | None,
    where: str,
    advice: str | None = None,
) -> int:
    """Find the number of the column, from 0; for `advice` see `split_off`."""
    if names is not None and column in names:
        return names.index(column)
    if isinstance(column, str) and names is None:
        raise ValueError(
            f"{role.parameter} is {column!r}, but {where} has no column names; pass the number "
            "of the column, or a DataFrame"
        )
    if isinstance(column, str) or not -n_columns <= column < n_columns:
        columns = count_of(n_columns, "column")
        if names is not None:
            more = ", ..." if n_columns > MAX_SHOWN else ""
            columns = f"the columns {', '.join(map(repr, names[:MAX_SHOWN]))}{more}"
        if advice is None:
            advice = _advise(role, column, where)
        raise ValueError(f"{role.parameter} is {column!r}, but {where} has {columns}; {advice}")
    return int(column) % n_columns


def _advise(role: Role, column: str | int, where: str) -> str:
    """What to do if X, or one of several sequences, does not have the column."""
    instead = role.argument_for(column)
    if where == "X":
        return f"pass X with the column of {role.holds} to fit and to predict, or {instead}"
    if not role.in_lists:
        instead = f"fit with {role.parameter}=None"
    return f"pass sequences that have this column too, or {instead}"


def _check_apart(
    numbers: Mapping[Role, int], columns: Mapping[Role, str | int], n_columns: int, where: str
) -> None:
    """Raise ValueError if two roles share a column, or if no column is left."""
    named = " and ".join(f"{role.parameter}={column!r}" for role, column in columns.items())
    if len(set(numbers.values())) < len(numbers):
        raise ValueError(f"{named} are the same column of {where}; name two different ones")
    if n_columns == len(numbers):
        holds = " and of ".join(role.holds for role in columns)
        raise ValueError(
            f"{where} has only the column of {holds}, {named}; at least one feature is needed"
        )
