"""Base sequences: the features of a base model, checked against those of the model on top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.counting import count_of
from hedgerow.encode import GivenParents, has_group_column
from hedgerow.raw_data import RawData
from hedgerow.sequences import Sequences

__all__ = ["check_no_base", "check_same_positions", "data_of_base", "of_base"]


def check_no_base(X_base: Any, name: str) -> None:
    """Raise ValueError if there are features for a base, but the model has none.

    ``name`` is that of the estimator.
    """
    if X_base is not None:
        raise ValueError(
            f"X_base is given, but this {name} has no base model that uses it; leave X_base out, "
            "or fit a TreeCRF(base=...)"
        )


def data_of_base(
    raw: RawData, sequences: Sequences, group_column: Any, parents: GivenParents
) -> tuple[RawData, Any]:
    """The raw data of a base, and the column with the groups.

    The sequences and parents are those of the model on top. A table for the base need not have
    columns for these, if the columns are given by name.
    """
    if raw.X_base is None:
        return raw, group_column
    X, raw = raw.X_base, replace(raw, X=raw.X_base, X_base=None)
    if raw.groups is None and sequences.flat and _lacks(X, group_column):
        groups = np.repeat(np.arange(sequences.n_sequences), sequences.lengths)
        raw, group_column = replace(raw, groups=groups), None
    if raw.parents is None and sequences.schema.has_parents and _lacks(X, parents.column):
        raw = replace(raw, parents=parents.write(sequences))
    return raw, group_column


def _lacks(X: Any, column: Any) -> bool:
    """Whether the first table of X has no column, or the first dict no key, of this name."""
    while isinstance(X, list | tuple) and X:
        X = X[0]
    if isinstance(X, Mapping):
        return column not in X
    return isinstance(column, str) and not has_group_column(X, column, 0)


@contextmanager
def of_base(X_base: Any, advice: str = "") -> Iterator[None]:
    """Mark an error as one about the features of the base, and append advice."""
    where = "in the base model"
    if X_base is not None:
        where += ", where X is the argument X_base"
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}{advice}") from error


def check_same_positions(seen: Sequences, sequences: Sequences) -> None:
    """Raise ValueError unless a base has the same positions as the model on top of it."""
    if seen.n_sequences != sequences.n_sequences:
        raise ValueError(
            f"X_base has {count_of(seen.n_sequences, 'sequence')} but X has "
            f"{sequences.n_sequences}; pass the same sequences, with the features of the base"
        )
    differ = seen.lengths != sequences.lengths
    if differ.any():
        number = int(differ.argmax())
        raise ValueError(
            f"sequence {number} of X_base has {count_of(int(seen.lengths[number]), 'position')} "
            f"but that of X has {sequences.lengths[number]}; pass the same positions, with the "
            "features of the base"
        )
