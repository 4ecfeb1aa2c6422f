"""Suffix tree: which label pattern is the end of which other, and steps that respect it.

Where the pattern "t h e" ends, "h e" does too: a step in the weights of both moves the score there
by their sum. At each position the patterns that end there are a path of this tree, from the longest
down to a pair, so that the best step in all weights together is found in time linear in their
number.
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
        The longest other pattern that each one ends with, -1 if there is none.

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
        lengths = patterns.lengths
        self._levels = [np.flatnonzero(lengths == n) for n in range(patterns.longest, 1, -1)]

    def own(self, totals: Vector) -> Vector:
        """Of totals over all places where a pattern ends, those where no longer one does, (P,)."""
        return totals - self._add_up(np.arange(len(totals)), totals)

    def increments(self, moves: Vector) -> Vector:
        """The steps in the weights by which scores move so far: each move less its parent's."""
        steps: Vector = moves - np.append(moves, 0.0)[self.parents]
        return steps

    def solve(self, slopes: Vector, curvatures: Vector, resistances: Vector) -> Vector:
        """The moves D, (P,), that minimise a parabola in the steps d = increments(D).

            sum_p slopes_p d_p + curvatures_p D_p^2 / 2 + resistances_p d_p^2 / 2

        Patterns with neither curvature nor resistance take no step.
        """
        # Given its parent's move, the best one of a leaf is
        #     (resistance * parent's - slope) / (curvature + resistance);
        # what remains is of the same form in the parent, and so on up to the root.
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
        """Sums of the values of some patterns, for their parents, (P,)."""
        parents = self.parents[children]
        inner = parents >= 0
        sums = np.bincount(parents[inner], values[inner], len(self.parents))
        return sums.astype(np.float64, copy=False)
