"""Transitions: how the weights of label patterns move in a round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow.lbfgs import Iterations, build_metric, minimize

__all__ = ["bound_step", "exact_step"]

# Iterations of L-BFGS in a round: the next round goes on from there.
EXACT_ITERATIONS = 3

Vector = NDArray[np.float64]


def bound_step(slopes: Vector, curvatures: Vector, *, reg_lambda: float, max_step: float) -> Vector:
    """The step (P,) that minimises the bound of Chen et al. (2015), Theorem 4.2.

    Parameters
    ----------
    slopes : (P,)
        How the loss changes with the weights.
    curvatures : (P,)
        Bound on how the slopes change: the sum over positions of gamma p (1 - p).
    reg_lambda, max_step
        As for a leaf, whose value is the same -G / (H + lambda).
    """
    divisor = curvatures + reg_lambda
    step = np.divide(-slopes, divisor, out=np.zeros_like(slopes), where=divisor > 0)
    return step.clip(-max_step, max_step)


def exact_step(
    measure: Callable[[Vector], tuple[float, Vector]],
    weights: Vector,
    *,
    reg_lambda: float,
    n_threads: int,
) -> Vector:
    """A few steps of L-BFGS towards the best weights, (P,); returns how far to move.

    ``measure`` gives the loss at some weights, and its slopes. As for a leaf, lambda holds back the
    step, not the weights.
    """
    if not len(weights):
        return np.zeros(0)

    def penalised(point: Vector) -> tuple[float, Vector]:
        loss, slopes = measure(point)
        step = point - weights
        return loss + reg_lambda / 2 * float(np.einsum("p,p", step, step)), (
            slopes + reg_lambda * step
        )

    iterations = Iterations(EXACT_ITERATIONS, 0.0, lambda point, loss: None)
    found = minimize(penalised, weights, iterations, build_metric(len(weights)), n_threads)
    step: Vector = found.weights - weights
    return step
