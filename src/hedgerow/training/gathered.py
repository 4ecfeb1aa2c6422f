"""Gathered sequences: some of every worker, put together for a small training on one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE
from hedgerow.encode import join_categories
from hedgerow.sequences import Categorical, Sequences, SparseRows
from hedgerow.training.labelled import Labelled

__all__ = ["gather_labelled"]


def gather_labelled(labelled: Labelled) -> Labelled:
    """The sequences of all workers, by rank, on every worker, as those of one worker alone.

    Columns and labels must be the same on all of them already; there is no base model.
    """
    if labelled.comm.size == 1:
        return labelled
    own = labelled.sequences, labelled.codes, labelled.sequence_weights, labelled.position_weights
    sequences, codes, by_sequence, by_position = zip(*labelled.comm.gather(own), strict=True)
    return replace(
        labelled,
        sequences=_join_sequences(sequences),
        codes=np.concatenate(codes),
        sequence_weights=_join(by_sequence),
        position_weights=_join(by_position),
        comm=ALONE,
    )


def _join_sequences(parts: Sequence[Sequences]) -> Sequences:
    columns = (part.categorical for part in parts)
    return replace(
        parts[0],
        offsets=_to_offsets(part.lengths for part in parts),
        dense=_join([part.dense for part in parts]),
        sparse=_join_rows([part.sparse for part in parts if part.sparse is not None]),
        categorical=tuple(map(_join_columns, zip(*columns, strict=True))),
        ids=None,
        parents=_join([part.parents for part in parts]),
        base_scores=_join([part.base_scores for part in parts]),
    )


def _join_rows(parts: Sequence[SparseRows]) -> SparseRows | None:
    if not parts:
        return None
    have_values = any(part.values is not None for part in parts)
    return SparseRows(
        _to_offsets(np.diff(part.indptr) for part in parts),
        np.concatenate([part.indices for part in parts]),
        np.concatenate(list(map(_values, parts))) if have_values else None,
        parts[0].n_columns,
    )


def _values(rows: SparseRows) -> NDArray[np.float64]:
    return np.ones(len(rows.indices)) if rows.values is None else rows.values


def _join_columns(parts: Sequence[Categorical]) -> Categorical:
    joined = [join_categories(part, parts) for part in parts]
    return replace(joined[0], codes=np.concatenate([part.codes for part in joined]))


def _to_offsets(lengths: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.cumsum(np.concatenate([[0], *lengths])).astype(np.int64)


def _join(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """All arrays one after the other; None if there are none."""
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if given else None
