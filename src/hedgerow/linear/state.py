"""State: the weights of a linear model in its file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels.state import EDGE_PATTERNS
from hedgerow.linear.weights import LinearLayout, LinearWeights, WeightLayout
from hedgerow.state import State, read_array, read_weights, require

# Label pairs that edges have weights for, in files.
PAIRS = "edges.pairs"


def pack_weights(weights: LinearWeights) -> dict[str, NDArray[Any]]:
    """Arrays of a model file."""
    layout = weights.layout
    tensors: dict[str, NDArray[Any]] = {
        "attributes.offsets": layout.labels.offsets,
        "attributes.labels": layout.labels.outputs,
        "attributes.weights": weights.attributes,
        "labels.weights": weights.biases,
    }
    if layout.edges is not None:
        name = PAIRS if layout.patterns is None else EDGE_PATTERNS
        tensors["edges.offsets"] = layout.edges.offsets
        tensors[name] = layout.edges.outputs
        tensors["edges.weights"] = weights.edges
    return tensors


def unpack_weights(
    state: State, n_attributes: int, n_labels: int, n_patterns: int
) -> LinearWeights:
    """Read the output of `pack_weights`, checking every array; raises ModelFileError."""
    labels = _layout(state, "attributes.offsets", "attributes.labels", n_attributes, n_labels)
    layout = LinearLayout(labels, None)
    edges: NDArray[np.float64] = np.empty(0)
    if EDGE_PATTERNS in state.tensors:
        patterns = _layout(state, "edges.offsets", EDGE_PATTERNS, n_attributes, n_patterns)
        layout = LinearLayout(labels, None, patterns)
    elif any(name.startswith("edges.") for name in state.tensors):
        pairs = _layout(state, "edges.offsets", PAIRS, n_attributes, n_labels * n_labels)
        layout = LinearLayout(labels, pairs)
    if layout.edges is not None:
        edges = read_weights(state, "edges.weights", (layout.edges.n_weights,))
    return LinearWeights(
        layout,
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
    spans = offsets[0] == 0 and offsets[-1] == len(outputs)
    require(spans, f"{offsets_name} does not run from 0 to the number of weights")
    require((offsets[:-1] <= offsets[1:]).all(), f"{offsets_name} decreases")
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
