"""Tables: the weights of a linear model, as columns with the names that users know."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Patterns
from hedgerow.labels.tables import name_patterns
from hedgerow.linear.weights import LinearLayout, LinearWeights
from hedgerow.tables import Table


def attribute_table(
    weights: LinearWeights, index: _core.StringIndex, classes: NDArray[Any]
) -> Table:
    """Columns attribute, label, weight; the attribute ``(bias)`` is the label's own weight."""
    layout = weights.layout.labels
    names = np.array([*index.names(), "(bias)"], dtype=np.object_)
    bias = np.full(len(classes), len(names) - 1)
    return Table(
        {
            "attribute": names[np.concatenate([layout.attribute_of_weight(), bias])],
            "label": classes[np.concatenate([layout.outputs, np.arange(len(classes))])],
            "weight": np.concatenate([weights.attributes, weights.biases]),
        }
    )


def describe_weight(
    number: int,
    layout: LinearLayout,
    index: _core.StringIndex,
    patterns: Patterns,
    classes: NDArray[Any],
) -> tuple[str, str]:
    """What the weight of this number belongs to, and the columns behind it.

    Weights of label patterns come after all others.
    """
    n_labels, n_pairs, n_biases = layout.sizes
    if number < n_labels + n_pairs:
        attributes = layout.labels.attribute_of_weight()
        if layout.pairs is not None:
            attributes = np.concatenate([attributes, layout.pairs.attribute_of_weight()])
        return f"attribute {index.names()[attributes[number]]!r}", "that column"
    number -= n_labels + n_pairs
    if number < n_biases:
        return f"label {classes.tolist()[number]!r}", "all columns"
    pattern = name_patterns(patterns, classes)[number - n_biases]
    return f"the label pattern {', '.join(map(str, pattern))}", "all columns"


def transition_table(
    plain: Table, weights: LinearWeights, index: _core.StringIndex, classes: NDArray[Any]
) -> Table:
    """Columns from, to, weight; before them attribute, if transitions have attributes.

    ``plain`` are those of the label pairs themselves.
    """
    layout = weights.layout.pairs
    if layout is None:
        return plain
    names = np.array([*index.names(), ""], dtype=np.object_)
    no_attribute = np.full(len(plain["weight"]), len(names) - 1)
    before, after = np.divmod(layout.outputs, len(classes))
    return Table(
        {
            "attribute": names[np.concatenate([no_attribute, layout.attribute_of_weight()])],
            "from": np.concatenate([plain["from"], classes[before]]),
            "to": np.concatenate([plain["to"], classes[after]]),
            "weight": np.concatenate([plain["weight"], weights.edges]),
        }
    )
