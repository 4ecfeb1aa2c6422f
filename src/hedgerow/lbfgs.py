"""L-BFGS, for smooth losses.

scipy's L-BFGS-B takes several times the time and memory for bounds that are not needed, cannot be
interrupted and resumed, and its result depends on the threads of BLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.line_search import Trial, search

__all__ = [
    "Descent",
    "Iterations",
    "Loss",
    "Minimum",
    "Point",
    "backtrack",
    "build_metric",
    "dot",
    "finish",
    "minimize",
]

Vector = NDArray[np.float64]
Loss = Callable[[Vector], tuple[float, Vector]]
# Weights, the loss there, and its gradient.
Point = tuple[Vector, float, Vector]

# Number of steps that L-BFGS remembers, and of iterations over which the loss must decrease.
MEMORY = 6
PERIOD = 10

# Backtracking: a step must decrease the loss by this share of the linear prediction; otherwise it
# is halved, at most this many times. A fresh direction, the plain gradient, has no known scale.
PROMISE = 1e-4
MAX_HALVINGS = 20
MAX_FRESH_HALVINGS = 100
# Differences of the loss below this share of the first loss may be rounding errors.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Minimum:
    """The result of a minimisation.

    Attributes
    ----------
    weights : (W,)
        The best weights found.
    loss : float
        Their loss.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the loss has converged.
    steepest : int or None
        If no step decreased the loss although its slope is steep: the weight with the steepest
        slope.
    """

    weights: Vector
    loss: float
    n_iter: int
    converged: bool
    steepest: int | None = None


# Yields weights and their loss after each iteration, and returns the result.
Descent = Generator[tuple[Vector, float], None, Minimum]


def finish(descent: Descent) -> Minimum:
    """Run all iterations."""
    while True:
        try:
            next(descent)
        except StopIteration as end:
            minimum: Minimum = end.value
            return minimum


@dataclass(frozen=True)
class Iterations:
    """Counts iterations, and decides when to stop.

    Attributes
    ----------
    max_iter, tol
        Stop after `max_iter` iterations, or if the last ten have decreased the loss by no more than
        `tol` times the loss; ``tol=0`` turns the second rule off.
    losses : list of float
        The loss after each iteration, including those before training was resumed.
    """

    max_iter: int
    tol: float
    losses: list[float] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether to stop."""
        if len(self.losses) >= self.max_iter:
            return True
        if self.tol == 0 or len(self.losses) <= PERIOD:
            return False
        loss = self.losses[-1]
        return self.losses[-1 - PERIOD] - loss <= self.tol * abs(loss)

    def rounding(self, loss: float) -> float:
        """Differences of the loss up to this may be rounding errors.

        It is `ROUNDING` times the loss after the first iteration, or times `loss` before that; at
        least ``ROUNDING**2``, in case that loss is zero.
        """
        return ROUNDING * max(abs(self.losses[0] if self.losses else loss), ROUNDING)

    def end(self, weights: Vector, loss: float, steepest: int | None = None) -> Minimum:
        """The minimum, found after these iterations."""
        n_iter = len(self.losses)
        converged = n_iter < self.max_iter and steepest is None
        return Minimum(weights, loss, n_iter, converged, steepest)


def build_metric(n_weights: int) -> _core.InverseHessian:
    """An initial model of the curvature."""
    return _core.InverseHessian(n_weights, MEMORY)


def minimize(
    loss: Loss,
    weights: Vector,
    iterations: Iterations,
    metric: _core.InverseHessian,
    n_threads: int,
) -> Descent:
    """Minimise a smooth loss, which returns its value and gradient, starting from some weights.

    ``metric`` is the current estimate of the curvature, which is updated. With the weights,
    iterations and metric after an iteration, minimisation continues as if it had never stopped.
    """
    value, gradient = loss(weights)
    direction = np.empty_like(weights)
    while not iterations.over and gradient.any():
        fresh = metric.is_empty  # the direction is the plain gradient, of unknown scale
        metric.fill_direction(gradient, direction, n_threads)
        metric.make_room()
        ray = _Ray(loss, weights, direction, n_threads)
        step = ray.search(value, gradient, fresh)
        if step is not None:
            value, new_gradient = ray.at(step)[1:]
            ray.forget()  # the weights are recomputed: the metric needs the memory first
            metric.push(direction, step, gradient, new_gradient, n_threads)
            gradient = new_gradient
            weights = ray.weights_at(step)
        elif not fresh:
            metric.clear()
            continue
        else:
            found = backtrack(ray.at, weights, value, gradient, direction, iterations, fresh)
            if found.point is None or value - found.point[1] <= iterations.rounding(value):
                return iterations.end(weights, value, found.steepest)  # there is no lower loss
            np.subtract(found.point[0], weights, out=direction)
            metric.push(direction, 1.0, gradient, found.point[2], n_threads)
            weights, value, gradient = found.point
        iterations.losses.append(value)
        yield weights, value
    return iterations.end(weights, value)


