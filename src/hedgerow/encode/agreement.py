"""Agreement: workers that hold parts of one data set number its columns and values alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.comm import Comm
from hedgerow.encode.items import renumber_items
from hedgerow.encode.schema import first_difference
from hedgerow.sequences import Categorical, Schema, Sequences

if TYPE_CHECKING:
    from hedgerow._core import StringIndex

__all__ = ["agree_on_columns", "check_same_schema", "join_categories"]


def agree_on_columns(
    sequences: Sequences, index: StringIndex, comm: Comm
) -> tuple[Sequences, StringIndex]:
    """The same sequences with the categories and attributes of all workers, numbered alike.

    They are sorted, so that their numbers do not depend on which worker holds what.

    Parameters
    ----------
    sequences, index
        What this worker has read, and the names of the attributes that it has found.
    comm
        The workers.

    Raises
    ------
    ValueError
        Two workers have different columns; on all workers.
    """
    if comm.size == 1:
        return sequences, index
    schemas = comm.gather(sequences.schema)
    for rank, schema in enumerate(schemas):
        check_same_schema(schemas[0], schema, "the part of worker 0", f"that of worker {rank}")
    gathered = comm.gather([replace(each, codes=each.codes[:0]) for each in sequences.categorical])
    columns = zip(sequences.categorical, zip(*gathered, strict=True), strict=True)
    categorical = tuple(join_categories(mine, all_of_it) for mine, all_of_it in columns)
    sequences = replace(sequences, categorical=categorical)
    if sequences.schema.kind != "items":
        return sequences, index
    from hedgerow._core import StringIndex

    joined = StringIndex()
    for name in sorted(set().union(*comm.gather(index.names()))):
        joined.add(name)
    return renumber_items(sequences, index, joined), joined


def check_same_schema(first: Schema, other: Schema, there: str, here: str) -> None:
    """Raise ValueError unless data that are `here` have the columns of those that are `there`."""
    if first.kind != other.kind or first.n_features != other.n_features:
        raise ValueError(
            f"{there} has {_describe(first)}, but {here} {_describe(other)}; all parts of the data "
            "need the same form"
        )
    if first.names != other.names:
        names = first.column_names(), other.column_names()
        raise ValueError(
            f"{here} has other columns than {there}: {first_difference(*names, there, here)}; "
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
    return kind if schema.kind == "items" else f"{schema.n_features} columns"


def join_categories(mine: Categorical, everybodys: Sequence[Categorical]) -> Categorical:
    """Some rows of a text column, with the categories of all parts of it."""
    categories = sorted({name for each in everybodys for name in each.categories})
    places = np.searchsorted(np.array(categories, np.object_), mine.categories)
    numbers = np.append(places, -1).astype(np.int32)  # the last stands for missing
    kinds = {each.kind for each in everybodys if each.categories}
    return replace(
        mine,
        codes=numbers[mine.codes],
        categories=categories,
        kind=kinds.pop() if len(kinds) == 1 else "text",
        spellings={name: other for each in everybodys for name, other in each.spellings.items()},
        declared=any(each.declared for each in everybodys),
    )
