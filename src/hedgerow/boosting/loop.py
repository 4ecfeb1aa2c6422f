"""The loop: rounds of boosting until enough is learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.booster import Booster, Model
from hedgerow.boosting.monitor import Monitor
from hedgerow.trees.forest import Forest

__all__ = ["Evaluate", "Trained", "boost"]

# Figures on data set aside, given the trees of a round and the weights of patterns after it.
Evaluate = Callable[[Forest, NDArray[np.float64]], dict[str, float]]


@dataclass(frozen=True, eq=False)
class Trained:
    """A model, and its loss on the training data, a position."""

    model: Model
    loss: float


def boost(
    booster: Booster, start: Forest, n_rounds: int, monitor: Monitor, evaluate: Evaluate
) -> Trained:
    """Do up to `n_rounds` rounds on top of the forest `start`; returns the model to keep.

    With patience that is the best one seen, else the last.
    """
    total = booster.targets.total_weight
    scale = 1.0 / total if total > 0 else 0.0
    forests, kept, weights, loss = [start], 1, booster.weights, booster.loss * scale
    if start.n_rounds:
        nothing = Forest.join(start.n_labels, [])
        monitor.compare(start.n_rounds, evaluate(nothing, booster.weights))
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
            kept, weights, loss = len(forests), booster.weights, figures["loss"]
        if ended:
            break
    model = Model(Forest.join(start.n_labels, forests[:kept]), weights)
    return Trained(model, abs(loss) if loss == 0 else loss)
