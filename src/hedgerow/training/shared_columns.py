"""Columns, categories and attributes of X that all workers of a training agree on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from hedgerow import _core
from hedgerow.comm import Comm
from hedgerow.encode import number_by_count, renumber_items
from hedgerow.sequences import Categorical, Sequences

__all__ = ["share_columns"]


def share_columns(
    sequences: Sequences, index: _core.StringIndex, comm: Comm
) -> tuple[Sequences, _core.StringIndex]:
    """The same sequences, with categories and attributes numbered as on all other workers.

    Raises ValueError if workers have different columns.
    """
    if comm.size == 1:
        if sequences.schema.kind == "items":
            return number_by_count(sequences, index)
        return sequences, index
    for rank, schema in enumerate(comm.gather(sequences.schema)):
        if schema != sequences.schema:
            raise ValueError(
                f"X has other columns on worker {rank} than on worker {comm.rank}; pass data with "
                "the same columns, of the same types, on all workers"
            )
    if sequences.schema.kind == "items":
        return _share_attributes(sequences, index, comm)
    columns = tuple(_share_categories(column, comm) for column in sequences.categorical)
    return replace(sequences, categorical=columns), index


def _share_attributes(
    sequences: Sequences, index: _core.StringIndex, comm: Comm
) -> tuple[Sequences, _core.StringIndex]:
    assert sequences.sparse is not None
    counts = np.bincount(sequences.sparse.indices, minlength=len(index)).tolist()
    totals: Counter[str] = Counter()
    for names, own in comm.gather((index.names(), counts)):
        totals.update(dict(zip(names, own, strict=True)))
    every = _core.StringIndex()
    for name in totals:
        every.add(name)
    numbers = every.numbers_by_count(np.array(list(totals.values()), np.int64))
    every = every.renumbered(numbers)
    return renumber_items(sequences, index, every), every


def _share_categories(column: Categorical, comm: Comm) -> Categorical:
    others = comm.gather(replace(column, codes=np.empty(0, np.int32)))
    if len({each.kind for each in others}) > 1:
        kinds = ", ".join(f"{each.kind} on worker {rank}" for rank, each in enumerate(others))
        raise ValueError(f"column {column.name!r} of X holds {kinds}; pass values of one type")
    categories = sorted({name for each in others for name in each.categories})
    numbers = {name: number for number, name in enumerate(categories)}
    places = [numbers[name] for name in column.categories]
    codes = np.array([*places, -1], np.int32)[column.codes]
    spellings = {name: ways for each in others for name, ways in each.spellings.items()}
    return replace(column, codes=codes, categories=categories, spellings=spellings)
