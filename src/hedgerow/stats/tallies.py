"""Tallies: counts per sequence, from whose sums a score is computed.

The score of a resample then takes only a sum of counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from hedgerow.labels.classes import shorten
from hedgerow.lazy import LazyAttributes, lazy
from hedgerow.metrics.chunks import count_chunks
from hedgerow.metrics.flat import is_of_positions
from hedgerow.metrics.known_chunks import look_like_chunks
from hedgerow.metrics.scores import Scores
from hedgerow.scorers import PositionScorer

__all__ = ["OWN", "ChunkMetric", "Tally", "tally_metric", "tally_shares"]

LabelLists = list[list[Any]]


@dataclass(frozen=True, eq=False)
class Tally(LazyAttributes):
    """Counts, and the score that is computed from their sums."""

    counts: csr_array
    """(S, C); SciPy adds up sparse arrays in a fixed order"""
    score: Callable[[NDArray[np.float64]], float]
    """Computes the score from sums of counts, (C,)."""

    def measure(self, weights: NDArray[np.float64]) -> float:
        """The score if sequences have these weights, (S,)."""
        return float(self.score(self._transposed @ weights))

    @lazy
    def _transposed(self) -> csc_array:
        """The counts as (C, S), kept because transposing takes longer than adding up."""
        return self.counts.T


@dataclass(frozen=True)
class ChunkMetric:
    """One of the scores of `chunk_scores`, with its options."""

    figure: str
    """f1, precision or recall"""
    scheme: str | None = None

    def tally(self, y_true: LabelLists, y_pred: LabelLists) -> Tally:
        """Numbers of true, predicted and correct chunks."""
        labels = {*chain.from_iterable(y_true), *chain.from_iterable(y_pred)}
        if self.scheme is None and labels != {"O"} and not look_like_chunks(labels):
            raise ValueError(
                f"{self.figure} of chunks needs labels such as B-NP, I-NP and O, got "
                f"{shorten(sorted(map(str, labels)))}"
            )
        counts = np.array(count_chunks(y_true, y_pred, self.scheme), np.float64)
        return Tally(csr_array(counts), self._score)

    def _score(self, sums: NDArray[np.float64]) -> float:
        return float(getattr(Scores.from_counts(*sums.tolist()), self.figure))


# Metrics that have a name here.
OWN: dict[str, Any] = {
    "accuracy": "accuracy",
    "sequence_accuracy": "sequence_accuracy",
    **{f"chunk_{figure}": ChunkMetric(figure) for figure in ("f1", "precision", "recall")},
}


def tally_metric(metric: Any, y_true: LabelLists, y_pred: LabelLists) -> Tally | None:
    """Counts for a metric; None if it is an arbitrary function.

    Parameters
    ----------
    metric
        "accuracy", "sequence_accuracy", a `ChunkMetric`, or a metric that depends only on the
        confusion matrix of the labels.
    y_true, y_pred
        Labels of each sequence, all of them known.
    """
    if isinstance(metric, ChunkMetric):
        return metric.tally(y_true, y_pred)
    if metric in ("accuracy", "sequence_accuracy"):
        pairs = zip(y_true, y_pred, strict=True)
        right = np.array([sum(map(_equal, *pair)) for pair in pairs])
        known = np.array(list(map(len, y_true)))
        whole = metric == "sequence_accuracy"
        return (
            tally_shares(right == known, np.ones(len(known)))
            if whole
            else tally_shares(right, known)
        )
    if isinstance(metric, PositionScorer):
        sign, options = (1 if metric.greater_is_better else -1), metric.kwargs or {}
        return _tally_pairs(
            lambda true, guess, sample_weight: (
                sign * metric.score_func(true, guess, sample_weight=sample_weight, **options)
            ),
            y_true,
            y_pred,
        )
    return _tally_pairs(metric, y_true, y_pred) if is_of_positions(metric) else None


def tally_shares(right: NDArray[Any], total: NDArray[Any]) -> Tally:
    """The tally of a share: numbers of correct labels, and of all labels, of each sequence."""
    counts = np.stack([right, total], axis=1).astype(np.float64)
    return Tally(csr_array(counts), lambda sums: float(sums[0] / sums[1]))


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)


def _tally_pairs(metric: Callable[..., Any], y_true: LabelLists, y_pred: LabelLists) -> Tally:
    """Count of each pair of true and predicted label."""
    pairs = list(zip(chain.from_iterable(y_true), chain.from_iterable(y_pred), strict=True))
    numbers: dict[Any, int] = {}
    for pair in pairs:
        numbers.setdefault(pair, len(numbers))
    offsets = np.concatenate([[0], np.cumsum(list(map(len, y_true)))])
    codes = np.fromiter(map(numbers.__getitem__, pairs), np.int64, len(pairs))
    shape = (len(y_true), len(numbers))
    counts = csr_array((np.ones(len(pairs)), codes, offsets), shape=shape)
    counts.sum_duplicates()
    true, predicted = (np.array(side) for side in zip(*numbers, strict=True))

    def score(sums: NDArray[np.float64]) -> float:
        # Labels that do not occur must not be seen, for macro averages.
        there = sums > 0
        return float(metric(true[there], predicted[there], sample_weight=sums[there]))

    return Tally(counts, score)
