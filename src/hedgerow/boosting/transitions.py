"""Transitions: how the weights of label patterns move in a round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow.lbfgs import Iterations, build_metric, finish, minimize

__all__ = ["EXACT_EVERY", "bound_step", "exact_step"]

# Weights that are to be exact are so in one of so many rounds: between them trees change little,
# and every iteration of L-BFGS takes about as long as a round's own inference.
EXACT_EVERY = 8
EXACT_ITERATIONS = 4
# Patterns that occur less often than this share of the most frequent one count as if they did.
RAREST = 1e-4

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
    curvatures: Vector,
    *,
    reg_lambda: float,
    n_threads: int,
) -> Vector:
    """A few steps of L-BFGS towards the best weights, (P,); returns how far to move.

    As for a leaf, lambda holds back the step, not the weights.

    Parameters
    ----------
    measure
        The loss at some weights, and its slopes.
    weights : (P,)
        Where to begin.
    curvatures : (P,)
        About how much the loss curves: how often each pattern is expected to occur, and penalties.
    """
    if not len(weights):
        return np.zeros(0)
    # In steps by these units, and with the loss for each time that the most frequent pattern
    # occurs, the curvature of all patterns is about 1, and so is the size of a good step.
    curvatures = curvatures + reg_lambda
    largest = float(curvatures.max())
    if largest <= 0:
        return np.zeros(len(weights))
    units = np.sqrt((curvatures / largest).clip(min=RAREST))

    def penalised(point: Vector) -> tuple[float, Vector]:
        step = point / units
        loss, slopes = measure(weights + step)
        penalty = reg_lambda / 2 * float(np.einsum("p,p", step, step))
        return (loss + penalty) / largest, (slopes + reg_lambda * step) / (largest * units)

    iterations, start = Iterations(EXACT_ITERATIONS, 0.0), np.zeros(len(weights))
    descent = minimize(penalised, start, iterations, build_metric(len(weights)), n_threads)
    step: Vector = finish(descent).weights / units
    return step
