"""Categories: the values of text columns as strings, and their numbers in a model.

Numbers that are equal are the same category, whatever their type: a column of integers becomes one
of floats as soon as a value is missing. Bools are not numbers here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import chain, islice
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data_warning import warn_user
from hedgerow.sequences import Categorical, CategoryKind

BOOLS = {"True", "False"}
# Number of known categories that a warning lists.
MAX_SHOWN = 5


def is_bool(value: Any) -> bool:
    """Whether a value is True or False, from Python or NumPy."""
    return isinstance(value, (bool, np.bool_))


def is_number(value: Any) -> bool:
    """Whether a value is a real number, including Decimals but not bools."""
    if isinstance(value, str):  # by far the most common
        return False
    return isinstance(value, (Real, Decimal)) and not is_bool(value)


def kind_of_values(values: Iterable[Any]) -> CategoryKind:
    """The kind of the values of a column, by their types."""
    values = list(values)
    if values and all(map(is_number, values)):
        return "numbers"
    return "bools" if values and all(map(is_bool, values)) else "text"


def category_of(value: Any) -> str:
    """The text of a value; for numbers such as ``Decimal("1.00")``, of an equal int or float.

    So the lookup of any equal number finds the category.
    """
    text = str(value)
    if not is_number(value):
        return text
    spellings = _plain_spellings(value)
    is_float = isinstance(value, (float, np.floating))
    # A NumPy float has the text of its own precision.
    if text in spellings or not spellings or (is_float and len(spellings) == 1):
        return text
    return spellings[-1 if is_float else 0]


def other_spellings(value: Any) -> tuple[str, ...]:
    """Texts of equal numbers, other than `category_of`: ``1.0`` for ``1``, ``1`` for ``1.0``.

    A model may know the number by one of them: because it had another type in training, or because
    older model files contain the text as it was, such as ``1.00``. Empty for everything that is not
    a number.
    """
    if not is_number(value):
        return ()
    spellings = dict.fromkeys([str(value), *_plain_spellings(value)])
    return tuple(spelling for spelling in spellings if spelling != category_of(value))


def _plain_spellings(number: Any) -> list[str]:
    """Text of the int and of the float that equal a number, if they exist."""
    spellings = []
    try:
        if int(number) == number:
            spellings.append(str(int(number)))
        if float(number) == number:
            spellings.append(str(float(number) + 0.0))  # zero has no sign
    except (ValueError, OverflowError, ArithmeticError):
        pass  # infinite, or beyond the range of floats
    return spellings


def number_categories(
    column: Categorical, find: Callable[[str], int], known: Callable[[], Iterable[str]]
) -> NDArray[np.int32]:
    """Find the categories of a column among the categories of a model.

    Warns if none of them is known, and either they are of a different kind from the known ones, or
    some equal a known number that is written differently. New words are normal, but numbers instead
    of words are suspicious, and so is ``1067`` instead of ``01067``.

    Parameters
    ----------
    column : Categorical
        K categories.
    find
        Returns the number of a known category, -1 for others.
    known
        Lists the known categories of this column; called only if needed.

    Returns
    -------
    (K + 1,) int32
        Number of each category, -1 for unknown ones; the last entry, -1, is for missing values.
    """
    numbers = np.fromiter(map(find, column.categories), np.int32, len(column.categories))
    for place in np.flatnonzero(numbers < 0) if column.spellings else ():
        for spelling in column.spellings.get(column.categories[place], ()):
            if numbers[place] < 0:
                numbers[place] = find(spelling)
    if len(numbers) and (numbers < 0).all():
        _warn_of_another_kind(column, known())
    return np.append(numbers, np.int32(-1))


def _warn_of_another_kind(column: Categorical, known: Iterable[str]) -> None:
    """Warn if categories are of another kind, or some equal a known number written differently."""
    known = iter(known)
    shown = list(islice(known, MAX_SHOWN))
    if not shown:
        return
    kind, values = _kind_by_looks(chain(shown, known))
    ours = {_to_number(category) for category in column.categories}
    if _kind_beside(kind, column) == kind and values.isdisjoint(ours):
        return
    warn_user(
        f"column {column.name!r} has only categories that did not occur in training, such as "
        f"{column.categories[0]!r}, so all of them are treated as missing; the model was fitted on "
        f"{', '.join(map(repr, shown))}{', ...' if len(shown) == MAX_SHOWN else ''}; use the same "
        "values as in training",
        UserWarning,
    )


def _kind_by_looks(categories: Iterable[str]) -> tuple[CategoryKind, set[float | None]]:
    """What kind categories look like, and which numbers they are; text ends the search."""
    values: set[float | None] = set()
    are_bools = True
    for category in categories:
        are_bools &= category in BOOLS
        values.add(_to_number(category))
        if None in values and not are_bools:
            return "text", set()
    return ("bools", set()) if are_bools else ("numbers", values)


def _kind_beside(known: CategoryKind, column: Categorical) -> CategoryKind:
    """Kind of a column; text that looks like the known categories counts as their kind."""
    looks_alike = (known == "bools" and BOOLS.issuperset(column.categories)) or (
        known == "numbers" and all(_to_number(name) is not None for name in column.categories)
    )
    return known if column.kind == "text" and looks_alike else column.kind


def _to_number(category: str) -> float | None:
    try:
        return float(category)
    except ValueError:
        return None
