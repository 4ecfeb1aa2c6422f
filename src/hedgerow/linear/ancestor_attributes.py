"""Attributes of ancestors, such as those of the parent of a position, ``word=the[parent]``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.ancestors import ancestor_name, find_ancestors
from hedgerow.sequences import Sequences, SparseRows

__all__ = ["MAX_ANCESTORS", "AncestorAttributes"]

# Maximum number of ancestors whose attributes a position can have.
MAX_ANCESTORS = 255


@dataclass(frozen=True, eq=False)
class AncestorAttributes:
    """Numbers of the attributes that positions get from their ancestors.

    Attributes
    ----------
    numbers : (n, A) int32
        For each of n generations and each attribute, such as ``word=the``, the number of the
        attribute that a position gets if this ancestor has it, such as ``word=the[parent]``; -1 if
        there is none.
    """

    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, index: _core.StringIndex, n: int, *, grow: bool = False) -> AncestorAttributes:
        """The attributes of n generations; if ``grow``, they are added to the index."""
        names, find = index.names(), index.add if grow else index.find
        numbers = np.empty((n, len(names)), np.int32)
        for generation in range(n):
            suffix = f"[{ancestor_name(generation + 1)}]"
            if grow:
                _check_free(names, suffix)
            found = (find(name + suffix) for name in names)
            numbers[generation] = np.fromiter(found, np.int32, len(names))
        return cls(numbers)

    def of_rows(self, rows: SparseRows, sequences: Sequences) -> list[SparseRows]:
        """The attributes that positions get from each generation, given their own attributes."""
        # One more row, without entries, is for ancestors beyond the roots.
        indptr = np.append(rows.indptr, rows.indptr[-1])
        own = SparseRows(indptr, rows.indices, rows.values, rows.n_columns)
        ancestors = find_ancestors(sequences, len(self.numbers))
        return [
            own.select(np.where(above < 0, sequences.n_positions, above)).renumber(numbers)
            for above, numbers in zip(ancestors, self.numbers, strict=True)
        ]


def _check_free(names: list[str], suffix: str) -> None:
    taken = next((name for name in names if name.endswith(suffix)), None)
    if taken is not None:
        raise ValueError(
            f"X has the attribute {taken!r}, a name that is meant for attributes of ancestors; "
            "rename it, or set ancestors=0"
        )
