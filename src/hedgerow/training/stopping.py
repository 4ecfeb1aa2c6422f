"""Stopping: early stopping and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from hedgerow.data_warning import warn_user
from hedgerow.parameters import check_choice, check_number
from hedgerow.training.eval_metrics import ALWAYS, EvalMetric, MetricOrName, read_eval_metric

__all__ = ["Callback", "Step", "Stopping"]


@dataclass(frozen=True)
class Step:
    """The argument of callbacks, after a round of `TreeCRF` or an iteration of `LinearCRF`.

    Attributes
    ----------
    number : int
        Number of rounds or iterations so far.
    figures : mapping of str to float
        The new entries of ``history_``: ``loss`` on the training data, for a `TreeCRF` also
        ``accuracy``; with an ``eval_set`` also ``eval_loss``, ``eval_accuracy`` and
        ``eval_<metric>`` for each metric of ``eval_metric``. The name of an eval set, if it has
        one, takes the place of ``eval``; for held-out training sequences it is ``validation``.
    """

    number: int
    figures: Mapping[str, float]


Callback = Callable[[Step], object]


class StoppingParameters(Protocol):
    """The parameters of an estimator that are about stopping; see `shared_parameters`."""

    early_stopping_rounds: int | None
    early_stopping_metric: str | None
    eval_metric: MetricOrName
    validation_fraction: float | None
    callbacks: Any


@dataclass(frozen=True)
class Stopping:
    """When training ends early.

    Attributes
    ----------
    patience : int or None
        Number of steps without an improvement on the last eval set after which training stops;
        None: never.
    metric : str
        The metric: loss, accuracy, or the name of another one.
    callbacks : sequence of callables
        Called after every step; each can end training.
    metrics : sequence of EvalMetric
        Metrics on eval sets in addition to loss and accuracy.
    held_out : float or None
        Share of the training sequences to hold out as the eval set; None: none of them.
    """

    patience: int | None = None
    metric: str = "loss"
    callbacks: Sequence[Callback] = ()
    metrics: Sequence[EvalMetric] = ()
    held_out: float | None = None

    @classmethod
    def read(cls, crf: StoppingParameters, eval_set: Any) -> Stopping:
        """Check the parameters; raises ValueError or TypeError."""
        patience, metric = crf.early_stopping_rounds, crf.early_stopping_metric
        share, callbacks = crf.validation_fraction, crf.callbacks
        check_number("early_stopping_rounds", patience, minimum=1, integer=True, optional=True)
        names, metrics = read_eval_metric(crf.eval_metric)
        choices = tuple(dict.fromkeys((*ALWAYS, *names)))
        advice = "; to stop by another metric, name it in eval_metric too"
        check_choice("early_stopping_metric", metric, (*choices, None), advice)
        if metric is None:
            metric = names[-1] if names else "loss"
        check_number("validation_fraction", share, above=0, below=1, optional=True)
        if not isinstance(callbacks, (list, tuple, type(None))):
            raise TypeError(f"callbacks is {callbacks!r}; expected a list of callables")
        for callback in callbacks or ():
            if not callable(callback):
                raise TypeError(f"callbacks holds {callback!r}, which cannot be called")
        if patience is None or eval_set is not None:
            share = None
        elif share is None:
            raise ValueError(
                "early_stopping_rounds needs validation data, but there is no eval_set and "
                "validation_fraction is None; call fit(..., eval_set=(X, y)), or set "
                "validation_fraction=0.1 to hold out a tenth of the training sequences"
            )
        held_out = None if share is None else float(share)
        if eval_set is None and held_out is None:
            _warn_of_nothing_to_measure(crf)
        return cls(patience, metric, tuple(callbacks or ()), metrics, held_out)

    def call_back(self, number: int, figures: Mapping[str, float]) -> bool:
        """Call all callbacks after a step; returns whether one of them ends training."""
        step = Step(number, MappingProxyType(dict(figures)))
        answers = [callback(step) for callback in self.callbacks]
        return any(map(bool, answers))


def _warn_of_nothing_to_measure(crf: StoppingParameters) -> None:
    for name in ("eval_metric", "early_stopping_metric"):
        value = getattr(crf, name)
        if value not in (None, "loss"):
            warn_user(
                f"{name} is {value!r}, but there are no data to measure it on, so it changes "
                "nothing; call fit(..., eval_set=(X, y)), pass --dev on the command line, or set "
                "early_stopping_rounds, which holds out some training sequences"
            )
            return
