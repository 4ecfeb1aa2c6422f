"""State: a forest taken apart for its file, and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.persist import State, read_array, require
from hedgerow.trees.forest import NODE_ARRAYS, Forest

__all__ = ["pack_forest", "unpack_forest"]


def pack_forest(forest: Forest, name: str = "trees") -> dict[str, NDArray[Any]]:
    """All arrays of the trees."""
    arrays = {key: getattr(forest, key) for key in NODE_ARRAYS}
    arrays |= {"tree_offsets": forest.tree_offsets, "left_sets": forest.left_sets}
    return {f"{name}.{key}": array for key, array in arrays.items()}


def unpack_forest(state: State, n_labels: int, name: str = "trees") -> Forest:
    """Read what `pack_forest` wrote; raises ModelFileError unless the arrays fit together.

    Whether they make up trees is checked by `Forest.walker`.
    """
    arrays = {key: read_array(state, f"{name}.{key}", kind) for key, kind in NODE_ARRAYS.items()}
    tree_offsets = read_array(state, f"{name}.tree_offsets", np.int64)
    require(len(tree_offsets) and (len(tree_offsets) - 1) % n_labels == 0, "a round lacks a tree")
    n_nodes = len(arrays["columns"])
    require(all(len(array) == n_nodes for array in arrays.values()), "a tree lacks a node")
    require((arrays["columns"] >= -1).all(), "a tree has a column below -1")
    figures = np.concatenate([arrays["values"], arrays["gains"], arrays["weights"]])
    require(np.isfinite(figures).all(), "a tree has a value that is not finite")
    left_sets = read_array(state, f"{name}.left_sets", np.uint8)
    return Forest(n_labels, tree_offsets, left_sets=left_sets, **arrays)
