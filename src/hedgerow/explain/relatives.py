"""Relatives: the positions whose labels a label depends on directly, in chains and in trees.

In a chain the parent of a position is the one before it, and its child the one after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.trellis import Scores

__all__ = ["Relatives"]


@dataclass(frozen=True, eq=False)
class Relatives:
    """The parent, children and descendants of a position in a sequence.

    Attributes
    ----------
    position : int
        The position.
    parents : (T,)
        Position of the parent of each position, -1 for roots.
    """

    position: int
    parents: NDArray[np.int64]

    @classmethod
    def of(cls, part: Scores, position: int) -> Relatives:
        """The relatives of a position of the only sequence in `part`."""
        parents = np.arange(-1, part.n_positions - 1)
        return cls(position, parents if part.parents is None else part.parents.astype(np.int64))

    @property
    def parent(self) -> int | None:
        """The parent, None for a root."""
        parent = int(self.parents[self.position])
        return None if parent < 0 else parent

    @property
    def children(self) -> list[int]:
        """All children, in order."""
        return self.children_of([self.position])

    def children_of(self, positions: list[int]) -> list[int]:
        """Children of several positions, in order."""
        found: list[int] = np.flatnonzero(np.isin(self.parents, positions)).tolist()
        return found

    @property
    def n_ancestors(self) -> int:
        """Number of ancestors."""
        return len(self.path(self.position, len(self.parents))) - 1

    def path(self, end: int, reach: int) -> list[int]:
        """The path to ``end`` from its ancestor ``reach`` generations above, or from the root."""
        path = [end]
        while len(path) <= reach and (above := int(self.parents[path[-1]])) >= 0:
            path.append(above)
        return path[::-1]

    def generations(self, reach: int) -> list[tuple[int, int]]:
        """The position and its descendants, with the number of generations between them."""
        found, level = [(0, self.position)], [self.position]
        for generation in range(1, reach + 1):
            level = self.children_of(level)
            found += [(generation, position) for position in level]
        return found

    def without_descendants(self) -> NDArray[np.int64]:
        """All positions except the descendants of this one, in order."""
        is_below = np.zeros(len(self.parents), np.bool_)
        level = [self.position]
        while level := self.children_of(level):
            is_below[level] = True
        return np.flatnonzero(~is_below)
