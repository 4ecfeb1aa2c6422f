"""State: a forest in a model file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.state import State, expecting, read_array, read_weights, require
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import ARRAYS, Forest

__all__ = ["pack_forest", "unpack_forest"]

# Not in formats before 5: each round had one tree for every output, in order, and all trees had the
# same weight.
NEW_IN_5 = ("round_offsets", "outputs", "tree_weights")
# Before format 6, positions beyond the ends of a sequence went where missing values go.
NEW_IN_6 = ("outside_left",)
# These are in a file only if they are used.
OPTIONAL = tuple(name for name in ARRAYS if name.startswith(("fractions", "surrogate_")))


def pack_forest(forest: Forest, name: str = "trees") -> dict[str, NDArray[Any]]:
    """All arrays of the trees."""
    return {
        f"{name}.{key}": array
        for key, array in forest.arrays().items()
        if len(array) or key not in OPTIONAL
    }


def unpack_forest(state: State, n_outputs: int, columns: Columns, name: str = "trees") -> Forest:
    """Read the output of `pack_forest`, for trees on these columns.

    Raises ModelFileError unless the arrays are valid trees.
    """
    version = state.metadata.get("format", 6)
    absent = (NEW_IN_5 if version < 5 else ()) + (NEW_IN_6 if version < 6 else ())
    arrays = {
        key: np.empty(0, kind)
        if key in OPTIONAL and f"{name}.{key}" not in state.tensors
        else read_array(state, f"{name}.{key}", kind)
        for key, kind in ARRAYS.items()
        if key not in absent
    }
    n_trees = len(arrays["tree_offsets"]) - 1
    if version < 6:
        arrays["outside_left"] = _ways_of_missing(arrays)
    if version < 5:
        require(n_trees >= 0 and n_trees % n_outputs == 0, "a round lacks a tree")
        arrays["round_offsets"] = np.arange(0, n_trees + 1, n_outputs, dtype=np.int64)
        arrays["outputs"] = np.arange(n_trees, dtype=np.int32) % np.int32(n_outputs)
        arrays["tree_weights"] = np.ones(n_trees)
    else:
        read_weights(state, f"{name}.tree_weights", (max(n_trees, 0),))
    with expecting():
        forest = Forest(arrays, n_outputs, columns.n_asked)
    _check_surrogates(arrays, columns)
    return forest


def _check_surrogates(arrays: dict[str, NDArray[Any]], columns: Columns) -> None:
    """Raise ModelFileError unless surrogates are cuts of columns of X, or sets of categories."""
    column, cut = arrays["surrogate_columns"], arrays["surrogate_cuts"]
    of_input = bool((column < columns.n_columns).all())
    require(of_input, "a surrogate is not a column of the input")
    is_text, n_cuts = columns.categorical[column], np.diff(columns.cut_offsets)[column]
    has_set = arrays["surrogate_sets"] >= 0
    fits = (has_set == is_text) & (is_text | ((cut >= 1) & (cut <= n_cuts)))
    require(bool(fits.all()), "a surrogate does not fit its column")


def _ways_of_missing(arrays: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Whether missing values go left at each node; arrays that do not fit raise an error later."""
    left: NDArray[np.uint8] = arrays["missing_left"].copy()
    firsts = arrays["left_sets"][::32]
    by_set = (arrays["sets"] >= 0) & (arrays["sets"] < len(firsts))
    if len(left) == len(by_set):
        left[by_set] = firsts[arrays["sets"][by_set]] & 1
    return left
