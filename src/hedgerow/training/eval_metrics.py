"""Eval metrics: metrics on an eval set in addition to loss and accuracy.

A metric compares true labels with predicted ones; greater is better, as for scikit-learn's scorers.
Positions whose label is not known are left out.
"""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning

from hedgerow.labels.classes import shorten
from hedgerow.metrics import chunk_scores, label_scores
from hedgerow.metrics.known_chunks import look_like_chunks
from hedgerow.scorers import PositionScorer
from hedgerow.suggestions import suggest

__all__ = ["ALWAYS", "EvalMetric", "EvalMetrics", "Metric", "MetricOrName", "read_eval_metric"]

# Warning filters are shared by all threads, so only one thread may change them at a time.
QUIET = threading.RLock()


def _renew_lock() -> None:
    """After a fork: in the new process, a lock that another thread holds is never released."""
    global QUIET
    QUIET = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

LabelLists = list[list[Any]]
Metric = Callable[[LabelLists, LabelLists], float]
MetricOrName = str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric] | None

# Always measured.
ALWAYS = ("loss", "accuracy")
EXPECTED = (
    "expected the name of a metric, such as 'f1_macro', 'sequence_accuracy' or 'chunk_f1', a "
    "function of two lists of label lists, or a list or dict of these"
)
# What a metric is measured on.
DATA = "the evaluation data (eval_set, or training sequences that are held out)"
HINT = (
    "; it is called with two lists of label lists: for a metric of flat labels pass "
    "hedgerow.scorers.make_position_scorer(...)"
)


@dataclass(frozen=True, eq=False)
class EvalMetric:
    """A metric and its name in ``history_``; greater is better.

    Attributes
    ----------
    name : str
        The suffix of its names in ``history_``.
    score : callable
        Called with two lists of label lists, true and predicted.
    hint : str
        Addition to the error message if it fails.
    """

    name: str
    score: Metric
    hint: str = ""

    def measure(self, y_true: LabelLists, y_pred: LabelLists) -> float:
        """The value; raises ValueError if the metric fails or is not finite."""
        try:
            with QUIET, warnings.catch_warnings():
                # In the first rounds some labels are never predicted, and an eval set may have few
                # labels.
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                warnings.filterwarnings("ignore", category=UserWarning, module=r"sklearn\.metrics")
                figure = self.score(y_true, y_pred)
        except (TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            message = f"eval_metric {self.name!r} cannot score {DATA}: {reason}{self.hint}"
            raise ValueError(message) from error
        if not isinstance(figure, Real) or not math.isfinite(figure):
            raise ValueError(
                f"eval_metric {self.name!r} gives {figure!r} for {DATA}; expected a finite number, "
                "the greater the better"
            )
        return float(figure)


@dataclass(frozen=True, eq=False)
class EvalMetrics:
    """Metrics for a model with known labels.

    Attributes
    ----------
    metrics : sequence of EvalMetric
        What is measured.
    classes : (K,) array
        The labels.
    """

    metrics: Sequence[EvalMetric]
    classes: NDArray[Any]

    def measure(
        self,
        true: NDArray[np.int32],
        predicted: NDArray[np.int32],
        offsets: NDArray[np.int64],
        strange: NDArray[Any] | None = None,
    ) -> dict[str, float]:
        """Values by name, from codes (N,) of true and predicted labels; -1 is an unknown label.

        Codes beyond those of the model stand for the labels ``strange``.
        """
        classes = self.classes if strange is None else np.concatenate([self.classes, strange])
        known = true >= 0
        cuts = np.concatenate([[0], np.cumsum(known)])[offsets]
        # Sequences without a known label are left out.
        cuts = cuts[np.flatnonzero(np.diff(cuts, prepend=-1))]
        y_true, y_pred = (
            [labels.tolist() for labels in np.split(classes[codes[known]], cuts[1:-1])]
            for codes in (true, predicted)
        )
        return {metric.name: metric.measure(y_true, y_pred) for metric in self.metrics}


def read_eval_metric(value: Any) -> tuple[tuple[str, ...], tuple[EvalMetric, ...]]:
    """Read the parameter ``eval_metric``: all names, and the metrics other than `ALWAYS`.

    Raises ValueError or TypeError if something is not a metric.
    """
    if value is None:
        return (), ()
    if isinstance(value, Mapping):
        named = [(_check_name(name), metric) for name, metric in value.items()]
    else:
        listed = list(value) if isinstance(value, list | tuple) else [value]
        named = [(_name_of(metric), metric) for metric in listed]
    names = tuple(name for name, _ in named)
    if not names:
        raise ValueError(f"eval_metric is {value!r}; {EXPECTED}")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"eval_metric has two metrics named {name!r}; pass a dict to give them other names"
            )
    return names, tuple(_read_metric(name, each) for name, each in named if name not in ALWAYS)


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable() or not name or name in ALWAYS:
        raise ValueError(
            f"eval_metric has the name {name!r}; expected a non-empty, printable string other "
            "than 'loss' and 'accuracy'"
        )
    return name


