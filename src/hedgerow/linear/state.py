"""State: the weights of a linear model taken apart for its file, and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.linear.weights import LinearLayout, LinearWeights, WeightLayout
from hedgerow.state import State, read_array, read_weights, require


def pack_weights(weights: LinearWeights) -> dict[str, NDArray[Any]]:
    """Arrays of a model file."""
    layout = weights.layout
    tensors: dict[str, NDArray[Any]] = {
        "attributes.offsets": layout.labels.offsets,
        "attributes.labels": layout.labels.outputs,
        "attributes.weights": weights.attributes,
        "labels.weights": weights.biases,
    }
    if layout.pairs is not None:
        tensors["edges.offsets"] = layout.pairs.offsets
        tensors["edges.pairs"] = layout.pairs.outputs
        tensors["edges.weights"] = weights.edges
    return tensors


def unpack_weights(state: State, n_attributes: int, n_labels: int) -> LinearWeights:
    """Read what `pack_weights` wrote, checking every array; raises ModelFileError."""
    labels = _layout(state, "attributes.offsets", "attributes.labels", n_attributes, n_labels)
    pairs = None
    edges: NDArray[np.float64] = np.empty(0)
    if any(name.startswith("edges.") for name in state.tensors):
        n_pairs = n_labels * n_labels
        pairs = _layout(state, "edges.offsets", "edges.pairs", n_attributes, n_pairs)
        edges = read_weights(state, "edges.weights", (pairs.n_weights,))
    return LinearWeights(
        LinearLayout(labels, pairs),
        read_weights(state, "attributes.weights", (labels.n_weights,)),
        edges,
        read_weights(state, "labels.weights", (n_labels,)),
    )


def _layout(
    state: State, offsets_name: str, outputs_name: str, n_attributes: int, n_outputs: int
) -> WeightLayout:
    offsets = read_array(state, offsets_name, np.int64)
    outputs = read_array(state, outputs_name, np.int32)
    require(len(offsets) == n_attributes + 1, f"{offsets_name} does not fit the attribute names")
    require(offsets[0] == 0 and offsets[-1] == len(outputs), f"{offsets_name} has wrong ends")
    require((offsets[:-1] <= offsets[1:]).all(), f"{offsets_name} falls")
    require(
        not len(outputs) or (outputs.min() >= 0 and outputs.max() < n_outputs),
        f"{outputs_name} is out of range",
    )
    rises = np.diff(outputs) > 0
    starts = offsets[1:-1]
    rises[starts[(starts > 0) & (starts < len(outputs))] - 1] = True
    require(rises.all(), f"{outputs_name} is not in order")
    if len(outputs) == n_attributes * n_outputs:
        return WeightLayout.full(n_attributes, n_outputs)
    return WeightLayout(offsets, outputs, n_outputs)
