"""Warm start: a model to go on from."""

from __future__ import annotations

import numpy as np

from hedgerow.boosting.booster import Boosted
from hedgerow.labels import Grammar

__all__ = ["copy_model"]


def copy_model(model: Boosted, old: Grammar, new: Grammar) -> Boosted:
    """The same trees, and the weights of those label patterns that both grammars have.

    Patterns that only the new grammar has start at zero.
    """
    places = {pattern: place for place, pattern in enumerate(old.patterns)}
    weights = np.zeros(len(new.patterns))
    for place, pattern in enumerate(new.patterns):
        if pattern in places:
            weights[place] = model.weights[places[pattern]]
    return Boosted(model.forest, weights)
