"""OWL-QN: L-BFGS with an L1 penalty.

Within an orthant, where no weight changes its sign, the penalty is linear and all is smooth. So
each iteration chooses the orthant that the steepest descent leads into, goes along the quasi-Newton
direction of the loss without the penalty, and sets weights that would leave the orthant to zero
(Andrew & Gao 2007, Scalable Training of L1-Regularized Log-Linear Models). Unlike there, a weight
that is not zero may go uphill if the quasi-Newton direction does: a step that is short enough still
lowers the loss, and where attributes are correlated far fewer iterations are needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.linear.lbfgs import Iterations, Loss, Minimum, dot

__all__ = ["minimize_l1"]

Vector = NDArray[np.float64]

# A step must lower the loss by this share of what the slope promises; else it is halved, so often
# at most. Of a fresh direction no scale is known, and it depends on that of the attributes.
PROMISE = 1e-4
MAX_HALVINGS = 20
MAX_FRESH_HALVINGS = 100


def minimize_l1(
    loss: Loss,
    weights: Vector,
    reg_alpha: float,
    iterations: Iterations,
    metric: _core.InverseHessian,
    n_threads: int,
) -> Minimum:
    """Minimise ``loss(w) + reg_alpha * |w|_1``.

    All else is as for `hedgerow.linear.lbfgs.minimize`. The metric is that of the loss alone.
    """

    def penalised(point: Vector) -> tuple[float, Vector]:
        value, gradient = loss(point)
        return value + reg_alpha * float(np.abs(point).sum()), gradient

    value, gradient = penalised(weights)
    direction = np.empty_like(weights)
    while not iterations.over:
        slopes = _steepest_slopes(weights, gradient, reg_alpha)
        if not slopes.any():
            break
        fresh = metric.is_empty
        metric.fill_direction(slopes, direction, n_threads)
        direction[(weights == 0) & (direction * slopes >= 0)] = 0.0  # not out of the orthant
        found = _search(penalised, weights, value, slopes, direction, fresh)
        if found is None:
            if fresh:  # no step lowers the loss any further
                break
            metric.clear()
            continue
        new_weights, value, new_gradient = found
        step = np.subtract(new_weights, weights, out=direction)
        change = np.subtract(new_gradient, gradient, out=gradient)
        metric.push(step, change, n_threads)
        weights, gradient = new_weights, new_gradient
        iterations.note(weights, value)
    return iterations.end(weights, value)


def _steepest_slopes(weights: Vector, gradient: Vector, reg_alpha: float) -> Vector:
    """Slopes of loss and penalty; at zero, where there are two, those towards the steeper descent.

    Zero where both sides lead uphill.
    """
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - reg_alpha, 0.0)
    return np.where(weights == 0, at_zero, gradient + reg_alpha * np.sign(weights))


def _search(
    penalised: Loss, weights: Vector, value: float, slopes: Vector, direction: Vector, fresh: bool
) -> tuple[Vector, float, Vector] | None:
    """Weights, loss and gradient after a step that lowers the loss enough; None if none does."""
    orthant = np.where(weights == 0, -np.sign(slopes), np.sign(weights))
    size, most = 1.0, MAX_HALVINGS
    if fresh:  # the first step has length 1 at most
        size = min(1.0, 1.0 / float(np.sqrt(dot(direction, direction))))
        most = MAX_FRESH_HALVINGS
    for _ in range(most):
        point = size * direction
        point += weights
        point[point * orthant <= 0] = 0.0
        if (point == weights).all():
            break
        new_value, gradient = penalised(point)
        if new_value <= value + PROMISE * dot(slopes, point - weights) and new_value < value:
            return point, new_value, gradient
        size /= 2
    return None
