"""State: columns in a model file."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.sequences import Schema
from hedgerow.state import State, read_array, require
from hedgerow.trees.columns import Columns, is_dense
from hedgerow.trees.cuts import MAX_BINS, PRESENCE
from hedgerow.trees.missing import METHODS, MissingMethod


def pack_columns(columns: Columns) -> State:
    """Arrays and metadata for a model file."""
    tensors: dict[str, NDArray[Any]] = {
        "cuts.offsets": columns.cut_offsets,
        "cuts.values": columns.cuts,
    }
    if columns.fills is not None:
        tensors["columns.fills"] = columns.fills
    metadata = {
        "sparse": columns.sparse,
        "categories": list(columns.categories),
        "missing_values": columns.missing,
    }
    return State(tensors, metadata)


def unpack_columns(state: State, schema: Schema, index: _core.StringIndex) -> Columns:
    """Read the output of `pack_columns`, checking everything; raises ModelFileError."""
    offsets, cuts = _cuts(state)
    n_columns = len(offsets) - 1
    categories = _categories(state.metadata)
    sparse = state.metadata.get("sparse")
    require(isinstance(sparse, bool), "sparse is not true or false")
    assert isinstance(sparse, bool)
    require(
        len(categories) == schema.numeric.count(False), "its categories do not fit its text columns"
    )
    require(not (sparse and categories), "it has both sparse columns and text columns")

    is_items = schema.kind == "items"
    columns = Columns(schema, index if is_items else None, sparse, offsets, cuts, categories)
    if is_items:
        require(sparse, "its attributes are not sparse")
        require(len(index) == n_columns, "cuts.offsets does not fit the attribute names")
    else:
        n_numeric = schema.numeric.count(True)
        n_presence = sum(len(names) for names in categories if not is_dense(names))
        n_dense_text = sum(map(is_dense, categories))
        fits = n_columns == n_numeric + n_dense_text + n_presence
        require(fits, "cuts.offsets does not fit the columns")
        if categories:
            counts = np.diff(offsets[n_numeric:])
            uncut, presence = counts[:n_dense_text], cuts[offsets[columns.n_dense] :]
            require((uncut == 0).all(), "a text column has cuts")
            require((counts[n_dense_text:] == 1).all(), "the cuts of a category are not valid")
            require((presence == PRESENCE).all(), "the cuts of a category are not valid")
    return _with_missing(columns, state)


def _with_missing(columns: Columns, state: State) -> Columns:
    """Read how missing values are treated; before format 6 there was only one method."""
    if state.metadata.get("format", 6) < 6:
        return columns
    found, fills = state.metadata.get("missing_values"), None
    require(found in METHODS, "its method for missing values is not known")
    method = cast(MissingMethod, found)
    if method in ("impute", "indicator"):
        fills = read_array(state, "columns.fills", np.uint8)
        fits = len(fills) == columns.n_columns
        require(
            fits and ((fills >= 1) & (fills <= columns.n_bins)).all(), "columns.fills is not valid"
        )
    return replace(columns, missing=method, fills=fills)


def _cuts(state: State) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    offsets = read_array(state, "cuts.offsets", np.int64)
    cuts = read_array(state, "cuts.values", np.float64)
    require(len(offsets) and offsets[0] == 0, "cuts.offsets does not begin at 0")
    require(offsets[-1] == len(cuts), "cuts.offsets does not end at the number of cuts")
    require((offsets[:-1] <= offsets[1:]).all(), "cuts.offsets decreases")
    require((np.diff(offsets) < MAX_BINS).all(), "a column has too many cuts")
    require(np.isfinite(cuts).all(), "cuts.values is not finite")
    rises = cuts[:-1] < cuts[1:]
    starts = offsets[(offsets > 0) & (offsets < len(cuts))]
    rises[starts - 1] = True
    require(rises.all(), "cuts.values is not ascending within a column")
    return offsets, cuts


def _categories(metadata: dict[str, Any]) -> tuple[list[str], ...]:
    categories = metadata.get("categories")
    require(isinstance(categories, list), "its categories are not valid")
    assert isinstance(categories, list)
    for names in categories:
        require(isinstance(names, list), "its categories are not valid")
        require(all(isinstance(name, str) for name in names), "a category is not text")
        require(all(low < high for low, high in pairwise(names)), "its categories are not in order")
    return tuple(categories)
