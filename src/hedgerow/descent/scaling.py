"""Scaling: units of the weights that make training independent of the units of the attributes.

The curvature of the loss along the weights of an attribute grows with the sum of its squared
values, and the penalty adds reg_lambda. If one attribute is a year and another a number around 1,
curvatures differ by a factor of millions, and no step size suits both weights. So training works
with weights in other units, u = scale * w, and values / scale, which give the same scores. With the
scale, the attribute has the same curvature as one that is 1 wherever it is not zero: with n nonzero
values, and a curvature of the log-likelihood of at most 1/4,

    (sum of squares / 4 + reg_lambda) / scale^2 = n / 4 + reg_lambda.

It is rounded to a power of two, by which numbers are multiplied without rounding errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.exact_sums import SumGrid, count_all, largest_of_all
from hedgerow.linear.weights import LinearLayout
from hedgerow.sequences import SparseRows

__all__ = ["UNSCALED", "Scaling"]

Vector = NDArray[np.float64]

# Below 2^SMALLEST, the weight of an attribute would overflow.
SMALLEST = -500
# Small integers often give a scale of exactly 2^(n + 1/2): with this added to the exponent,
# rounding errors do not decide between 2^n and 2^(n + 1).
NUDGE = 1e-6
# Minimum penalty of scaled weights, relative to the penalty of the weights themselves.
LEAST_PENALTY = 2.0**-26
# Number of entries that are processed at a time.
BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Scaling:
    """Converts weights to the units of training, and back.

    Attributes
    ----------
    attributes : (A,) or None
        Scale of each attribute; None: all are 1.
    weights : (W,) or None
        Scale of each weight, likewise: that of its attribute, and 1 for biases and label patterns.
    """

    attributes: Vector | None = None
    weights: Vector | None = None

    @classmethod
    def of(
        cls,
        rows: SparseRows,
        position_weights: Vector | None,
        layout: LinearLayout,
        n_patterns: int,
        reg_lambda: float,
        comm: Comm = ALONE,
    ) -> Scaling:
        """The scaling of a training set of all workers, with weights of positions (N,) or 1."""
        if all(comm.gather(rows.values is None)):
            return UNSCALED
        if rows.values is None:
            rows = replace(rows, values=np.ones(len(rows.indices)))
        scales = _find_scales(rows, position_weights, reg_lambda, comm)
        if (scales == 1).all():
            return UNSCALED
        of_labels = scales[layout.labels.attribute_of_weight()]
        of_edges = scales[[] if layout.edges is None else layout.edges.attribute_of_weight()]
        others = np.ones(layout.n_labels + n_patterns)
        return cls(scales, np.concatenate([of_labels, of_edges, others]))

    def scale_rows(self, rows: SparseRows) -> SparseRows:
        """Attributes divided by their scale."""
        if self.attributes is None:
            return rows
        assert rows.values is not None
        return replace(rows, values=rows.values / self.attributes[rows.indices])

    def scale(self, weights: Vector) -> Vector:
        """Weights in the units of training."""
        return weights if self.weights is None else weights * self.weights

    def unscale(self, weights: Vector) -> Vector:
        """Weights in the units of the attributes.

        The same division converts gradients to the units of training.
        """
        return weights if self.weights is None else weights / self.weights

    def divide_penalty(self, reg_lambda: float | Vector) -> float | Vector:
        """Strength of the L2 penalty for weights in the units of training, of all or of each, (W,).

        A minimum, too small to change the loss, keeps penalties from vanishing in rounding errors.
        """
        if self.weights is None:
            return reg_lambda
        return reg_lambda * np.maximum(self.weights**-2.0, LEAST_PENALTY)


UNSCALED = Scaling()


def _find_scales(
    rows: SparseRows, position_weights: Vector | None, reg_lambda: float, comm: Comm
) -> Vector:
    """The scale of each attribute, (A,)."""
    assert rows.values is not None
    n_attributes, n_entries = rows.n_columns, len(rows.indices)
    parts = [slice(first, first + BLOCK) for first in range(0, n_entries, BLOCK)]
    weights = None  # of each entry
    if position_weights is not None:
        weights = np.repeat(position_weights, np.diff(rows.indptr))
    heaviest = 1.0 if weights is None else float(weights.max(initial=0.0))
    grid = SumGrid(count_all(n_entries, comm) * largest_of_all(heaviest, comm))
    largest, counts, squares = np.zeros((3, n_attributes))
    for part in parts:
        np.maximum.at(largest, rows.indices[part], np.abs(rows.values[part]))
    largest = comm.max(largest)
    largest[largest == 0] = 1.0
    for part in parts:  # divided by the largest value, squares cannot overflow
        indices = rows.indices[part]
        shares = rows.values[part] / largest[indices]
        by_weight = 1.0 if weights is None else weights[part]
        by_weight = grid.round(np.broadcast_to(by_weight, len(indices)))
        counts += np.bincount(indices, by_weight, n_attributes)
        squares += np.bincount(indices, grid.round(by_weight * shares**2), n_attributes)
    counts, squares = grid.share(np.stack([counts, squares]), comm)
    occurs = squares > 0
    counts[~occurs] = 1.0
    penalty = 2 * np.sqrt(reg_lambda)
    scales = np.hypot(largest * np.sqrt(squares), penalty) / np.hypot(np.sqrt(counts), penalty)
    scales[~occurs] = 1.0  # attributes that never occur, or have no weight
    powers: Vector = np.exp2(np.round(np.log2(scales) + NUDGE).clip(SMALLEST, None))
    return powers
