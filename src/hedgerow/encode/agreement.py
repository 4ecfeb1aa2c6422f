"""Agreement: workers that hold parts of one data set number its columns and values alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.comm import Comm
from hedgerow.encode.items import renumber_items
from hedgerow.encode.schema import first_difference
from hedgerow.sequences import Categorical, Schema, Sequences

if TYPE_CHECKING:
    from hedgerow._core import StringIndex

__all__ = ["agree_on_columns"]


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
        _check_same(schemas[0], schema, rank)
    gathered = comm.gather([replace(each, codes=each.codes[:0]) for each in sequences.categorical])
    columns = zip(sequences.categorical, zip(*gathered, strict=True), strict=True)
    categorical = tuple(_join_categories(mine, all_of_it) for mine, all_of_it in columns)
    sequences = replace(sequences, categorical=categorical)
    if sequences.schema.kind != "items":
        return sequences, index
    from hedgerow._core import StringIndex

    joined = StringIndex()
    for name in sorted(set().union(*comm.gather(index.names()))):
        joined.add(name)
    return renumber_items(sequences, index, joined), joined


def _check_same(first: Schema, other: Schema, rank: int) -> None:
    """Raise ValueError unless another worker has the columns of the first."""
    here, there = f"those of worker {rank}", "the data of worker 0"
    if first.kind != other.kind or first.n_features != other.n_features:
        raise ValueError(
            f"{there} are {_describe(first)}, but {here} {_describe(other)}; all workers need data "
            "of the same form"
        )
    if first.names != other.names:
        names = first.column_names(), other.column_names()
        raise ValueError(
            f"{here} have other columns than {there}: {first_difference(*names, there, here)}; "
            "all partitions need the same columns in the same order"
        )
    if first.numeric != other.numeric:
        number = int(np.not_equal(first.numeric, other.numeric).argmax())
        kinds = ["numeric" if schema.numeric[number] else "text" for schema in (first, other)]
        raise ValueError(
            f"{first.column(number)} is {kinds[0]} in {there} but {kinds[1]} in {here}; convert it "
            "to one kind in all partitions"
        )


def _describe(schema: Schema) -> str:
    kind = "dicts or attribute strings"
    return kind if schema.kind == "items" else f"{schema.n_features} columns"


def _join_categories(mine: Categorical, everybodys: tuple[Categorical, ...]) -> Categorical:
    """A text column with the categories that it has on all workers."""
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
