"""Calibration: whether labels are correct as often as their marginals say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.report.blob import round_off

# Number of equally wide bins of probabilities.
N_BINS = 10


@dataclass(frozen=True, eq=False)
class Calibration:
    """Sums over positions, by bins of probabilities.

    Row 0 is for the most probable label of each position, row 1 + k for label k, whatever its rank.

    Attributes
    ----------
    counts : (1 + K, N_BINS) int64
        Number of positions.
    probs : (1 + K, N_BINS) float64
        Sum of the probabilities.
    right : (1 + K, N_BINS) int64
        Number of positions where the label was the true one.
    """

    counts: NDArray[np.int64]
    probs: NDArray[np.float64]
    right: NDArray[np.int64]

    @classmethod
    def empty(cls, n_labels: int) -> Calibration:
        """Sums over no positions."""
        shape = (1 + n_labels, N_BINS)
        return cls(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, np.int64))

    def add(self, marginals: NDArray[np.float64], truth: NDArray[np.int32]) -> None:
        """Count positions: marginals (N, K), and the true labels (N,), -1 where not known."""
        marginals, truth = marginals[truth >= 0], truth[truth >= 0]
        best = marginals.argmax(axis=1)
        probs = np.concatenate([marginals.max(axis=1, keepdims=True), marginals], axis=1)
        right = np.concatenate(
            [(best == truth)[:, None], truth[:, None] == np.arange(marginals.shape[1])], axis=1
        )
        bins = np.minimum((probs * N_BINS).astype(np.int64), N_BINS - 1)
        cells = (bins + N_BINS * np.arange(probs.shape[1])).ravel()
        shape = self.counts.shape
        self.counts[:] += np.bincount(cells, minlength=self.counts.size).reshape(shape)
        self.probs[:] += np.bincount(cells, probs.ravel(), self.counts.size).reshape(shape)
        self.right[:] += np.bincount(cells[right.ravel()], minlength=self.counts.size).reshape(
            shape
        )

    def errors(self) -> NDArray[np.float64]:
        """Expected calibration error of each row, (1 + K,): the mean gap of the bins."""
        gaps = np.abs(self.probs - self.right).sum(axis=1)
        errors: NDArray[np.float64] = gaps / np.maximum(self.counts.sum(axis=1), 1)
        return errors

    def to_json(self) -> dict[str, Any]:
        """Counts, mean probabilities and shares of correct labels, row by row."""
        counts = np.maximum(self.counts, 1)
        return {
            "errors": round_off(self.errors()),
            "counts": self.counts.tolist(),
            "probs": [round_off(row) for row in self.probs / counts],
            "right": [round_off(row) for row in self.right / counts],
        }
