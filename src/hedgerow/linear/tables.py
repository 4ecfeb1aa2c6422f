"""Tables: the weights of a linear model, as columns with the names that users know."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Patterns
from hedgerow.linear.weights import LinearWeights

Table = dict[str, NDArray[Any]]


def attribute_table(
    weights: LinearWeights, index: _core.StringIndex, classes: NDArray[Any]
) -> Table:
    """Columns attribute, label, weight; the attribute ``(bias)`` is the label's own weight."""
    layout = weights.layout.labels
    names = np.array([*index.names(), "(bias)"], dtype=np.object_)
    bias = np.full(len(classes), len(names) - 1)
    return {
        "attribute": names[np.concatenate([layout.attribute_of_weight(), bias])],
        "label": classes[np.concatenate([layout.outputs, np.arange(len(classes))])],
        "weight": np.concatenate([weights.attributes, weights.biases]),
    }


def transition_table(
    weights: LinearWeights, index: _core.StringIndex, classes: NDArray[Any]
) -> Table:
    """Columns from, to, weight; before them attribute, if transitions have attributes."""
    codes, weight = weights.layout.grammar.pairs(weights.patterns)
    table: Table = {}
    layout = weights.layout.pairs
    if layout is not None:
        names = np.array([*index.names(), ""], dtype=np.object_)
        plain = np.full(len(codes), len(names) - 1)
        table["attribute"] = names[np.concatenate([plain, layout.attribute_of_weight()])]
        codes = np.concatenate([codes, layout.outputs])
        weight = np.concatenate([weight, weights.edges])
    before, after = np.divmod(codes, len(classes))
    return table | {"from": classes[before], "to": classes[after], "weight": weight}


def pattern_table(weights: LinearWeights, classes: NDArray[Any]) -> Table:
    """Columns pattern, a tuple of labels, and weight."""
    names = name_patterns(weights.layout.grammar.patterns, classes)
    return {
        "pattern": np.fromiter(names, np.object_, len(names)),
        "weight": weights.patterns.copy(),
    }


def name_patterns(patterns: Patterns, classes: NDArray[Any]) -> list[tuple[Any, ...]]:
    """Patterns as tuples of labels."""
    names = classes.tolist()
    return [tuple(names[code] for code in codes) for codes in patterns]
