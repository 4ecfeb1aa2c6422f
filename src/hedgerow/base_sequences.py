"""Base sequences: what a base model sees, checked against what the model on top of it sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hedgerow.counting import count_of
from hedgerow.encode import has_group_column
from hedgerow.sequences import Sequences

__all__ = ["check_no_base", "check_same_positions", "groups_of_base", "of_base"]


def check_no_base(X_base: Any, name: str) -> None:
    """Raise ValueError if there is something to see for a base, which a model does not have.

    ``name`` is that of the estimator.
    """
    if X_base is not None:
        raise ValueError(
            f"X_base is given, but this {name} has no base model that could see it; leave X_base "
            "out, or fit a TreeCRF(base=...)"
        )


def groups_of_base(X: Any, groups: Any, group_column: Any, sequences: Sequences) -> tuple[Any, Any]:
    """How the X of a base is cut into sequences: its groups, and the column that has them.

    As that of the model on top, whose sequences are given. A table may lack the column if that has
    a name.
    """
    is_named = isinstance(group_column, str)
    if groups is None and sequences.flat and is_named and not has_group_column(X, group_column, 0):
        return np.repeat(np.arange(sequences.n_sequences), sequences.lengths), None
    return groups, group_column


@contextmanager
def of_base() -> Iterator[None]:
    """Say of an error that it is about what the base sees."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"in base: {error}") from error


def check_same_positions(seen: Sequences, sequences: Sequences) -> None:
    """Raise ValueError unless a base sees the same positions as the model on top of it."""
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
