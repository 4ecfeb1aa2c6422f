"""OWL-QN: L-BFGS with an L1 penalty.

Within an orthant, where no weight changes its sign, the penalty is linear and the loss smooth. So
each iteration chooses the orthant that the steepest descent direction points into, follows the
quasi-Newton direction, whose slopes include the penalty and whose curvature is that of the loss
alone, and sets weights that would leave the orthant to zero (Andrew & Gao 2007, Scalable Training
of L1-Regularized Log-Linear Models). Unlike in the paper, a nonzero weight may move uphill if the
quasi-Newton direction does: a step that is short enough still decreases the loss, and if attributes
are correlated, far fewer iterations are needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.lbfgs import Descent, Iterations, Loss, Point, backtrack

__all__ = ["minimize_l1"]

Vector = NDArray[np.float64]

# A gradient that exceeds the penalty by no more than this share of it does so because of rounding.
NEGLIGIBLE = 1e-12


def minimize_l1(
    loss: Loss,
    weights: Vector,
    reg_alpha: float | Vector,
    iterations: Iterations,
    metric: _core.InverseHessian,
    n_threads: int,
) -> Descent:
    """Minimise ``loss(w) + sum(reg_alpha * |w|)``; weights may have penalties of their own, (W,).

    Everything else is as for `hedgerow.lbfgs.minimize`. `metric` approximates the inverse Hessian
    of the loss without the penalty.
    """

    def penalised(point: Vector) -> tuple[float, Vector]:
        value, gradient = loss(point)
        return value + float(np.sum(reg_alpha * np.abs(point))), gradient

    value, gradient = penalised(weights)
    direction = np.empty_like(weights)
    while not iterations.over:
        slopes = _steepest_slopes(weights, gradient, reg_alpha)
        if not slopes.any():
            break
        fresh = metric.is_empty
        metric.fill_direction(slopes, direction, n_threads)
        # Weights at zero must not leave the orthant. Signs are multiplied, since a product of tiny
        # numbers would underflow to zero.
        uphill = np.sign(direction) * np.sign(slopes) >= 0
        direction[(weights == 0) & uphill] = 0.0
        orthant = np.where(weights == 0, -np.sign(slopes), np.sign(weights))
        at = _ray(penalised, weights, direction, orthant)
        found = backtrack(at, weights, value, slopes, direction, iterations, fresh)
        if found.point is None:
            if fresh:  # no step decreases the loss any further
                return iterations.end(weights, value, found.steepest)
            metric.clear()
            continue
        new_weights, value, new_gradient = found.point
        step = np.subtract(new_weights, weights, out=direction)
        metric.push(step, 1.0, gradient, new_gradient, n_threads)
        weights, gradient = new_weights, new_gradient
        iterations.losses.append(value)
        yield weights, value
    return iterations.end(weights, value)


def _steepest_slopes(weights: Vector, gradient: Vector, reg_alpha: float | Vector) -> Vector:
    """Slopes of loss plus penalty, (W,).

    The penalty of a weight has a kink at zero: there, the slope is that of the side on which the
    loss decreases, or 0 if it increases on both sides.
    """
    excess = np.abs(gradient) - reg_alpha
    at_zero = np.where(excess > NEGLIGIBLE * reg_alpha, np.sign(gradient) * excess, 0.0)
    return np.where(weights == 0, at_zero, gradient + reg_alpha * np.sign(weights))


def _ray(
    penalised: Loss, weights: Vector, direction: Vector, orthant: Vector
) -> Callable[[float], Point]:
    """A function from step size to point: weights that would leave the orthant become zero."""

    def at(size: float) -> Point:
        point = size * direction
        point += weights
        point[point * orthant <= 0] = 0.0
        return point, *penalised(point)

    return at
