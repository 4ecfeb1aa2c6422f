"""State: a linear model taken apart for its file, and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.linear.weights import LinearWeights, WeightLayout
from hedgerow.persist import State, require


def pack_weights(weights: LinearWeights, index: _core.StringIndex) -> dict[str, NDArray[Any]]:
    """All arrays of a model file."""
    text, offsets = index.to_arrays()
    tensors: dict[str, NDArray[Any]] = {
        "names.text": text,
        "names.offsets": offsets,
        "attributes.offsets": weights.layout.offsets,
        "attributes.labels": weights.layout.outputs,
        "attributes.weights": weights.attributes,
        "labels.weights": weights.biases,
        "pairs.weights": weights.arcs,
    }
    if weights.edge_layout is not None:
        tensors["edges.offsets"] = weights.edge_layout.offsets
        tensors["edges.pairs"] = weights.edge_layout.outputs
        tensors["edges.weights"] = weights.edges
    return tensors


def unpack_weights(state: State, n_labels: int) -> tuple[LinearWeights, _core.StringIndex]:
    """Read what `pack_weights` wrote, checking every array; raises ModelFileError."""
    try:
        index = _core.StringIndex.from_arrays(
            _array(state, "names.text", np.uint8), _array(state, "names.offsets", np.int64)
        )
    except ValueError as error:
        require(False, f"attribute names ({error})")
    layout = _layout(state, "attributes.offsets", "attributes.labels", len(index), n_labels)
    edge_layout = None
    if "edges.offsets" in state.tensors:
        n_pairs = n_labels * n_labels
        edge_layout = _layout(state, "edges.offsets", "edges.pairs", len(index), n_pairs)
    weights = LinearWeights(
        layout,
        edge_layout,
        _weights(state, "attributes.weights", (layout.n_weights,)),
        np.empty(0)
        if edge_layout is None
        else _weights(state, "edges.weights", (edge_layout.n_weights,)),
        _weights(state, "labels.weights", (n_labels,)),
        _weights(state, "pairs.weights", (n_labels, n_labels)),
    )
    return weights, index


def _array(state: State, name: str, dtype: type[np.generic], n_dimensions: int = 1) -> NDArray[Any]:
    array = state.tensors.get(name)
    require(array is not None, f"{name} is missing")
    assert array is not None
    require(array.dtype == dtype and array.ndim == n_dimensions, f"{name} has the wrong type")
    return array


def _layout(
    state: State, offsets_name: str, outputs_name: str, n_attributes: int, n_outputs: int
) -> WeightLayout:
    offsets = _array(state, offsets_name, np.int64)
    outputs = _array(state, outputs_name, np.int32)
    require(len(offsets) == n_attributes + 1, f"{offsets_name} does not fit the attribute names")
    require(offsets[0] == 0 and offsets[-1] == len(outputs), f"{offsets_name} has wrong ends")
    require((np.diff(offsets) >= 0).all(), f"{offsets_name} falls")
    require(
        not len(outputs) or (outputs.min() >= 0 and outputs.max() < n_outputs),
        f"{outputs_name} is out of range",
    )
    rises = np.diff(outputs) > 0
    starts = offsets[1:-1]
    rises[starts[(starts > 0) & (starts < len(outputs))] - 1] = True
    require(rises.all(), f"{outputs_name} is not in order")
    return WeightLayout(offsets, outputs, n_outputs)


def _weights(state: State, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = _array(state, name, np.float64, len(shape))
    require(array.shape == shape, f"{name} has the wrong shape")
    require(np.isfinite(array).all(), f"{name} is not finite")
    return array
