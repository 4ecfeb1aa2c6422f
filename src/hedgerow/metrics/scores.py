"""Precision, recall and F1 from three counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1, 0 to 1, and the counts that they are computed from."""

    precision: float
    recall: float
    f1: float
    n_true: int
    n_predicted: int
    n_correct: int

    @classmethod
    def from_counts(cls, n_true: int, n_predicted: int, n_correct: int) -> Scores:
        """Compute the scores; a score with a denominator of 0 is 0."""
        precision = n_correct / n_predicted if n_predicted else 0.0
        recall = n_correct / n_true if n_true else 0.0
        f1 = 2 * n_correct / (n_true + n_predicted) if n_correct else 0.0
        return Scores(precision, recall, f1, n_true, n_predicted, n_correct)
