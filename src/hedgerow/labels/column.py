"""Label columns: the labels of all positions, and which of them are missing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.counting import count_of
from hedgerow.exact_sums import count_all
from hedgerow.sequences import Sequences


class Family(IntEnum):
    """Kinds of values: the first three can be labels; all labels of a model are of one kind."""

    TEXT = 0
    BOOL = 1
    INTEGER = 2
    FLOAT = 3
    MISSING = 4
    OTHER = 5


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """The labels of N positions.

    Attributes
    ----------
    values : (N,) array
        Of string, integer or bool dtype, or Python strings in an array of objects. The values at
        missing positions are arbitrary.
    missing : (N,) bool or None
        True where the label is missing; None if every position has one.
    mark : object
        The user's value at the first missing position, for messages.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None = None
    mark: Any = None

    def require_any(self, comm: Comm = ALONE) -> None:
        """Raise ValueError if every label of all workers is missing."""
        n_labels = len(self.values)
        n_missing = 0 if self.missing is None else int(np.sum(self.missing))
        n_known = count_all(n_labels - n_missing, comm)
        if n_labels and not n_known:
            raise ValueError(
                f"y has no label at any of its {count_of(n_labels, 'position')}: all are missing "
                f"({self.mark}); training needs at least one label"
            )

    def require_all(self, sequences: Sequences, what: str) -> None:
        """Raise ValueError if a label is missing; `what` is the setting that needs all labels."""
        if self.missing is not None:
            where = place(sequences, int(self.missing.argmax()))
            raise ValueError(
                f"{what} needs all labels, but {where} is missing ({self.mark}); fill it in, or do "
                f"not use {what}"
            )


def place(sequences: Sequences, position: int, name: str = "y") -> str:
    """Name a position as the user would index it: ``y[3]`` if X is flat, otherwise ``y[0][3]``."""
    if sequences.flat:
        return f"{name}[{position}]"
    sequence, within = sequences.locate(position)
    return f"{name}[{sequence}][{within}]"


def family_of_type(cls: type) -> Family:
    """Kind of the values of a Python or NumPy scalar type."""
    if issubclass(cls, str):
        return Family.TEXT
    if issubclass(cls, bool | np.bool_):
        return Family.BOOL
    if issubclass(cls, int | np.integer):
        return Family.INTEGER
    return Family.FLOAT if issubclass(cls, float | np.floating) else Family.OTHER


def family_of_dtype(dtype: np.dtype[Any]) -> Family:
    """Kind of the values of an array; Python objects in a column or in classes are strings."""
    kinds = {"U": Family.TEXT, "O": Family.TEXT, "b": Family.BOOL, "f": Family.FLOAT}
    if dtype.kind in "iu":
        return Family.INTEGER
    return kinds.get(dtype.kind, Family.OTHER)
