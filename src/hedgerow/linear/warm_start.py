"""Warm start: weights of one model as the starting point of another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Labels
from hedgerow.linear.weights import LinearWeights, WeightLayout
from hedgerow.training import TrainingSet


def copy_weights(
    weights: LinearWeights,
    index: _core.StringIndex,
    labels: Labels,
    data: TrainingSet,
    start: LinearWeights,
) -> None:
    """Copy the weights that both models have, by name of attribute and label, into `start`.

    Parameters
    ----------
    weights, index, labels
        The model to start from.
    data, start
        The training set of the new model, and its weights, all zero.
    """
    attributes = np.fromiter(map(index.find, data.index.names()), np.int64, len(data.index))
    classes = data.labels.find(labels.classes).astype(np.int64)  # -1 if a label is gone
    n_old, n_new = len(classes), len(data.labels.classes)
    known = classes >= 0
    start.biases[classes[known]] = weights.biases[known]
    old = weights.layout.grammar.patterns.map_labels(classes)
    places = {pattern: place for place, pattern in enumerate(start.layout.grammar.patterns)}
    for pattern, weight in zip(old, weights.patterns, strict=True):
        if pattern in places:
            start.patterns[places[pattern]] = weight
    old_layout, new_layout = weights.layout.labels, start.layout.labels
    _copy(old_layout, weights.attributes, new_layout, start.attributes, attributes, classes)
    if weights.layout.pairs is None or start.layout.pairs is None:
        return
    before, after = np.divmod(np.arange(n_old * n_old), n_old)
    pairs = np.where(
        known[before] & known[after], classes[before] * n_new + classes[after], -1
    ).astype(np.int64)
    old_layout, new_layout = weights.layout.pairs, start.layout.pairs
    _copy(old_layout, weights.edges, new_layout, start.edges, attributes, pairs)


def _copy(
    old_layout: WeightLayout,
    old: NDArray[np.float64],
    new_layout: WeightLayout,
    new: NDArray[np.float64],
    attributes: NDArray[np.int64],
    outputs: NDArray[np.int64],
) -> None:
    """``attributes``: old number of each new one; ``outputs``: new code of each old one."""
    old_keys = _keys(old_layout.attribute_of_weight(), outputs[old_layout.outputs], new_layout)
    new_attributes = attributes[new_layout.attribute_of_weight()]
    new_keys = _keys(new_attributes, new_layout.outputs, new_layout)
    _, from_old, to_new = np.intersect1d(old_keys, new_keys, return_indices=True)
    found = old_keys[from_old] >= 0
    new[to_new[found]] = old[from_old[found]]


def _keys(
    attributes: NDArray[np.int64], outputs: NDArray[np.integer], layout: WeightLayout
) -> NDArray[np.int64]:
    """One number for each (attribute, output), -1 where either is unknown."""
    keys = attributes * layout.n_outputs + outputs
    return np.where((attributes >= 0) & (outputs >= 0), keys, -1)
