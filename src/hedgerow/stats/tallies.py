"""Tallies: counts of each sequence, whose sums over any sequences give their score.

With them a score of resampled sequences costs an addition of counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.chunks import count_chunks
from hedgerow.metrics.flat import is_of_positions
from hedgerow.metrics.scores import Scores
from hedgerow.scorers import PositionScorer

__all__ = ["CHUNK_FIGURES", "Tally", "tally_chunks", "tally_metric"]

LabelLists = list[list[Any]]
CHUNK_FIGURES = {f"chunk_{what}": what for what in ("f1", "precision", "recall")}


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts, and the score that follows from sums of them."""

    counts: Any
    """(S, C), an array or a sparse one"""
    score: Callable[[NDArray[np.float64]], float]
    """From sums (C,)."""

    def measure(self, weights: NDArray[np.float64]) -> float:
        """The score if sequences count for so much, (S,)."""
        return float(self.score(weights @ self.counts))


def tally_metric(metric: Any, y_true: LabelLists, y_pred: LabelLists) -> Tally | None:
    """Counts for a metric; None if it is a function of which nothing is known.

    Parameters
    ----------
    metric
        "accuracy", "sequence_accuracy", one of `CHUNK_FIGURES`, or a metric that depends only on
        how often a label was predicted for another.
    y_true, y_pred
        Labels of each sequence, all of them known.
    """
    if isinstance(metric, str) and metric in CHUNK_FIGURES:
        return tally_chunks(CHUNK_FIGURES[metric], y_true, y_pred)
    if metric in ("accuracy", "sequence_accuracy"):
        right = [sum(map(_equal, true, guess)) for true, guess in zip(y_true, y_pred, strict=True)]
        counts = np.array([right, list(map(len, y_true))], np.float64).T
        if metric == "sequence_accuracy":
            counts = np.stack([counts[:, 0] == counts[:, 1], np.ones(len(counts))], axis=1)
        return Tally(counts, lambda sums: float(sums[0] / sums[1]))
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


def tally_chunks(
    figure: str, y_true: LabelLists, y_pred: LabelLists, scheme: str | None = None
) -> Tally:
    """Counts of chunks, for their "f1", "precision" or "recall"."""
    counts = np.array(count_chunks(y_true, y_pred, scheme), np.float64).reshape(-1, 3)
    return Tally(counts, lambda sums: float(getattr(Scores.from_counts(*sums.tolist()), figure)))


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)


def _tally_pairs(metric: Callable[..., Any], y_true: LabelLists, y_pred: LabelLists) -> Tally:
    """How often a label was predicted for another."""
    from scipy.sparse import csr_array

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
        # What does not occur must not be seen, for macro averages.
        there = sums > 0
        return float(metric(true[there], predicted[there], sample_weight=sums[there]))

    return Tally(counts, score)
