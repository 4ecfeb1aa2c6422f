"""Requests: what is asked of a file that is being read."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.files.errors import Path
from hedgerow.files.recipe import Recipe
from hedgerow.files.source import Source


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked of a file.

    Attributes
    ----------
    source : Source
        Its bytes.
    recipe : Recipe
        How it is read.
    labels : bool
        Whether its labels are wanted.
    known : int, str or None
        A column of labels that are known beforehand.
    n_positions : int
        About how many positions there should be in a batch.
    keeps_all : bool
        Whether all batches are kept, as small as they can be; not in a stream.
    may_lack_groups : bool
        Whether a table without its group column is read, as one sequence.
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
        """The file, as it was named."""
        return self.source.path
