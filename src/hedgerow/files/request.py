"""Requests: what to read from a file."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.files.errors import Path
from hedgerow.files.recipe import Recipe
from hedgerow.files.source import Source


@dataclass(frozen=True, eq=False)
class Request:
    """What to read from a file.

    Attributes
    ----------
    source : Source
        Its bytes.
    recipe : Recipe
        How it is read.
    labels : bool
        Whether to read its labels.
    known : int, str or None
        A column of labels that are already known.
    n_positions : int
        Approximate number of positions in a batch.
    keeps_all : bool
        Whether all batches are kept in memory, and so should be compact; False when streaming.
    may_lack_groups : bool
        Whether a table without its group column is accepted, and read as one sequence.
    """

    source: Source
    recipe: Recipe
    labels: bool
    known: int | str | None
    n_positions: int
    keeps_all: bool
    may_lack_groups: bool = False

    @property
    def path(self) -> Path:
        """The file name as it was given."""
        return self.source.path
