"""Batches: some consecutive whole sequences of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive whole sequences of a file.

    Attributes
    ----------
    X : sequence
        The sequences, as estimators take them: lists of attributes, or Arrow tables of features.
    y : list of lists, or None
        Their labels, None for one that is not given; None if labels were not asked for.
    rows : object
        What the writer needs to write them again, with more columns.
    known : list of lists, or None
        Labels that are known beforehand, as text, None for an empty cell; None if they were not
        asked for.
    weights : list of float, or None
        How much each sequence counts, where the file says so.
    parents : list of lists, or None
        Heads of the positions, counted from 1 with 0 for a root, where the recipe names a column.
    names : list or None
        Ids of the groups that the sequences of a table are.
    """

    X: Sequence[Any]
    y: list[list[Any]] | None
    rows: Any
    known: list[list[Any]] | None = None
    weights: list[float] | None = None
    parents: list[list[Any]] | None = None
    names: list[Any] | None = None

    @property
    def graph(self) -> dict[str, Any]:
        """What estimators have to know of tree-shaped graphs, as arguments of their methods."""
        return {} if self.parents is None else {"parents": self.parents}

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.X)

    @property
    def n_positions(self) -> int:
        """Number of positions of all sequences."""
        return sum(map(len, self.X if self.y is None else self.y))


def cut(values: list[Value], offsets: Sequence[int]) -> list[list[Value]]:
    """Cut what stands for all positions into sequences."""
    return [values[start:stop] for start, stop in pairwise(offsets)]
