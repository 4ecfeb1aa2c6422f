"""Fitted estimators: reading the arguments of all methods except `fit`."""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from hedgerow.counting import count_of
from hedgerow.encode import GivenParents, has_group_column
from hedgerow.encode.parents import ParentsFormat
from hedgerow.labels import Truth, read_labels, read_truth
from hedgerow.model import Inputs, Model
from hedgerow.raw_data import RawData
from hedgerow.seen_groups import SeenGroups, is_scoring
from hedgerow.sequences import Sequences
from hedgerow.threads import count_threads

__all__ = [
    "FittedEstimator",
    "check_fitted",
    "compare_codes",
    "read_codes",
    "read_inputs",
    "read_one",
]


class FittedEstimator(Protocol):
    """The model of an estimator, and its parameters that say how arguments are read."""

    group_column: str | int | None
    parents_column: str | int | None
    parents_format: ParentsFormat
    missing_label: Any
    n_jobs: int | None
    model_: Model
    seen_groups_: SeenGroups | None


def check_fitted(crf: object, message: str | None = None) -> None:
    """Raise NotFittedError, with the usual message or another one, unless the model is fitted."""
    if not hasattr(crf, "model_"):
        raise NotFittedError(
            message or f"this {type(crf).__name__} is not fitted yet; call fit before using it"
        )


def read_inputs(crf: FittedEstimator, raw: RawData, known: Any = None) -> Inputs:
    """Read X, all that comes with it except y, and ``known``, the labels that are known already."""
    check_fitted(crf)
    sequences = crf.model_.read(
        raw,
        group_column=crf.group_column,
        parents=_given_parents(crf, raw),
        name=type(crf).__name__,
        n_threads=count_threads(crf.n_jobs),
    )
    if (seen := crf.seen_groups_) is not None:
        seen.warn_of_missing_groups(sequences, raw.groups)
        if is_scoring():
            seen.warn_of_torn(sequences, "X")
    if known is None:
        return Inputs(sequences)
    return Inputs(sequences, read_codes(crf, known, sequences, "known"))


def _given_parents(crf: FittedEstimator, raw: RawData) -> GivenParents:
    return GivenParents(raw.parents, crf.parents_column, crf.parents_format)


def read_codes(
    crf: FittedEstimator, y: Any, sequences: Sequences, name: str = "y"
) -> NDArray[np.int32]:
    """Codes of labels, (N,), -1 where they are missing."""
    column = read_labels(y, sequences, name=name, missing_label=crf.missing_label)
    return crf.model_.labels.encode(column, sequences, name)


def compare_codes(crf: FittedEstimator, y: Any, sequences: Sequences) -> Truth:
    """Labels to compare predictions with; warns about labels that the model does not know."""
    column = read_labels(y, sequences, missing_label=crf.missing_label)
    return read_truth(crf.model_.labels, column, sequences)


def read_one(crf: FittedEstimator, raw: RawData, known: Any = None) -> Inputs:
    """Read one sequence, which is not in a list, and need not have a column of group ids."""
    check_fitted(crf)
    reader = _without_group_column(crf, raw.X, raw.parents)
    carries_group = reader is crf and crf.group_column is not None
    try:
        inputs = read_inputs(reader, raw.in_lists(), None if known is None else [known])
    except (TypeError, ValueError):
        sequences = _read_if_possible(crf, raw)
        if sequences is None or sequences.flat:
            raise
    else:
        # A table with a group column may contain several sequences.
        sequences = _read_if_possible(crf, raw) if carries_group else None
        if sequences is None or sequences.n_sequences == 1:
            return inputs
    n_sequences = count_of(sequences.n_sequences, "sequence")
    raise ValueError(
        f"x contains {n_sequences}, by its group ids; expected the rows of a single one"
        if sequences.flat
        else f"x is a list of {n_sequences}; expected the sequence itself, such as X[0]"
    )


def _without_group_column(crf: FittedEstimator, x: Any, parents: Any) -> FittedEstimator:
    """The same estimator if the sequence has group ids, otherwise one that needs none."""
    column, parents_column = crf.group_column, crf.parents_column
    carries_parents = isinstance(parents_column, int) and parents is None
    n_others = crf.model_.schema.n_features + carries_parents
    if column is None or has_group_column(x, column, n_others):
        return crf
    if isinstance(column, int) and isinstance(parents_column, int) and 0 <= column < parents_column:
        parents_column -= 1  # columns are numbered without the one of group ids
    reader = copy(crf)
    reader.group_column, reader.parents_column = None, parents_column
    return reader


def _read_if_possible(crf: FittedEstimator, raw: RawData) -> Sequences | None:
    """X as sequences, if it can be read."""
    try:
        return crf.model_.encode(
            raw,
            group_column=crf.group_column,
            parents=_given_parents(crf, raw),
            name=type(crf).__name__,
        )
    except (TypeError, ValueError):
        return None
