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
        The sequences, in a format that estimators accept: lists of attributes, Arrow tables, or
        `hedgerow.relational.Atoms`.
    y : list of lists, or None
        Their labels, with None for a missing one; None if labels were not requested.
    rows : object
        What the writer needs to write the rows with additional columns.
    known : list of lists, or None
        Labels that are already known, as text, with None for an empty cell; None if they were not
        requested.
    weights : list of float, or None
        Weight of each sequence, if the file contains weights.
    parents : list of lists, or None
        Heads of the positions, counted from 1 with 0 for a root, if the recipe names a column.
    names : list or None
        Group ids of the sequences of a table.
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
        """Arguments about tree-shaped graphs for the methods of estimators."""
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
    """Split a list with one entry per position into sequences."""
    return [values[start:stop] for start, stop in pairwise(offsets)]
