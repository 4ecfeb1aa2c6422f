"""Stopping: early stopping and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

from hedgerow.parameters import check_choice, check_number

__all__ = ["Callback", "Metric", "Step", "Stopping"]

Metric = Literal["loss", "accuracy"]


@dataclass(frozen=True)
class Step:
    """What a callback is called with after a round of `TreeCRF`, or an iteration of `LinearCRF`.

    Attributes
    ----------
    number : int
        How many rounds or iterations were done by now.
    figures : mapping of str to float
        The new entries of ``history_``: ``loss`` on the training data, for a `TreeCRF` also
        ``accuracy``; with an ``eval_set`` ``eval_loss`` and ``eval_accuracy``, or those of its
        name.
    """

    number: int
    figures: Mapping[str, float]


Callback = Callable[[Step], object]


class StoppingParameters(Protocol):
    """An estimator, as far as its parameters are about stopping; `TreeCRF` explains them."""

    early_stopping_rounds: int | None
    early_stopping_metric: Metric
    callbacks: Any


@dataclass(frozen=True)
class Stopping:
    """When training ends early.

    Attributes
    ----------
    patience : int or None
        How many steps may pass without a better figure on the last eval set; None: any number.
    metric : {"loss", "accuracy"}
        Which figure it is.
    callbacks : sequence of callables
        Each is called after every step, and can end the training.
    """

    patience: int | None = None
    metric: Metric = "loss"
    callbacks: Sequence[Callback] = ()

    @classmethod
    def read(cls, crf: StoppingParameters, eval_set: Any) -> Stopping:
        """Check the parameters; raises ValueError or TypeError."""
        patience, metric, callbacks = (
            crf.early_stopping_rounds,
            crf.early_stopping_metric,
            crf.callbacks,
        )
        if patience is not None:
            check_number("early_stopping_rounds", patience, minimum=1, integer=True)
        check_choice("early_stopping_metric", metric, ("loss", "accuracy"))
        if not isinstance(callbacks, (list, tuple, type(None))):
            raise TypeError(f"callbacks is {callbacks!r}; expected a list of callables")
        for callback in callbacks or ():
            if not callable(callback):
                raise TypeError(f"callbacks holds {callback!r}, which cannot be called")
        if patience is not None and eval_set is None:
            raise ValueError(
                "early_stopping_rounds needs an eval_set to stop by; pass fit(..., eval_set=(X, y))"
            )
        return cls(patience, metric, tuple(callbacks or ()))

    def call_back(self, number: int, figures: Mapping[str, float]) -> bool:
        """Call all callbacks after a step; returns whether one of them ends the training."""
        step = Step(number, MappingProxyType(dict(figures)))
        answers = [callback(step) for callback in self.callbacks]
        return any(map(bool, answers))
