"""Forest: all trees of a model as flat arrays, and what can be read from them.

The class is that of the compiled core; ``help(Forest)`` explains its arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow._core import Forest

__all__ = ["ARRAYS", "Forest", "goes_left", "importances", "tree_rounds"]

# All arrays of a forest.
ARRAYS: dict[str, type[np.generic]] = {
    "round_offsets": np.int64,
    "tree_offsets": np.int64,
    "outputs": np.int32,
    "tree_weights": np.float64,
    "columns": np.int32,
    "offsets": np.int32,
    "cuts": np.uint8,
    "missing_left": np.uint8,
    "sets": np.int32,
    "lefts": np.int32,
    "values": np.float32,
    "gains": np.float32,
    "weights": np.float32,
    "left_sets": np.uint8,
}


def tree_rounds(forest: Forest) -> NDArray[np.int64]:
    """The round that each tree was grown in, from 0, (T,)."""
    return np.repeat(np.arange(forest.n_rounds), np.diff(forest.round_offsets))


def goes_left(
    forest: Forest, nodes: NDArray[np.int64], bins: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Whether a position goes to the left child of each of n splits, by its n bins."""
    by_cut = np.where(bins == 0, forest.missing_left[nodes] != 0, bins <= forest.cuts[nodes])
    rows = forest.sets[nodes].astype(np.int64)
    has_set = rows >= 0
    if has_set.any():
        bits = forest.left_sets[32 * rows[has_set] + (bins[has_set] >> 3)] >> (bins[has_set] & 7)
        by_cut[has_set] = (bits & 1) != 0
    return by_cut


def importances(forest: Forest, n_columns: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Gain of the splits at each offset and column: offsets (W,), gains (W, n_columns)."""
    splits = forest.columns >= 0
    offsets = np.unique(np.append(forest.offsets[splits], np.int32(0)))
    rows = np.searchsorted(offsets, forest.offsets[splits])
    gains = np.zeros((len(offsets), n_columns))
    np.add.at(gains, (rows, forest.columns[splits]), forest.gains[splits])
    return offsets, gains