@dataclass(frozen=True)
class Backtracking:
    """A point with a lower loss; if there is none, None and `Minimum.steepest`."""

    point: Point | None
    steepest: int | None = None


def backtrack(
    at: Callable[[float], Point],
    weights: Vector,
    value: float,
    slopes: Vector,
    direction: Vector,
    iterations: Iterations,
    fresh: bool,
) -> Backtracking:
    """Halve a step until it decreases the loss enough.

    Parameters
    ----------
    at
        The point after a step of some size, and the loss there.
    weights, value, slopes
        The point where the step begins, the loss there, and its gradient.
    direction
        Direction of the step; the first size that is tried is 1.
    iterations
        Iterations so far; their `tol` and first loss give the smallest relevant decrease.
    fresh
        Whether the direction is the plain gradient, whose scale is not known: the first step then
        has a length of at most 1.
    """
    if not direction.any():
        return Backtracking(None)
    size, most = 1.0, MAX_HALVINGS
    if fresh:
        size = 1.0 / max(1.0, float(np.sqrt(dot(direction, direction))))  # which may underflow
        most = MAX_FRESH_HALVINGS
    # At a minimum no step lowers the loss by more than rounding errors. A step d of which no part
    # lowers the loss shows that this is not a minimum, but that slopes and loss disagree, if
    #     promise = -slopes . d > least  and  rise = loss(w + d) - loss(w) <= 2 * promise.
    # Why 2: on a parabola rise = curvature / 2 - promise, so a quarter of any such step would lower
    # the loss; and if slopes have the wrong sign, the loss rises by about the promise. A step with
    # a larger rise is merely too long. A point is not a minimum either if no loss near it is
    # finite.
    least = max(iterations.tol * abs(value), iterations.rounding(value))
    steep, finite = False, False
    for _ in range(most):
        point = at(size)
        promise = dot(slopes, weights - point[0])
        rise = point[1] - value
        if steep and -0.01 * least <= rise < 0:
            break  # a rounding error, compared with the prediction
        if rise <= -PROMISE * promise and rise < 0:
            return Backtracking(point)
        finite |= bool(np.isfinite(rise))
        steep |= promise > least and rise <= 2 * promise
        if (point[0] == weights).all():
            break
        size /= 2
    return Backtracking(None, int(np.abs(slopes).argmax()) if steep or not finite else None)


class _Ray:
    """The loss along a ray; caches its last point, since value and slope are requested in turn."""

    def __init__(self, loss: Loss, origin: Vector, direction: Vector, n_threads: int) -> None:
        self._loss = loss
        self._origin = origin
        self._direction = direction
        self._n_threads = n_threads
        self._step: float | None = None
        self._point: Point | None = None

    def at(self, step: float) -> Point:
        """Weights, loss and gradient at a step from the origin."""
        if step != self._step:
            self.forget()  # releases its vectors before new ones are allocated
            weights = self.weights_at(step)
            self._point, self._step = (weights, *self._loss(weights)), step
        assert self._point is not None
        return self._point

    def forget(self) -> None:
        """Discard the last point."""
        self._point = self._step = None

    def weights_at(self, step: float) -> Vector:
        """Weights at a step from the origin."""
        weights = np.empty_like(self._origin)
        _core.fill_multiple(step, self._direction, self._origin, weights, self._n_threads)
        return weights

    def search(self, value: float, gradient: Vector, fresh: bool) -> float | None:
        """A step that satisfies the strong Wolfe conditions; None if none is found.

        A fresh direction has no known scale: its first step has a length of at most about 1.
        """

        def try_step(step: float) -> Trial:
            _, value, gradient = self.at(step)
            return Trial(step, value, dot(gradient, self._direction))

        start = Trial(0.0, value, dot(gradient, self._direction))
        length = float(np.sqrt(dot(gradient, gradient))) if fresh else 1.0
        first = 1.01 / length if length > 1.01 else 1.0
        step = search(try_step, start, first)
        if step is None or not self.at(step)[1] <= value:
            return None
        return step


def dot(a: Vector, b: Vector) -> float:
    """Dot product without BLAS, whose result depends on the number of its threads.

    Also, those threads would keep spinning next to ours.
    """
    return float(np.einsum("i,i->", a, b))
