"""Groups: an id for every row of a flat X becomes offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.encode.codes import code_values, in_blocks, is_missing
from hedgerow.sequences import Sequences, merely_count


def read_groups(
    groups: Any, n_rows: int, group_column: str | int | None = None, table: str = "X"
) -> NDArray[np.int64]:
    """Turn group ids into offsets.

    Parameters
    ----------
    groups : array-like of hashable ids, (N,)
        The sequence of each row; rows with the same id must be consecutive.
    n_rows : int
        Number of rows of the table.
    group_column : str, int or None
        The column of the table that contains the ids, for messages.
    table : str
        Name of the table in messages.

    Returns
    -------
    offsets : (S + 1,) int64
    """
    ids = _read_ids(groups, n_rows, "row", table, group_column)
    numbers = _to_numbers(ids, "row", group_column)
    starts = np.concatenate([[0], np.flatnonzero(numbers[1:] != numbers[:-1]) + 1])
    first_start: dict[Any, int] = {}
    for number, row in zip(numbers[starts].tolist(), starts.tolist(), strict=True):
        if number in first_start:
            name = ids[row : row + 1].tolist()[0] if isinstance(ids, np.ndarray) else ids[row]
            raise ValueError(
                f"group {name!r} occurs again at row {row} after it began at row "
                f"{first_start[number]}; the rows of a group must be consecutive: "
                f"{_cure(group_column, table)}"
            )
        first_start[number] = row
    return np.append(starts, n_rows).astype(np.int64)


def name_groups(groups: Any, offsets: NDArray[np.int64]) -> list[Any]:
    """The id of each sequence, (S,), from groups that `read_groups` has read."""
    ids, starts = _to_ids(groups), offsets[:-1]
    found: list[Any]
    found = ids[starts].tolist() if isinstance(ids, np.ndarray) else [ids[t] for t in starts]
    return found


def name_sequences(sequences: Sequences, ids: list[Any], *, are_kept: bool) -> Sequences:
    """Give sequences their ids; unless `are_kept`, ids that merely count sequences are dropped."""
    return replace(
        sequences,
        ids=ids if are_kept or not merely_count(ids) else None,
        numbers=ids if all(isinstance(each, int | float) for each in ids) else None,
    )


def number_groups(groups: Any, n_items: int, items: str) -> NDArray[np.int64]:
    """Number of the group of each item, by first appearance; groups need not be consecutive.

    ``items`` is "rows" or "sequences", for the message.
    """
    item = items.removesuffix("s")
    ids = _to_numbers(_read_ids(groups, n_items, item), item)
    _, first, numbers = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[numbers.ravel()]


def _read_ids(
    groups: Any, n_items: int, item: str, table: str = "X", group_column: str | int | None = None
) -> NDArray[Any] | list[Any]:
    """Ids of all items; checks their number."""
    ids = _to_ids(groups, item, table, group_column)
    if len(ids) != n_items:
        raise ValueError(
            f"groups has {count_of(len(ids), 'id')} but {table} has {count_of(n_items, item)}; "
            f"pass one id for every {item}"
        )
    return ids


def _cure(group_column: str | int | None, table: str) -> str:
    """What to do about a group whose rows are not consecutive."""
    if table != "X":
        return "sort all rows by group first (stably, to keep the order within a group)"
    if group_column is None:
        return "sort X, y and groups by group first (stably, to keep the order within a group)"
    return (
        f"sort X and y by column {group_column!r} first (stably, to keep the order within a "
        "group). If this happens in sklearn.inspection.permutation_importance, which shuffles "
        "that column too, use hedgerow.inspection.permutation_importance"
    )


def _to_ids(
    groups: Any, item: str = "row", table: str = "X", group_column: str | int | None = None
) -> NDArray[Any] | list[Any]:
    if isinstance(groups, str | bytes | dict) or not (
        isinstance(groups, Iterable) or hasattr(groups, "__array__")
    ):
        hint = ""
        if (item, table) == ("row", "X"):
            hint = ", such as X['sequence'] (to name a column of X, set group_column instead)"
        raise TypeError(f"groups is {groups!r}; expected one id for every {item}{hint}")
    series = nw.from_native(groups, allow_series=True, pass_through=True)
    if isinstance(series, nw.DataFrame | nw.LazyFrame):
        raise TypeError("groups is a DataFrame; pass one column of it")
    if isinstance(series, nw.Series):
        missing = series.is_null().to_numpy()
        if missing.any():
            raise _missing(int(missing.argmax()), item, group_column)
        groups = series.to_numpy()
    elif np.ma.is_masked(groups):
        number = int(np.ma.getmaskarray(groups).ravel().argmax())
        raise _missing(number, item, group_column)
    elif hasattr(groups, "__array__"):
        groups = np.asarray(groups)
    if not isinstance(groups, np.ndarray):
        return list(groups)
    if groups.ndim != 1:
        raise ValueError(f"groups has shape {groups.shape}; expected 1-D, one id for every {item}")
    return groups.tolist() if groups.dtype.kind == "O" else groups


def _to_numbers(
    ids: NDArray[Any] | list[Any], item: str, group_column: str | int | None = None
) -> NDArray[Any]:
    """Ids that NumPy can compare; Python objects become codes."""
    if isinstance(ids, list):
        try:
            distinct, codes = code_values(in_blocks(ids))
        except TypeError as error:
            holds = "groups holds an id"
            if group_column is not None:
                holds = f"column {group_column!r} holds a group id"
            raise TypeError(f"{holds} that is not hashable: {error}") from None
        for code, value in enumerate(distinct):
            if is_missing(value):
                raise _missing(int((codes == code).argmax()), item, group_column)
        return codes
    if ids.dtype.kind in "fmM":
        missing = np.isnan(ids)
        if missing.any():
            raise _missing(int(missing.argmax()), item, group_column)
    return ids


def _missing(number: int, item: str, group_column: str | int | None) -> ValueError:
    lacks = "groups has no id"
    if group_column is not None:
        lacks = f"column {group_column!r} has no group id"
    return ValueError(f"{lacks} (None or NaN) at {item} {number}; every {item} needs one")
