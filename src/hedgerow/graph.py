"""Graph: which position comes before which, in chains and in tree-shaped graphs.

Sequences are chains, or forests of rooted trees: ``parents`` (N,) int32 are then the indices of the
parents in their sequences, -1 for a root; None means chains, in which the parent is the previous
position. ``offsets`` (S + 1,) are the bounds of the sequences.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["find_leaves", "find_roots", "leaves_first", "positions_before"]


def find_roots(offsets: NDArray[np.int64], parents: NDArray[np.int32] | None) -> NDArray[np.intp]:
    """Positions without a parent, in order: the first ones of chains."""
    if parents is None:
        return offsets[:-1][offsets[1:] > offsets[:-1]]
    return np.flatnonzero(parents < 0)


def find_leaves(offsets: NDArray[np.int64], parents: NDArray[np.int32] | None) -> NDArray[np.intp]:
    """Positions without children, in order: the last ones of chains."""
    if parents is None:
        return offsets[1:][offsets[1:] > offsets[:-1]] - 1
    is_leaf = np.ones(len(parents), np.bool_)
    before = positions_before(offsets, parents)
    is_leaf[before[before >= 0]] = False
    return np.flatnonzero(is_leaf)


def positions_before(
    offsets: NDArray[np.int64], parents: NDArray[np.int32] | None
) -> NDArray[np.int64]:
    """Index of each position's parent among all positions, (N,), -1 for roots."""
    if parents is None:
        before = np.arange(-1, int(offsets[-1]) - 1)
        before[find_roots(offsets, None)] = -1
        return before
    begins = np.repeat(offsets[:-1], np.diff(offsets))
    return np.where(parents < 0, -1, parents + begins)


def leaves_first(before: NDArray[np.int64]) -> NDArray[np.intp]:
    """All positions, (N,), children before their parents; ``before`` is `positions_before`."""
    depths, ancestors = np.zeros(len(before), np.int64), before
    # Pointer doubling: after i steps, depths are those below ancestors 2^i generations away.
    depths[before >= 0] = 1
    while (ancestors >= 0).any():
        known = ancestors >= 0
        depths[known] += depths[ancestors[known]]
        ancestors = np.where(known, ancestors[ancestors], -1)
    return np.argsort(-depths, kind="stable")
