"""Monitor: what is noted of every round, who is told, and when training should end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from hedgerow.progress import Progress

__all__ = ["Callback", "Monitor", "Round"]

Metric = Literal["loss", "accuracy"]


@dataclass(frozen=True)
class Round:
    """What a callback is told after a round.

    Attributes
    ----------
    number : int
        How many rounds the model has by now.
    figures : mapping of str to float
        ``loss`` and ``accuracy`` on the training data, and with an ``eval_set`` ``eval_loss`` and
        ``eval_accuracy``.
    """

    number: int
    figures: Mapping[str, float]


Callback = Callable[[Round], object]


@dataclass
class Monitor:
    """Keeps the history of a training.

    Attributes
    ----------
    history : dict of lists
        Every figure after every round.
    patience : int or None
        How many rounds may pass without a better figure on the ``eval_set``.
    metric : {"loss", "accuracy"}
        Which figure it is.
    warm_rounds : int
        During so many rounds patience is endless: they only prepare the others.
    best_round : int or None
        Number of rounds at the best figure so far; None without an ``eval_set``.
    best : float
        That figure; an accuracy has its sign changed.
    """

    history: dict[str, list[float]]
    progress: Progress
    callbacks: Sequence[Callback]
    patience: int | None
    metric: Metric
    warm_rounds: int = 0
    best_round: int | None = None
    best: float = float("inf")

    def note(self, number: int, figures: dict[str, float]) -> bool:
        """Take down the figures of a round; returns whether training should end."""
        for name, figure in figures.items():
            self.history.setdefault(name, []).append(figure)
        self.progress.update(figures)
        enough = self.compare(number, figures)
        told = Round(number, MappingProxyType(figures))
        answers = [callback(told) for callback in self.callbacks]
        return enough or any(map(bool, answers))

    def compare(self, number: int, figures: dict[str, float]) -> bool:
        """Look whether a round is the best so far; returns whether patience is at an end."""
        if f"eval_{self.metric}" not in figures:
            return False
        figure = figures[f"eval_{self.metric}"]
        loss = figure if self.metric == "loss" else -figure
        if self.best_round is None or loss < self.best:
            self.best_round, self.best = number, loss
        waited = number - max(self.best_round, self.warm_rounds)
        return self.patience is not None and waited >= self.patience