def _name_of(metric: Any) -> str:
    """The default name of a metric."""
    if isinstance(metric, str):
        return metric
    if isinstance(metric, type) or not callable(metric):
        raise TypeError(f"eval_metric is {metric!r}; {EXPECTED}")
    function = getattr(metric, "score_func", getattr(metric, "_score_func", metric))
    name = str(getattr(function, "__name__", type(function).__name__))
    if not name.isidentifier() or name in ALWAYS:
        problem = "whose name is taken" if name in ALWAYS else "without a name"
        raise ValueError(
            f"eval_metric has a function {problem}, {metric!r}; pass a dict, "
            "eval_metric={'name': ...}"
        )
    return name


def _read_metric(name: str, metric: Any) -> EvalMetric:
    if isinstance(metric, str):
        return EvalMetric(name, _find_named(metric))
    if isinstance(metric, type) or not callable(metric):
        raise TypeError(f"eval_metric[{name!r}] is {metric!r}; {EXPECTED}")
    if isinstance(metric, PositionScorer):
        _check_response(name, metric.response_method)
        return EvalMetric(name, partial(_score_lists, metric))
    if isinstance(metric, _scorer_class()):
        _check_response(name, metric._response_method)
        return EvalMetric(name, partial(_score_flat, metric))
    return EvalMetric(name, metric, HINT)


def _find_named(name: str) -> Metric:
    """A built-in metric, or one of scikit-learn's scorers that compare labels."""
    from sklearn.metrics import get_scorer, get_scorer_names

    if name in OWN:
        return OWN[name]
    names = get_scorer_names()
    if name not in names:
        of_labels = (n for n in names if get_scorer(n)._response_method == "predict")
        near = suggest(name, [*ALWAYS, *OWN, *of_labels])
        raise ValueError(f"eval_metric is {name!r}{near or f'; {EXPECTED}'}")
    scorer = get_scorer(name)
    _check_response(name, scorer._response_method)
    return partial(_score_flat, scorer)


def _check_response(name: str, response: Any) -> None:
    """Raise ValueError for a scorer that does not compare labels."""
    if response != "predict":
        raise ValueError(
            f"eval_metric has {name!r}, which compares probabilities; expected one that compares "
            "labels, such as 'f1_macro' or 'balanced_accuracy'"
        )


@cache
def _scorer_class() -> Any:
    """The class of the scorers from scikit-learn's make_scorer."""
    from sklearn.metrics import get_scorer

    return type(get_scorer("accuracy"))


class Answered(BaseEstimator):  # type: ignore[misc]
    """A stand-in for a model in scorers: the X that it is given are its predictions."""

    def predict(self, X: Any) -> Any:
        """The predictions."""
        return X


def _score_lists(scorer: PositionScorer, y_true: LabelLists, y_pred: LabelLists) -> float:
    return scorer(Answered(), list(map(np.array, y_pred)), y_true)


def _score_flat(scorer: Any, y_true: LabelLists, y_pred: LabelLists) -> float:
    flat = (np.array(list(chain.from_iterable(lists))) for lists in (y_pred, y_true))
    return float(scorer(Answered(), *flat))


def _score_sequences(y_true: LabelLists, y_pred: LabelLists) -> float:
    return label_scores(y_true, y_pred).sequence_accuracy


def _score_chunks(what: str, y_true: LabelLists, y_pred: LabelLists) -> float:
    labels = {*chain.from_iterable(y_true), *chain.from_iterable(y_pred)}
    if labels != {"O"} and not look_like_chunks(labels):
        raise ValueError(f"expected labels such as B-NP, I-NP and O, got {shorten(sorted(labels))}")
    return float(getattr(chunk_scores(y_true, y_pred), what))


OWN: dict[str, Metric] = {
    "sequence_accuracy": _score_sequences,
    **{f"chunk_{what}": partial(_score_chunks, what) for what in ("f1", "precision", "recall")},
}
