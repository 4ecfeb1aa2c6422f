"""Export: linear weights as plain JSON values, in the schema of docs/guides/json.md."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.linear.weights import LinearWeights, WeightLayout

__all__ = ["export_weights"]


def export_weights(weights: LinearWeights, index: _core.StringIndex) -> dict[str, Any]:
    """Weights of labels by attribute, of label pairs or patterns, and the bias weights."""
    layout, names = weights.layout, index.names()
    n_labels = layout.n_labels
    found: dict[str, Any] = {
        "biases": weights.biases.tolist(),
        "attributes": {
            name: [[output, weight] for output, weight in own]
            for name, own in _by_attribute(layout.labels, weights.attributes, names)
        },
    }
    if layout.patterns is not None:
        found["pattern_attributes"] = {
            name: [[output, weight] for output, weight in own]
            for name, own in _by_attribute(layout.patterns, weights.edges, names)
        }
    if layout.pairs is not None:
        found["pair_attributes"] = {
            name: [[*divmod(output, n_labels), weight] for output, weight in own]
            for name, own in _by_attribute(layout.pairs, weights.edges, names)
        }
    return found


def _by_attribute(
    layout: WeightLayout, weights: NDArray[np.float64], names: list[str]
) -> list[tuple[str, list[tuple[int, float]]]]:
    """Output and value of all weights that are not 0, attribute by attribute."""
    pairs = list(zip(layout.outputs.tolist(), weights.tolist(), strict=True))
    found = [
        (name, [pair for pair in pairs[begin:end] if pair[1]])
        for name, (begin, end) in zip(names, pairwise(layout.offsets.tolist()), strict=True)
    ]
    return [(name, own) for name, own in found if own]
