"""Joined columns: parts of one data set that are read separately have the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hedgerow.counting import count_of
from hedgerow.encode.schema import first_difference
from hedgerow.sequences import Categorical, Schema

__all__ = ["check_same_schema", "join_categories"]


def check_same_schema(first: Schema, other: Schema, there: str, here: str) -> None:
    """Raise ValueError unless the data `here` have the same columns as the data `there`."""
    if first.kind != other.kind:
        raise ValueError(
            f"{there} has {_describe(first)}, but {here} has {_describe(other)}; all parts of the "
            "data need the same form"
        )
    if first.n_features != other.n_features:
        raise ValueError(
            f"{there} has {count_of(first.n_features, 'feature')}, but {here} has "
            f"{other.n_features}; all parts of the data need the same columns"
        )
    if first.names != other.names:
        names = first.column_names(), other.column_names()
        raise ValueError(
            f"{here} has different columns from {there}: {first_difference(*names, there, here)}; "
            "all parts of the data need the same columns in the same order"
        )
    if first.numeric != other.numeric:
        number = int(np.not_equal(first.numeric, other.numeric).argmax())
        kinds = ["numeric" if schema.numeric[number] else "text" for schema in (first, other)]
        raise ValueError(
            f"{first.column(number)} is {kinds[0]} in {there} but {kinds[1]} in {here}; convert it "
            "to one kind in all parts of the data"
        )


def _describe(schema: Schema) -> str:
    kind = "dicts or attribute strings"
    return kind if schema.kind == "items" else count_of(schema.n_features, "feature")


def join_categories(mine: Categorical, everybodys: Sequence[Categorical]) -> Categorical:
    """Some rows of a text column, with the categories of all its parts."""
    categories = sorted({name for each in everybodys for name in each.categories})
    places = np.searchsorted(np.array(categories, np.object_), mine.categories)
    numbers = np.append(places, -1).astype(np.int32)  # the last one is for missing values
    kinds = {each.kind for each in everybodys if each.categories}
    return replace(
        mine,
        codes=numbers[mine.codes],
        categories=categories,
        kind=kinds.pop() if len(kinds) == 1 else "text",
        spellings={name: other for each in everybodys for name, other in each.spellings.items()},
        declared=any(each.declared for each in everybodys),
    )
