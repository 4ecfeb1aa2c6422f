"""State: a linear model taken apart for its file, and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Constraints, Grammar, Patterns
from hedgerow.linear.weights import LinearLayout, LinearWeights, WeightLayout
from hedgerow.persist import State, require


def pack_weights(weights: LinearWeights, index: _core.StringIndex) -> dict[str, NDArray[Any]]:
    """All arrays of a model file."""
    text, offsets = index.to_arrays()
    layout, grammar = weights.layout, weights.layout.grammar
    tensors: dict[str, NDArray[Any]] = {
        "names.text": text,
        "names.offsets": offsets,
        "attributes.offsets": layout.labels.offsets,
        "attributes.labels": layout.labels.outputs,
        "attributes.weights": weights.attributes,
        "labels.weights": weights.biases,
        "patterns.offsets": grammar.patterns.offsets,
        "patterns.labels": grammar.patterns.labels,
        "patterns.weights": weights.patterns,
    }
    if layout.pairs is not None:
        tensors["edges.offsets"] = layout.pairs.offsets
        tensors["edges.pairs"] = layout.pairs.outputs
        tensors["edges.weights"] = weights.edges
    if grammar.constraints is not None:
        tensors["constraints.allowed"] = grammar.constraints.allowed
        tensors["constraints.start"] = grammar.constraints.start
        tensors["constraints.end"] = grammar.constraints.end
    return tensors


def unpack_weights(state: State, n_labels: int) -> tuple[LinearWeights, _core.StringIndex]:
    """Read what `pack_weights` wrote, checking every array; raises ModelFileError."""
    try:
        index = _core.StringIndex.from_arrays(
            _array(state, "names.text", np.uint8), _array(state, "names.offsets", np.int64)
        )
    except ValueError as error:
        require(False, f"attribute names ({error})")
    labels = _layout(state, "attributes.offsets", "attributes.labels", len(index), n_labels)
    pairs = None
    edges: NDArray[np.float64] = np.empty(0)
    if "edges.offsets" in state.tensors:
        n_pairs = n_labels * n_labels
        pairs = _layout(state, "edges.offsets", "edges.pairs", len(index), n_pairs)
        edges = _weights(state, "edges.weights", (pairs.n_weights,))
    patterns, pattern_weights = _patterns(state, n_labels)
    grammar = Grammar(n_labels, patterns, _constraints(state, n_labels), pairs is not None)
    weights = LinearWeights(
        LinearLayout(labels, pairs, grammar),
        _weights(state, "attributes.weights", (labels.n_weights,)),
        edges,
        _weights(state, "labels.weights", (n_labels,)),
        pattern_weights,
    )
    return weights, index


def _patterns(state: State, n_labels: int) -> tuple[Patterns, NDArray[np.float64]]:
    if "pairs.weights" in state.tensors:  # format 1 had all pairs, in a square
        return Patterns.pairs(n_labels), _weights(state, "pairs.weights", (n_labels,) * 2).ravel()
    offsets = _array(state, "patterns.offsets", np.int64)
    labels = _array(state, "patterns.labels", np.int32)
    require(len(offsets) and offsets[0] == 0, "patterns.offsets does not begin at 0")
    require(offsets[-1] == len(labels), "patterns.offsets does not fit the patterns")
    rises = (offsets[:-1] < offsets[1:]).all()  # else differences could wrap around
    require(rises and (np.diff(offsets) >= 2).all(), "a pattern has fewer than two labels")
    require(
        not len(labels) or (labels.min() >= 0 and labels.max() < n_labels),
        "patterns.labels is out of range",
    )
    patterns = Patterns(offsets, labels)
    require(len(set(patterns)) == len(patterns), "a pattern occurs twice")
    return patterns, _weights(state, "patterns.weights", (len(patterns),))


def _constraints(state: State, n_labels: int) -> Constraints | None:
    if not any(name.startswith("constraints.") for name in state.tensors):
        return None
    allowed = _array(state, "constraints.allowed", np.bool_, 2)
    start = _array(state, "constraints.start", np.bool_)
    end = _array(state, "constraints.end", np.bool_)
    fits = allowed.shape == (n_labels, n_labels) and start.shape == end.shape == (n_labels,)
    require(fits, "the constraints have the wrong shape")
    return Constraints(allowed, start, end)


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
    require((offsets[:-1] <= offsets[1:]).all(), f"{offsets_name} falls")
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
