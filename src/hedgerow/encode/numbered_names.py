"""Numbered names: sequences of attribute names that are stored as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.encode.items import read_items, renumber_items
from hedgerow.lazy import LazyAttributes, lazy
from hedgerow.sequences import Sequences, SparseRows

Names = list[tuple[str, ...]]


class NumberedNames(Sequence[Names], LazyAttributes):
    """A list of sequences, each a list of the attribute names of its positions.

    It takes a fraction of the memory of a real list of strings and tuples.

    Parameters
    ----------
    sequences : list of lists
        The attribute names of each position.
    after : NumberedNames, optional
        Sequences that come before these and will be joined with them: names are stored once.

    Examples
    --------
    >>> names = NumberedNames([[["a", "b"], ["a"]], [["c"]]])
    >>> list(names)
    [[('a', 'b'), ('a',)], [('c',)]]
    """

    def __init__(self, sequences: list[Any], after: NumberedNames | None = None) -> None:
        self._index: _core.StringIndex = _core.StringIndex() if after is None else after._index
        self._items = read_items(sequences, self._index, grow=True)

    @classmethod
    def from_numbers(
        cls,
        names: list[str],
        offsets: NDArray[np.int64],
        indptr: NDArray[np.int64],
        numbers: NDArray[np.int32],
    ) -> NumberedNames:
        """Names that are already numbered.

        Parameters
        ----------
        names : list of str
            Distinct names, by number.
        offsets : (S + 1,) int64
            Bounds of the sequences, as numbers of positions.
        indptr : (N + 1,) int64
            Bounds of the numbers of each position.
        numbers : int32
            Numbers of the names of the first position, then of the next, and so on.
        """
        made = cls([])
        for name in names:
            made._index.add(name)
        rows = SparseRows(indptr, numbers, None, len(names))
        made._items = replace(made._items, offsets=offsets, sparse=rows)
        return made

    @classmethod
    def joined(cls, parts: Sequence[NumberedNames]) -> NumberedNames:
        """The sequences of all parts, each created with the previous one as `after`."""
        joined = cls([], parts[0])
        rows = [part._rows for part in parts]
        joined._items = Sequences(
            _join_offsets([part._items.offsets for part in parts]),
            joined._items.schema,
            None,
            SparseRows(
                _join_offsets([part.indptr for part in rows]),
                np.concatenate([part.indices for part in rows]),
                None,
                len(joined._index),
            ),
            (),
            flat=False,
        )
        return joined

    def numbered_by(self, index: _core.StringIndex, grow: bool) -> Sequences:
        """The sequences, numbered by another index.

        Names that `index` does not have are added to it if `grow`, otherwise dropped.
        """
        return renumber_items(self._items, self._index, index, grow)

    def __len__(self) -> int:
        return len(self._items.offsets) - 1

    @overload
    def __getitem__(self, which: int) -> Names: ...
    @overload
    def __getitem__(self, which: slice) -> list[Names]: ...
    def __getitem__(self, which: int | slice) -> Names | list[Names]:
        if isinstance(which, slice):
            return [self[number] for number in range(len(self))[which]]
        number = range(len(self))[which]
        first, last = self._items.offsets[number : number + 2].tolist()
        rows = self._rows.part(first, last)
        names = [self._names[attribute] for attribute in rows.indices.tolist()]
        return [tuple(names[start:stop]) for start, stop in pairwise(rows.indptr.tolist())]

    @lazy
    def _names(self) -> list[str]:
        return self._index.names()

    @property
    def _rows(self) -> SparseRows:
        assert self._items.sparse is not None
        return self._items.sparse


def _join_offsets(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    lengths = np.concatenate([np.diff(part) for part in parts])
    return np.concatenate([[0], np.cumsum(lengths)])
