"""Gathered data: labelled sequences of all workers, on every one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE
from hedgerow.encode import join_categories
from hedgerow.sequences import Sequences, SparseRows
from hedgerow.training.labelled import Labelled

__all__ = ["gather_labelled"]


def gather_labelled(labelled: Labelled, identities: NDArray[np.uint64] | None = None) -> Labelled:
    """The sequences of all workers, on each of them, sorted by rank, or by ``identities``, (S,).

    Attributes have the same numbers on all workers.
    """
    together = _gather(labelled)
    if identities is None or _has_facts(labelled):
        return together  # facts are never divided among workers, and must keep their order
    found = np.concatenate(labelled.comm.gather(identities))
    order, offsets = np.argsort(found), together.sequences.offsets
    return together.select(order, offsets[:-1][order], offsets[1:][order])


def _has_facts(labelled: Labelled) -> bool:
    """Whether the model or its base has facts."""
    own = labelled.sequences.facts is not None
    return own or (labelled.base is not None and _has_facts(labelled.base))


def _gather(labelled: Labelled) -> Labelled:
    """The sequences of all workers, sorted by rank."""
    if labelled.comm.size == 1:
        return labelled
    weights = labelled.sequence_weights, labelled.position_weights
    parts = labelled.comm.gather((labelled.sequences, labelled.codes, *weights))
    sequences, codes, by_sequence, by_position = zip(*parts, strict=True)
    return replace(
        labelled,
        sequences=_join(sequences),
        codes=np.concatenate(codes),
        sequence_weights=_join_arrays(by_sequence),
        position_weights=_join_arrays(by_position),
        base=labelled.base and _gather(labelled.base),
        comm=ALONE,
    )


def _join(parts: Sequence[Sequences]) -> Sequences:
    def join(part_of: Callable[[Sequences], NDArray[Any] | None]) -> NDArray[Any] | None:
        return _join_arrays([part_of(part) for part in parts])

    lengths = np.concatenate([part.lengths for part in parts])
    columns = []
    for everybodys in zip(*(part.categorical for part in parts), strict=True):
        joined = [join_categories(column, everybodys) for column in everybodys]
        codes = np.concatenate([column.codes for column in joined])
        columns.append(replace(joined[0], codes=codes))
    return replace(
        parts[0],
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        dense=join(lambda part: part.dense),
        sparse=_join_rows([part.sparse for part in parts if part.sparse is not None]),
        categorical=tuple(columns),
        ids=None,
        parents=join(lambda part: part.parents),
        base_scores=join(lambda part: part.base_scores),
        base=_join([part.base for part in parts if part.base]) if parts[0].base else None,
    )


def _join_rows(parts: Sequence[SparseRows]) -> SparseRows | None:
    if not parts:
        return None
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    values = None
    if any(part.values is not None for part in parts):
        values = np.concatenate(
            [np.ones(len(part.indices)) if part.values is None else part.values for part in parts]
        )
    return SparseRows(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate([part.indices for part in parts]),
        values,
        parts[0].n_columns,
    )


def _join_arrays(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Concatenate arrays; either all workers have one, or none has."""
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if given else None
