"""Forest: all trees of a model as flat arrays, and what can be read from them.

The class is that of the compiled core; ``help(Forest)`` explains its arrays.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow._core import Forest

__all__ = ["ARRAYS", "Forest", "goes_left", "importances", "split_rounds", "tree_rounds"]

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
OF_NODES = tuple(ARRAYS)[4:-1]  # those with an entry for each node
SET_BYTES = 32  # of a set of bins, a bit each


def tree_rounds(forest: Forest) -> NDArray[np.int64]:
    """The round that each tree was grown in, from 0, (T,)."""
    return np.repeat(np.arange(forest.n_rounds), np.diff(forest.round_offsets))


def split_rounds(forest: Forest) -> list[Forest]:
    """A forest for each round: the opposite of `Forest.join`."""
    arrays = forest.arrays()
    left_sets = arrays["left_sets"].reshape(-1, SET_BYTES)
    found = []
    for first, stop in pairwise(forest.round_offsets.tolist()):
        bounds = forest.tree_offsets[first : stop + 1]
        nodes = slice(int(bounds[0]), int(bounds[-1]))
        part = {name: arrays[name][nodes] for name in OF_NODES}
        part |= {name: arrays[name][first:stop] for name in ("outputs", "tree_weights")}
        has_set = part["sets"] >= 0
        rows, part["sets"] = part["sets"][has_set], part["sets"].copy()
        part["sets"][has_set] = np.arange(len(rows))
        part["left_sets"] = left_sets[rows].ravel()
        part["round_offsets"] = np.array([0, stop - first])
        part["tree_offsets"] = bounds - bounds[0]
        found.append(Forest(part, forest.n_outputs))
    return found


def goes_left(
    forest: Forest, nodes: NDArray[np.int64], bins: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Whether a position goes to the left child of each of n splits, by its n bins."""
    by_cut = np.where(bins == 0, forest.missing_left[nodes] != 0, bins <= forest.cuts[nodes])
    rows = forest.sets[nodes].astype(np.int64)
    has_set = rows >= 0
    if has_set.any():
        bits = forest.left_sets[SET_BYTES * rows[has_set] + (bins[has_set] >> 3)] >> (
            bins[has_set] & 7
        )
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
