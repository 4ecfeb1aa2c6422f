"""Suffix tree: which label patterns are suffixes of others, and steps that take this into account.

Where the pattern "t h e" ends, "h e" does too: steps in the weights of both change the score there
by their sum. The patterns that end at a position form a path in this tree, from the longest to a
pair, so the best step in all weights together is found in time linear in their number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels import Patterns

__all__ = ["SuffixTree"]

Vector = NDArray[np.float64]


class SuffixTree:
    """The suffix tree of P label patterns.

    Attributes
    ----------
    parents : (P,) int64
        The longest other pattern that is a suffix of each one, -1 if there is none.

    Examples
    --------
    >>> tree = SuffixTree(Patterns.of([(0, 1), (1, 1), (0, 0, 1)]))
    >>> tree.parents.tolist()
    [-1, -1, 0]
    >>> tree.own(np.array([5.0, 2.0, 4.0])).tolist()  # four of the five 0 1 follow a 0
    [1.0, 2.0, 4.0]
    """

    def __init__(self, patterns: Patterns) -> None:
        self.parents = patterns.suffixes()
        self._has_parents = bool((self.parents >= 0).any())
        lengths = patterns.lengths
        self._levels = [np.flatnonzero(lengths == n) for n in range(patterns.longest, 1, -1)]

    def own(self, totals: Vector) -> Vector:
        """Totals over the positions where each pattern is the longest that ends there, (P,).

        ``totals`` (P,) are over all positions where each pattern ends.
        """
        return totals - self._add_up(np.arange(len(totals)), totals)

    def increments(self, moves: Vector) -> Vector:
        """Steps of the weights that change scores by these moves, (P,): move minus parent's move.

        A move is the sum of the steps of a pattern and of all its suffixes.
        """
        steps: Vector = moves - np.append(moves, 0.0)[self.parents]
        return steps

    def solve(self, slopes: Vector, curvatures: Vector, resistances: Vector) -> Vector:
        """The moves D, (P,), that minimise a parabola in the steps d = increments(D).

            sum_p slopes_p d_p + curvatures_p D_p^2 / 2 + resistances_p d_p^2 / 2

        Patterns with neither curvature nor resistance take no step.
        """
        # Given its parent's move, the best one of a leaf is (resistance * parent's - slope) /
        # (curvature + resistance); what remains has the same form in the parent, and so on up to
        # the root.
        slopes, curvatures = self.own(slopes), curvatures.copy()
        divisors = np.empty_like(curvatures)
        for level in self._levels:
            divisors[level] = curvatures[level] + resistances[level]
            passed_on = np.divide(
                resistances[level],
                divisors[level],
                out=np.zeros(len(level)),
                where=divisors[level] > 0,
            )
            curvatures += self._add_up(level, curvatures[level] * passed_on)
            slopes += self._add_up(level, slopes[level] * passed_on)
        moves = np.zeros(len(slopes) + 1)  # the last one is the root's
        for level in reversed(self._levels):
            above = moves[self.parents[level]]
            moves[level] = np.divide(
                resistances[level] * above - slopes[level],
                divisors[level],
                out=above.copy(),
                where=divisors[level] > 0,
            )
        return moves[:-1]

    def _add_up(self, children: NDArray[np.intp], values: Vector) -> Vector:
        """Sums of the values of some patterns, by parent, (P,)."""
        if not self._has_parents:  # as in first-order chains
            return np.zeros(len(self.parents))
        parents = self.parents[children]
        inner = parents >= 0
        sums = np.bincount(parents[inner], values[inner], len(self.parents))
        return sums.astype(np.float64, copy=False)
