"""The loop: rounds of boosting until enough is learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.booster import Boosted, Booster
from hedgerow.boosting.monitor import Monitor
from hedgerow.boosting.standing import Standing
from hedgerow.checkpoint import Record
from hedgerow.trees.forest import Forest

__all__ = ["Evaluate", "Trained", "boost"]

# Figures on data set aside, given the trees of a round and the weights of patterns after it.
Evaluate = Callable[[Forest, NDArray[np.float64]], dict[str, float]]


@dataclass(frozen=True, eq=False)
class Trained:
    """A model, and its loss on the training data, a position."""

    model: Boosted
    loss: float


def boost(
    booster: Booster,
    standing: Standing,
    n_rounds: int,
    monitor: Monitor,
    evaluate: Evaluate,
    record: Record | None = None,
) -> Trained:
    """Go on until there are `n_rounds` rounds; returns the model to keep.

    With patience that is the best one seen, else the last. Where the training stands is written
    down in `record` from time to time.
    """
    total = booster.targets.total_weight
    scale = 1.0 / total if total > 0 else 0.0
    if np.isnan(standing.loss):
        standing.loss = booster.loss * scale
    if booster.n_rounds and monitor.best_round is None:  # those of a model to go on from
        nothing = Forest.join(standing.n_labels, [])
        monitor.compare(booster.n_rounds, evaluate(nothing, booster.weights))
    while booster.n_rounds < n_rounds and not standing.ended:
        trees = booster.advance()
        if trees is None:
            standing.ended = True
        else:
            standing.add(trees, booster.weights)
            figures = {
                "loss": booster.loss * scale,
                "accuracy": booster.count_right() / booster.targets.n_known,
            }
            figures |= evaluate(trees, booster.weights)
            standing.ended = monitor.note(booster.n_rounds, figures)
        if monitor.patience is None or monitor.best_round == booster.n_rounds:
            # Also if the round came to nothing: it may have been the first for another objective.
            standing.keep(booster.loss * scale)
        standing.best_round, standing.best = monitor.best_round, monitor.best
        if record is not None:
            last = standing.ended or booster.n_rounds == n_rounds
            record.note(booster.n_rounds, standing.pack, last=last)
    loss = standing.loss
    return Trained(standing.kept_model(), abs(loss) if loss == 0 else loss)
