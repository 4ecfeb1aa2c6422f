"""Columns: found by name or by number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from hedgerow.files.errors import FileError, Path


def find_column(columns: Sequence[str], which: int | str, path: Path) -> int:
    """Number of a column.

    Parameters
    ----------
    columns
        Names of all columns.
    which
        A name, or a number (which may be a string): from 0, or from the end if it is negative.
    path
        The file, for the message of a `FileError`.
    """
    if isinstance(which, str) and which in columns:
        check_named_once(columns, [which], path)
        return columns.index(which)
    if isinstance(which, str) and not re.fullmatch(r"[+-]?\d{1,9}", which):
        raise FileError(path, f"there is no column {which!r}; {list_columns(columns)}")
    number = int(which)
    if not -len(columns) <= number < len(columns):
        raise FileError(path, f"there is no column {number}; {list_columns(columns)}")
    return number % len(columns)


def check_named_once(columns: Sequence[str], used: Iterable[str], path: Path) -> None:
    """Raise `FileError` if several columns have the same name, and it is in `used`."""
    counts = Counter(columns)
    for name in used:
        if counts[name] > 1:
            raise FileError(path, f"two columns are named {name!r}; rename one")


def list_columns(columns: Sequence[str]) -> str:
    """A list of the columns, for messages."""
    if list(columns) == number_columns(len(columns)):
        return f"the columns have no names and are numbered from 0 to {len(columns) - 1}"
    shown = ", ".join(map(repr, columns[:20]))
    return f"the columns are {shown}{', ...' if len(columns) > 20 else ''}"


def number_columns(n_columns: int) -> list[str]:
    """Names for columns that have none."""
    return [str(number) for number in range(n_columns)]
