"""Exact sums: the same to the last bit in any order, however sequences are divided.

Numbers are rounded to multiples of a power of two that is fixed in advance, from a bound on their
sum. Doubles add up such multiples without rounding. If several workers each have a part of the sum,
the parts are added up as integers, in units of this power of two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import Comm

__all__ = ["ExactTotal", "SumGrid", "count_all", "curvature_grid", "exact_sum", "largest_of_all"]

Vector = NDArray[np.float64]

# The loss of a position is assumed to be below this; larger ones are rounded as usual.
LARGEST_LOSS = 2.0**30
# 2^(SMALLEST - 1) is the smallest number above 0.
SMALLEST = -1073
# Maximum number of losses that are added up, of sequences or of positions.
MOST_TERMS = 2.0**31


@dataclass(frozen=True)
class SumGrid:
    """Multiples of a unit, a power of two.

    Attributes
    ----------
    bound : float
        Upper bound on the sum of absolute values; 0: numbers are not rounded.
    unit : float
        2^-51 times the power of two above the bound, but not less than the smallest double, as in
        ``SumGrid`` of the compiled module.
    """

    bound: float
    unit: float = field(init=False)

    def __post_init__(self) -> None:
        unit = float(np.ldexp(0.5, max(np.frexp(self.bound)[1] - 50, SMALLEST)))
        object.__setattr__(self, "unit", unit)

    def round(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nearest multiples of the unit."""
        if not self.bound > 0:
            return values
        shift = 1.5 * 2.0**52 * self.unit
        return (values + shift) - shift

    def share(self, sums: Vector, comm: Comm) -> Vector:
        """The total of the sums of all workers, which are sums of multiples of the unit."""
        if comm.size == 1 or not self.bound > 0:
            return sums
        units = comm.sum(np.rint(np.asarray(sums) / self.unit).astype(np.int64))
        total: Vector = units * np.float64(self.unit)
        return total


def curvature_grid(bound: float) -> SumGrid:
    """The grid of sums of curvatures, as in the compiled module.

    Curvatures are multiplied by gammas, see `hedgerow.boosting.curvature`, so their sums are larger
    than ``bound``; a factor of 2^20 is left for this.
    """
    return SumGrid(bound * 2.0**20)


class ExactTotal(NamedTuple):
    """A sum in three parts, each a sum of multiples of its own unit."""

    high: float
    middle: float
    low: float = 0.0

    @classmethod
    def of(cls, values: NDArray[np.float64], bound: float) -> ExactTotal:
        """The sum of losses, (n,); ``bound`` is the total weight of all workers' positions."""
        grids = _grids(bound)
        if grids is None:
            return cls(float(values.sum()), 0.0)
        sums, rest = [], values
        for grid in grids:
            rounded = grid.round(rest)
            rest = rest - rounded
            sums.append(float(rounded.sum()))
        return cls(*sums)

    def plus(self, other: ExactTotal) -> ExactTotal:
        """The sum of both."""
        return ExactTotal(*(a + b for a, b in zip(self, other, strict=True)))

    def share(self, bound: float, comm: Comm) -> ExactTotal:
        """The total of all workers."""
        grids = _grids(bound)
        if comm.size == 1 or grids is None:
            return self
        units = np.array([grid.unit for grid in grids])
        counts = comm.sum(np.rint(np.array(self) / units).astype(np.int64))
        return ExactTotal(*(counts * units).tolist())

    @property
    def value(self) -> float:
        """The sum."""
        return self.high + (self.middle + self.low)


@lru_cache(maxsize=8)
def _grids(bound: float) -> list[SumGrid] | None:
    """The grids of the three parts, for up to `MOST_TERMS` losses; None without a bound."""
    if not bound > 0 or not np.isfinite(LARGEST_LOSS * bound):
        return None
    grids = [SumGrid(LARGEST_LOSS * bound)]
    while len(grids) < 3:
        grids.append(SumGrid(grids[-1].unit * MOST_TERMS))
    return grids


def exact_sum(values: NDArray[Any], comm: Comm) -> float:
    """Sum of the numbers of all workers, the same in any order."""
    numbers = np.asarray(values, np.float64)
    largest = largest_of_all(float(np.abs(numbers).max(initial=0.0)), comm)
    grid = SumGrid(largest * count_all(numbers.size, comm))
    if not np.isfinite(grid.bound):
        return float(numbers.sum())
    return float(grid.share(np.array(grid.round(numbers).sum()), comm))


def count_all(count: int, comm: Comm) -> int:
    """Sum of the counts of all workers."""
    return int(comm.sum(np.array([count], np.int64))[0])


def largest_of_all(number: float, comm: Comm) -> float:
    """The largest number of all workers."""
    return float(comm.max(np.array([number]))[0])
