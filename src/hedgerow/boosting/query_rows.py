"""Query rows: bins of sequences for training or evaluation, to which queries can be added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.relational.facts import Facts
from hedgerow.trees.columns import PRESENT, Binned, Columns

__all__ = ["QueryRows"]


class QueryRows:
    """Where queries hold in the sequences of a training or eval set.

    Parameters
    ----------
    binned
        Bins of the columns so far.
    facts
        The facts in which further queries are found.
    parents : (N,) or None
        Those of `Sequences`.
    n_columns
        Number of columns that have been searched for.
    """

    def __init__(
        self, binned: Binned, facts: Facts, parents: NDArray[np.int32] | None, n_columns: int
    ) -> None:
        self.facts = facts
        self._binned, self._parents = binned, parents
        self._known = np.ones(n_columns, np.bool_)  # columns that have been searched for

    def holding(self, columns: list[int]) -> list[NDArray[np.int32]]:
        """For each of some queries, given by their columns in ascending order: where it holds."""
        indptr, attributes = self._binned.indptr, self._binned.attributes
        assert indptr is not None
        assert attributes is not None
        entries = np.flatnonzero(np.isin(attributes, columns))
        places = np.searchsorted(columns, attributes[entries])
        order = np.argsort(places, kind="stable")
        positions = np.searchsorted(indptr, entries[order], side="right") - 1
        ends = np.cumsum(np.bincount(places, minlength=len(columns))).tolist()
        return [positions[begin:end].astype(np.int32) for begin, end in pairwise([0, *ends])]

    def add(self, found: Iterable[tuple[int, NDArray[np.int32]]]) -> None:
        """Add queries: their columns, and the positions at which each holds."""
        columns, parts = zip(*found, strict=True)
        positions = np.concatenate(parts)
        numbers = np.repeat(np.array(columns, np.int32), list(map(len, parts)))
        self._merge(positions, numbers)
        self._note(columns)

    def lacking(self, columns: NDArray[np.integer[Any]]) -> list[int]:
        """Those columns that have not been searched for."""
        return [c for c in columns.tolist() if c >= len(self._known) or not self._known[c]]

    def to_core(self, columns: Columns, n_threads: int) -> _core.Bins:
        """Bins of all columns, in the format of the kernels."""
        return columns.to_core(self._binned, self._parents, n_threads)

    def _note(self, columns: Iterable[int]) -> None:
        numbers = np.fromiter(columns, np.int64)
        n_more = max(int(numbers.max()) + 1 - len(self._known), 0)
        self._known = np.append(self._known, np.zeros(n_more, np.bool_))
        self._known[numbers] = True

    def _merge(self, positions: NDArray[np.int32], numbers: NDArray[np.int32]) -> None:
        """Add entries; those of a position are in the order of columns."""
        old = self._binned
        assert old.indptr is not None
        assert old.attributes is not None
        assert old.attribute_bins is not None
        counts = np.diff(old.indptr)
        n_keys = 1 + max(old.attributes.max(initial=0), numbers.max(initial=0)).astype(np.int64)
        keys = np.repeat(np.arange(len(counts)), counts) * n_keys + old.attributes
        more = np.sort(positions * n_keys + numbers)
        order = np.argsort(np.concatenate([keys, more]), kind="stable")  # a merge of two runs
        numbers = (more % n_keys).astype(np.int32)
        bins = np.concatenate([old.attribute_bins, np.full(len(more), PRESENT, np.uint8)])
        counts = counts + np.bincount(positions, minlength=len(counts))
        self._binned = replace(
            old,
            indptr=np.concatenate([[0], np.cumsum(counts)]),
            attributes=np.concatenate([old.attributes, numbers])[order],
            attribute_bins=bins[order],
        )
