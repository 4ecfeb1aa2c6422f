"""L-BFGS, without and with an L1 penalty.

Without one nothing is bounded: scipy's line search goes along our own quasi-Newton direction,
because scipy's L-BFGS-B takes several times the time and memory for bounds that are not there. With
one the weights are split into two parts that are not negative, which L-BFGS-B is made for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from hedgerow import _core

Vector = NDArray[np.float64]
Loss = Callable[[Vector], tuple[float, Vector]]

# Steps that L-BFGS remembers, and iterations over which the loss must have fallen.
MEMORY = 6
PERIOD = 10


@dataclass(frozen=True)
class Minimum:
    """Where L-BFGS stopped."""

    weights: Vector
    loss: float
    n_iter: int
    converged: bool


class Iterations:
    """Counts iterations, reports on each, and says when it is enough."""

    def __init__(self, max_iter: int, tol: float, report: Callable[[Vector, float], None]) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.report = report
        self.losses: list[float] = []

    def settled(self, weights: Vector, loss: float) -> bool:
        """Note one more iteration; True if the last ten have hardly lowered the loss."""
        self.losses.append(loss)
        self.report(weights, loss)
        if self.tol == 0 or len(self.losses) <= PERIOD:
            return False
        return self.losses[-1 - PERIOD] - loss <= self.tol * abs(loss)


def minimize(
    loss: Loss,
    start: Vector,
    *,
    reg_alpha: float = 0.0,
    max_iter: int,
    tol: float,
    n_threads: int,
    report: Callable[[Vector, float], None],
    metric: _core.InverseHessian | None = None,
) -> Minimum:
    """Minimise ``loss(w) + reg_alpha * |w|_1``; `loss` gives its value and gradient.

    Stops after `max_iter` iterations, or when ten iterations have lowered the loss by no more than
    `tol` times the loss; ``tol=0`` leaves only the first rule. ``report(w, loss)`` is called after
    each iteration. ``metric`` is what is known of the curvature from another loss, and is taught in
    turn; without an L1 penalty only.
    """
    iterations = Iterations(max_iter, tol, report)
    if reg_alpha == 0:
        metric = build_metric(len(start)) if metric is None else metric
        weights, value = _minimize_smooth(loss, start, iterations, metric, n_threads)
    else:
        weights, value = _minimize_split(loss, start, reg_alpha, iterations)
    n_iter = len(iterations.losses)
    return Minimum(weights, value, n_iter, converged=n_iter < max_iter)


def build_metric(n_weights: int) -> _core.InverseHessian:
    """A model of the curvature that knows nothing yet."""
    return _core.InverseHessian(n_weights, MEMORY)


def _minimize_smooth(
    loss: Loss,
    weights: Vector,
    iterations: Iterations,
    inverse_hessian: _core.InverseHessian,
    n_threads: int,
) -> tuple[Vector, float]:
    value, gradient = loss(weights)
    direction = np.empty_like(weights)
    # Whether the direction is the plain gradient's, of no known scale.
    fresh = inverse_hessian.is_empty
    while len(iterations.losses) < iterations.max_iter and gradient.any():
        inverse_hessian.fill_direction(gradient, direction, n_threads)
        ray = _Ray(loss, weights, direction)
        step = ray.search(value, gradient, fresh)
        if step is None:
            if fresh:  # no step lowers the loss any further
                break
            inverse_hessian.clear()
            fresh = True
            continue
        weights, value, new_gradient = ray.at(step)
        direction *= step
        change = np.subtract(new_gradient, gradient, out=gradient)
        inverse_hessian.push(direction, change, n_threads)
        gradient, fresh = new_gradient, False
        if iterations.settled(weights, value):
            break
    return weights, value


class _Ray:
    """The loss along a ray; remembers its last point, for value and slope are asked for in turn."""

    def __init__(self, loss: Loss, origin: Vector, direction: Vector) -> None:
        self._loss = loss
        self._origin = origin
        self._direction = direction
        self._step: float | None = None
        self._point: tuple[Vector, float, Vector] | None = None

    def at(self, step: float) -> tuple[Vector, float, Vector]:
        """Weights, loss and gradient at a step from the origin."""
        if step != self._step:
            self._point = None  # lets go of its vectors before new ones are made
            weights = step * self._direction
            weights += self._origin
            self._point = (weights, *self._loss(weights))
            self._step = step
        assert self._point is not None
        return self._point

    def search(self, value: float, gradient: Vector, fresh: bool) -> float | None:
        """A step that meets the strong Wolfe conditions; None if none is found.

        scipy sees only the step, a vector of one number: the long vectors stay out of BLAS, whose
        threads would go on spinning beside ours.
        """
        # A fresh direction is tried as if the last step had lowered the loss by this much.
        value_before = value + float(np.sqrt(_dot(gradient, gradient))) / 2 if fresh else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that no step was found is said by the result
            found = optimize.line_search(
                lambda x: self.at(float(x[0]))[1],
                lambda x: np.array([_dot(self.at(float(x[0]))[2], self._direction)]),
                np.zeros(1),
                np.ones(1),
                np.array([_dot(gradient, self._direction)]),
                value,
                value_before,
                maxiter=20,
            )
        return None if found[0] is None else float(found[0])


def _dot(a: Vector, b: Vector) -> float:
    """Dot product without BLAS."""
    return float(np.einsum("i,i->", a, b))


def _minimize_split(
    loss: Loss, start: Vector, reg_alpha: float, iterations: Iterations
) -> tuple[Vector, float]:
    n_weights = len(start)

    def joined(x: Vector) -> Vector:
        return x[:n_weights] - x[n_weights:]

    def split_loss(x: Vector) -> tuple[float, Vector]:
        value, gradient = loss(joined(x))
        slopes = np.concatenate([gradient + reg_alpha, reg_alpha - gradient])
        return value + reg_alpha * float(x.sum()), slopes

    def callback(intermediate_result: optimize.OptimizeResult) -> None:
        weights, value = joined(intermediate_result.x), float(intermediate_result.fun)
        if iterations.settled(weights, value):
            raise StopIteration

    found = optimize.minimize(
        split_loss,
        np.concatenate([start.clip(min=0), (-start).clip(min=0)]),
        jac=True,
        method="L-BFGS-B",
        bounds=optimize.Bounds(np.zeros(2 * n_weights), np.inf),
        callback=callback,
        options={
            "maxiter": iterations.max_iter,
            "maxfun": np.iinfo(np.int32).max,
            "maxcor": MEMORY,
            "ftol": 0.0,
            "gtol": 1e-10,
        },
    )
    return joined(found.x), float(found.fun)
