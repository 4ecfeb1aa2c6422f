"""Units: how finely the gradients and curvatures of a tree's examples are rounded."""

from __future__ import annotations

import math

__all__ = ["MANY_POSITIONS", "UNIT_BITS", "count_bits"]

# All gradients of a tree have up to 2^30 units together, and all curvatures 2^31: a sum of both
# fits one number of 64 bits. For more positions these would be too coarse: then a position has as
# many units as with 2^20 of them, and sums take two numbers.
UNIT_BITS = 30, 31
MANY_POSITIONS = 10_000_000


def count_bits(n_positions: int) -> tuple[int, int]:
    """How many units all gradients of a tree have together at most, and all curvatures: 2^n.

    The positions are those of all workers.
    """
    more = math.ceil(math.log2(n_positions)) - 20 if n_positions > MANY_POSITIONS else 0
    of_gradients, of_curvatures = UNIT_BITS
    return of_gradients + more, of_curvatures + more
