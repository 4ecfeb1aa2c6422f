"""The loop: rounds of boosting until enough is learnt."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.booster import Booster, Model
from hedgerow.boosting.monitor import Monitor
from hedgerow.trees.forest import Forest

__all__ = ["Evaluate", "boost"]

# Figures on data set aside, given the trees of a round and the weights of patterns after it.
Evaluate = Callable[[Forest, NDArray[np.float64]], dict[str, float]]


def boost(
    booster: Booster, start: Forest, n_rounds: int, monitor: Monitor, evaluate: Evaluate
) -> Model:
    """Do up to `n_rounds` rounds on top of the forest `start`; returns the model to keep.

    With patience that is the best one seen, else the last.
    """
    forests, kept = [start], Model(start, booster.weights)
    scale = 1.0 / booster.targets.total_weight
    for _ in range(n_rounds):
        trees = booster.advance()
        if trees is None:
            break
        forests.append(trees)
        figures = {
            "loss": booster.loss * scale,
            "accuracy": booster.count_right() / booster.targets.n_known,
        }
        ended = monitor.note(booster.n_rounds, figures | evaluate(trees, booster.weights))
        if monitor.patience is None or monitor.best_round == booster.n_rounds:
            kept = Model(trees, booster.weights)
        if ended:
            break
    forest = Forest.join(start.n_labels, forests)
    if monitor.patience is not None and monitor.best_round is not None:
        forest = forest.first_rounds(monitor.best_round)
    return Model(forest, kept.weights)
