"""Forest: all trees of a model as flat arrays, and what can be read from them.

The class is that of the compiled core; ``help(Forest)`` explains its arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow._core import Forest

__all__ = [
    "ARRAYS",
    "Forest",
    "goes_left",
    "importances",
    "surrogates_go_left",
    "tree_rounds",
]

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
    "outside_left": np.uint8,
    "sets": np.int32,
    "lefts": np.int32,
    "values": np.float32,
    "gains": np.float32,
    "weights": np.float32,
    "fractions": np.float32,
    "surrogate_starts": np.int64,
    "surrogate_columns": np.int32,
    "surrogate_offsets": np.int32,
    "surrogate_cuts": np.uint8,
    "surrogate_reversed": np.uint8,
    "surrogate_sets": np.int32,
    "left_sets": np.uint8,
}


def tree_rounds(forest: Forest) -> NDArray[np.int64]:
    """The round that each tree was grown in, from 0, (T,)."""
    return np.repeat(np.arange(forest.n_rounds), np.diff(forest.round_offsets))


def goes_left(
    forest: Forest,
    nodes: NDArray[np.int64],
    bins: NDArray[np.uint8],
    outside: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Whether a position goes to the left child of each of n splits, by its n bins.

    ``outside`` (n,) says where the split looks beyond the ends of the sequence, whatever the bin.
    """
    by_cut = np.where(bins == 0, forest.missing_left[nodes] != 0, bins <= forest.cuts[nodes])
    _look_up(forest, forest.sets[nodes], bins, by_cut)
    return np.where(outside, forest.outside_left[nodes] != 0, by_cut)


def surrogates_go_left(
    forest: Forest, surrogates: NDArray[np.int64], bins: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Whether n bins, none of them 0, go left by n surrogates."""
    is_low = bins <= forest.surrogate_cuts[surrogates]
    goes_left: NDArray[np.bool_] = is_low != (forest.surrogate_reversed[surrogates] != 0)
    _look_up(forest, forest.surrogate_sets[surrogates], bins, goes_left)
    return goes_left


def _look_up(
    forest: Forest,
    sets: NDArray[np.int32],
    bins: NDArray[np.uint8],
    goes_left: NDArray[np.bool_],
) -> None:
    """Overwrite where n bins go by what sets say of them, for those of n sets that are not -1."""
    has_set = sets >= 0
    rows, own = sets[has_set].astype(np.int64), bins[has_set]
    if len(rows):
        goes_left[has_set] = ((forest.left_sets[32 * rows + (own >> 3)] >> (own & 7)) & 1) != 0


def importances(forest: Forest, n_columns: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Gain of the splits at each offset and column: offsets (W,), gains (W, n_columns)."""
    splits = forest.columns >= 0
    offsets = np.unique(np.append(forest.offsets[splits], np.int32(0)))
    rows = np.searchsorted(offsets, forest.offsets[splits])
    gains = np.zeros((len(offsets), n_columns))
    np.add.at(gains, (rows, forest.columns[splits]), forest.gains[splits])
    return offsets, gains
