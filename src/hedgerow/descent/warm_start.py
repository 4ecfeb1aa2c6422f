"""Warm start: weights of one model as the starting point of another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.linear.weights import LinearLayout, LinearWeights, WeightLayout
from hedgerow.model import Model
from hedgerow.potentials import AttributeWeights
from hedgerow.training.training_set import TrainingSet


def start_from(model: Model, data: TrainingSet, layout: LinearLayout) -> NDArray[np.float64]:
    """The weights that two models share, by attribute and label; 0 for all others.

    Parameters
    ----------
    model
        The model to start from.
    data, layout
        The training set of the new model, and the layout of its weights of attributes and labels;
        in the result, the weights of label patterns come after these.
    """
    patterns, weights = data.grammar.patterns, model.potential(AttributeWeights).weights
    vector = np.zeros(layout.n_weights + len(patterns))
    own, of_patterns = np.split(vector, [layout.n_weights])
    start = LinearWeights.from_vector(own, layout)
    attributes = np.fromiter(map(model.index.find, data.index.names()), np.int64, len(data.index))
    classes = data.labels.find(model.labels.classes).astype(np.int64)  # -1 if a label is gone
    known = classes >= 0
    start.biases[classes[known]] = weights.biases[known]
    old = model.grammar.patterns.map_labels(classes)
    of_patterns[:] = patterns.carry_over(old, model.pattern_weights)
    old_layout, new_layout = weights.layout.labels, start.layout.labels
    _copy(old_layout, weights.attributes, new_layout, start.attributes, attributes, classes)
    if weights.layout.edges is None or start.layout.edges is None:
        return vector
    strings = weights.layout.edge_patterns(model.grammar.patterns).map_labels(classes)
    numbers = layout.edge_patterns(patterns).find(strings)
    old_layout, new_layout = weights.layout.edges, start.layout.edges
    _copy(old_layout, weights.edges, new_layout, start.edges, attributes, numbers)
    return vector


def _copy(
    old_layout: WeightLayout,
    old: NDArray[np.float64],
    new_layout: WeightLayout,
    new: NDArray[np.float64],
    attributes: NDArray[np.int64],
    outputs: NDArray[np.int64],
) -> None:
    """Copy the weights that both layouts have.

    ``attributes``: old number of each new attribute; ``outputs``: new code of each old output.
    """
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
