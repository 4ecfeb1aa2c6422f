"""Facts about positions: a database, and the indices of the positions in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.relational.database import Database, Ids

__all__ = ["Facts"]


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about N positions, some or all of those of a database.

    If some sequences are held out, or a long one is divided, the facts about other positions remain
    available: queries hold where they held before.

    Attributes
    ----------
    database : Database
        The facts.
    places : (N,) int64 or None
        Index of each position in the database, ascending; None: all of them, in order.
    """

    database: Database
    places: NDArray[np.int64] | None = None

    @property
    def n_positions(self) -> int:
        """Number of positions, N."""
        return self.database.n_positions if self.places is None else len(self.places)

    def select(self, positions: NDArray[np.int64]) -> Facts:
        """The facts of some positions."""
        return Facts(self.database, positions if self.places is None else self.places[positions])

    def to_places(self, positions: Ids) -> Ids:
        """Indices of positions in the database."""
        return positions if self.places is None else self.places[positions].astype(np.int32)

    def find_positions(self, places: Ids) -> Ids:
        """Positions at indices of the database; -1 for those that are not among them."""
        if self.places is None:
            return places
        found = np.searchsorted(self.places, places)
        known = np.append(self.places, -1)[found] == places
        return np.where(known, found, -1).astype(np.int32)
