"""Forest: all trees of a model as flat arrays, and functions that read them.

The class is that of the compiled core; ``help(Forest)`` explains its arrays.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._core import Forest

__all__ = [
    "ARRAYS",
    "Forest",
    "asked_columns",
    "goes_left",
    "node_depths",
    "split_rounds",
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
# Those with one entry per node, and per surrogate.
OF_NODES = tuple(ARRAYS)[4 : tuple(ARRAYS).index("fractions")]
OF_SURROGATES = tuple(ARRAYS)[tuple(ARRAYS).index("surrogate_columns") : -1]
SET_BYTES = 32  # of a set of bins, one bit each


def asked_columns(forest: Forest, n_columns: int) -> NDArray[np.int32]:
    """The columns that splits use, among the first ``n_columns``; ascending."""
    asked = np.unique(forest.columns)
    return asked[(asked >= 0) & (asked < n_columns)]


def tree_rounds(forest: Forest) -> NDArray[np.int64]:
    """The round in which each tree was grown, from 0, (T,)."""
    return np.repeat(np.arange(forest.n_rounds), np.diff(forest.round_offsets))


def node_depths(forest: Forest) -> NDArray[np.int64]:
    """Number of splits above each node, by node."""
    depths = np.zeros(len(forest.columns), np.int64)
    firsts = np.repeat(forest.tree_offsets[:-1], np.diff(forest.tree_offsets))
    open_nodes = forest.tree_offsets[:-1]
    while len(open_nodes):
        splits = open_nodes[forest.columns[open_nodes] >= 0]
        lefts = firsts[splits] + forest.lefts[splits]
        depths[lefts] = depths[lefts + 1] = depths[splits] + 1
        open_nodes = np.concatenate([lefts, lefts + 1])
    return depths


def split_rounds(forest: Forest) -> list[Forest]:
    """One forest per round: the inverse of `Forest.join`."""
    arrays = forest.arrays()
    left_sets = arrays["left_sets"].reshape(-1, SET_BYTES)
    found = []
    for first, stop in pairwise(forest.round_offsets.tolist()):
        bounds = forest.tree_offsets[first : stop + 1]
        nodes = slice(int(bounds[0]), int(bounds[-1]))
        part = {name: arrays[name][nodes] for name in (*OF_NODES, "fractions")}
        if not part["fractions"].any():  # only other rounds have any
            part["fractions"] = part["fractions"][:0]
        part |= {name: arrays[name][first:stop] for name in ("outputs", "tree_weights")}
        part |= _surrogates_of(arrays, nodes)
        rows = np.unique(np.concatenate([part["sets"], part["surrogate_sets"]]))
        rows = rows[rows >= 0]
        for name in ("sets", "surrogate_sets"):
            numbers = np.searchsorted(rows, part[name]).astype(np.int32)
            part[name] = np.where(part[name] >= 0, numbers, np.int32(-1))
        part["left_sets"] = left_sets[rows].ravel()
        part["round_offsets"] = np.array([0, stop - first])
        part["tree_offsets"] = bounds - bounds[0]
        found.append(Forest(part, forest.n_outputs))
    return found


def _surrogates_of(arrays: dict[str, NDArray[Any]], nodes: slice) -> dict[str, NDArray[Any]]:
    """Surrogates of some consecutive nodes."""
    starts, own = arrays["surrogate_starts"], slice(0)
    if len(starts):
        starts = starts[nodes.start : nodes.stop + 1]
        starts, own = starts - starts[0], slice(int(starts[0]), int(starts[-1]))
        if own.start == own.stop:  # only other rounds have any
            starts = starts[:0]
    return {"surrogate_starts": starts} | {name: arrays[name][own] for name in OF_SURROGATES}


def goes_left(
    forest: Forest,
    nodes: NDArray[np.int64],
    bins: NDArray[np.uint8],
    outside: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Whether a position goes to the left child of each of n splits, by its n bins.

    ``outside`` (n,) marks splits on positions beyond the ends of the sequence, whatever the bin.
    """
    by_cut = np.where(bins == 0, forest.missing_left[nodes] != 0, bins <= forest.cuts[nodes])
    _look_up(forest, forest.sets[nodes], bins, by_cut)
    return np.where(outside, forest.outside_left[nodes] != 0, by_cut)


def surrogates_go_left(
    forest: Forest, surrogates: NDArray[np.int64], bins: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Whether n bins, none of them 0, go left according to n surrogates."""
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
    """Overwrite the directions of n bins by those of n sets, where these are not -1."""
    has_set = sets >= 0
    rows, own = sets[has_set].astype(np.int64), bins[has_set]
    if len(rows):
        goes_left[has_set] = (
            (forest.left_sets[SET_BYTES * rows + (own >> 3)] >> (own & 7)) & 1
        ) != 0
