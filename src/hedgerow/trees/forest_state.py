"""State: a forest taken apart for its file, and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.state import State, expecting, read_array, read_weights, require
from hedgerow.trees.forest import ARRAYS, Forest

__all__ = ["pack_forest", "unpack_forest"]

# What formats before 5 do not have: each round had a tree for every output, in order, and all
# trees counted alike.
NEW_IN_5 = ("round_offsets", "outputs", "tree_weights")


def pack_forest(forest: Forest, name: str = "trees") -> dict[str, NDArray[Any]]:
    """All arrays of the trees."""
    return {f"{name}.{key}": array for key, array in forest.arrays().items()}


def unpack_forest(state: State, n_outputs: int, n_columns: int, name: str = "trees") -> Forest:
    """Read what `pack_forest` wrote; raises ModelFileError unless the arrays make up trees."""
    is_old = state.metadata.get("format", 5) < 5
    arrays = {
        key: read_array(state, f"{name}.{key}", kind)
        for key, kind in ARRAYS.items()
        if not (is_old and key in NEW_IN_5)
    }
    n_trees = len(arrays["tree_offsets"]) - 1
    if is_old:
        require(n_trees >= 0 and n_trees % n_outputs == 0, "a round lacks a tree")
        arrays["round_offsets"] = np.arange(0, n_trees + 1, n_outputs, dtype=np.int64)
        arrays["outputs"] = np.arange(n_trees, dtype=np.int32) % np.int32(n_outputs)
        arrays["tree_weights"] = np.ones(n_trees)
    else:
        read_weights(state, f"{name}.tree_weights", (max(n_trees, 0),))
    with expecting():
        return Forest(arrays, n_outputs, n_columns)
