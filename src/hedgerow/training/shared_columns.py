"""Columns, categories and attributes of X that are shared by all workers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedgerow import _core
from hedgerow.comm import Comm
from hedgerow.encode import (
    check_same_schema,
    find_occurrences,
    join_categories,
    number_by_count,
    renumber_items,
)
from hedgerow.sequences import Sequences

__all__ = ["share_columns"]


def share_columns(
    sequences: Sequences, index: _core.StringIndex, comm: Comm
) -> tuple[Sequences, _core.StringIndex]:
    """The same sequences, with the same numbering of categories and attributes on all workers.

    Raises ValueError if workers have different columns.
    """
    if comm.size == 1:
        if sequences.schema.kind == "items":
            return number_by_count(sequences, index)
        return sequences, index
    for rank, schema in enumerate(comm.gather(sequences.schema)):
        here = f"X of worker {comm.rank}"
        check_same_schema(schema, sequences.schema, f"X of worker {rank}", here)
    if sequences.schema.kind == "items":
        return _share_attributes(sequences, index, comm)
    columns = tuple(
        join_categories(column, comm.gather(replace(column, codes=np.empty(0, np.int32))))
        for column in sequences.categorical
    )
    return replace(sequences, categorical=columns), index


def _share_attributes(
    sequences: Sequences, index: _core.StringIndex, comm: Comm
) -> tuple[Sequences, _core.StringIndex]:
    sequences = _share_values(sequences, comm)
    parts = comm.gather((index.names(), *find_occurrences(sequences, index)))
    every = _core.StringIndex()
    own = [np.fromiter(map(every.add, names), np.int32, len(names)) for names, _, _ in parts]
    counts, places = np.zeros(len(every), np.int64), np.full(len(every), 2**64 - 1, np.uint64)
    for numbers, (_, some_counts, some_places) in zip(own, parts, strict=True):
        counts[numbers] += some_counts
        places[numbers] = np.minimum(places[numbers], some_places)
    numbers = every.numbers_by_count(counts, places)
    every = every.renumbered(numbers)
    return renumber_items(sequences, index, every), every


def _share_values(sequences: Sequences, comm: Comm) -> Sequences:
    """Store values of attributes, even if all are 1, if another worker has other values."""
    rows = sequences.sparse
    assert rows is not None
    have_values = comm.max(np.array([int(rows.values is not None)]))[0] > 0
    if rows.values is not None or not have_values:
        return sequences
    return replace(sequences, sparse=replace(rows, values=np.ones(len(rows.indices))))
