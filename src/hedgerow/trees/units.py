"""Units: how finely the gradients and curvatures of a tree's examples are rounded."""

from __future__ import annotations

import math

__all__ = ["MANY_POSITIONS", "UNIT_BITS", "count_bits"]

# The gradients of a tree add up to at most 2^30 units, and the curvatures to 2^31: both sums fit
# into one number of 64 bits. For more than `MANY_POSITIONS` positions these units would be too
# coarse: there are then as many units per position as with 2^20 positions, and the sums take two
# numbers.
UNIT_BITS = 30, 31
MANY_POSITIONS = 10_000_000


def count_bits(n_positions: int) -> tuple[int, int]:
    """Numbers g and c: gradients of a tree add up to at most 2^g units, curvatures to 2^c.

    ``n_positions`` are those of all workers.
    """
    more = math.ceil(math.log2(n_positions)) - 20 if n_positions > MANY_POSITIONS else 0
    of_gradients, of_curvatures = UNIT_BITS
    return of_gradients + more, of_curvatures + more
