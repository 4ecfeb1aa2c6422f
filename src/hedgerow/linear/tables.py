"""Tables: the weights of a linear model, as named columns."""

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
    """Columns attribute, label, weight; the attribute ``(bias)`` is the bias weight of a label."""
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
    """For a message: what the weight with this number belongs to, and which columns affect it.

    Weights of label patterns come after all others.
    """
    n_labels, n_edges, n_biases = layout.sizes
    if number < n_labels + n_edges:
        attributes = layout.labels.attribute_of_weight()
        if layout.edges is not None:
            attributes = np.concatenate([attributes, layout.edges.attribute_of_weight()])
        return f"attribute {index.names()[attributes[number]]!r}", "that column"
    number -= n_labels + n_edges
    if number < n_biases:
        return f"label {classes.tolist()[number]!r}", "all columns"
    pattern = name_patterns(patterns, classes)[number - n_biases]
    return f"the label pattern {', '.join(map(str, pattern))}", "all columns"


def transition_table(
    plain: Table,
    weights: LinearWeights,
    index: _core.StringIndex,
    patterns: Patterns,
    classes: NDArray[Any],
) -> Table:
    """Columns from, to, weight, preceded by attribute if transitions have attributes.

    ``plain`` are the weights of the label pairs themselves, ``patterns`` all patterns with weights.
    """
    layout = weights.layout.edges
    if layout is None:
        return plain
    strings = weights.layout.edge_patterns(patterns)
    outputs = layout.outputs
    is_pair = strings.lengths[outputs] == 2
    begin = strings.offsets[outputs[is_pair]]
    pairs = Table(
        {
            "from": classes[strings.labels[begin]],
            "to": classes[strings.labels[begin + 1]],
            "weight": weights.edges[is_pair],
        }
    )
    return _join(plain, pairs, index, layout.attribute_of_weight()[is_pair])


def pattern_attribute_table(
    plain: Table,
    weights: LinearWeights,
    index: _core.StringIndex,
    patterns: Patterns,
    classes: NDArray[Any],
) -> Table:
    """Columns pattern, weight, preceded by attribute if label patterns have attributes.

    ``plain`` are the weights of the patterns themselves.
    """
    layout = weights.layout.patterns
    if layout is None:
        return plain
    names = name_patterns(patterns, classes)
    own = np.fromiter((names[p] for p in layout.outputs.tolist()), np.object_, layout.n_weights)
    table = Table({"pattern": own, "weight": weights.edges})
    return _join(plain, table, index, layout.attribute_of_weight())


def _join(
    plain: Table, table: Table, index: _core.StringIndex, attributes: NDArray[np.int64]
) -> Table:
    """Rows without an attribute, then those that have one."""
    names = np.array([*index.names(), ""], dtype=np.object_)
    none = np.full(len(plain["weight"]), len(names) - 1)
    joined = {name: np.concatenate([plain[name], table[name]]) for name in plain}
    return Table({"attribute": names[np.concatenate([none, attributes])]} | joined)
