"""Tables: weights of label patterns, as named columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels.grammar import Grammar
from hedgerow.tables import Table


def name_patterns(
    patterns: Iterable[Iterable[int]], classes: NDArray[Any]
) -> list[tuple[Any, ...]]:
    """Patterns as tuples of labels."""
    names = classes.tolist()
    return [tuple(names[code] for code in codes) for codes in patterns]


def pattern_table(grammar: Grammar, weights: NDArray[np.float64], classes: NDArray[Any]) -> Table:
    """A table with columns "pattern", tuples of labels, and "weight", from the weights (P,)."""
    names = name_patterns(grammar.patterns, classes)
    return Table({"pattern": np.fromiter(names, np.object_, len(names)), "weight": weights.copy()})


def pair_table(grammar: Grammar, weights: NDArray[np.float64], classes: NDArray[Any]) -> Table:
    """Patterns that are pairs, in columns "from", "to" and "weight", from all weights (P,)."""
    codes, pair_weights = grammar.pairs(weights)
    before, after = np.divmod(codes, len(classes))
    return Table({"from": classes[before], "to": classes[after], "weight": pair_weights})
