"""L-BFGS, for losses that are smooth.

scipy's L-BFGS-B takes several times the time and memory, for bounds that are not there, cannot be
interrupted and go on later, and its bits depend on the threads of BLAS.
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

# Steps that L-BFGS remembers, and iterations over which the loss must have fallen.
MEMORY = 6
PERIOD = 10

# Backtracking: a step must lower the loss by this share of what the slope promises; else it is
# halved, at most so often. Of a fresh direction, the plain gradient's, no scale is known.
PROMISE = 1e-4
MAX_HALVINGS = 20
MAX_FRESH_HALVINGS = 100
# Differences of the loss below this share of what it was at first may be rounding errors.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Minimum:
    """Where a minimisation stopped.

    Attributes
    ----------
    weights : (W,)
        The best weights found.
    loss : float
        Their loss.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the loss has settled.
    steepest : int or None
        If no step lowered the loss though its slope is steep: the weight with the steepest slope.
    """

    weights: Vector
    loss: float
    n_iter: int
    converged: bool
    steepest: int | None = None


# Gives weights and their loss after each iteration, and returns where it stopped.
Descent = Generator[tuple[Vector, float], None, Minimum]


def finish(descent: Descent) -> Minimum:
    """Go through all iterations."""
    while True:
        try:
            next(descent)
        except StopIteration as end:
            minimum: Minimum = end.value
            return minimum


@dataclass(frozen=True)
class Iterations:
    """Counts iterations, and says when it is enough.

    Attributes
    ----------
    max_iter, tol
        Enough are so many iterations, or that the last ten have lowered the loss by no more than
        `tol` times the loss; ``tol=0`` leaves only the first rule.
    losses : list of float
        The loss after each iteration; those that are there already count.
    """

    max_iter: int
    tol: float
    losses: list[float] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether it is enough."""
        if len(self.losses) >= self.max_iter:
            return True
        if self.tol == 0 or len(self.losses) <= PERIOD:
            return False
        loss = self.losses[-1]
        return self.losses[-1 - PERIOD] - loss <= self.tol * abs(loss)

    def rounding(self, loss: float) -> float:
        """Differences of the loss up to this may be rounding errors.

        `loss` is the initial loss if there were no iterations yet. A loss that is zero to begin
        with has slopes that are rounding errors.
        """
        return ROUNDING * max(abs(self.losses[0] if self.losses else loss), ROUNDING)

    def end(self, weights: Vector, loss: float, steepest: int | None = None) -> Minimum:
        """The minimum, found after these iterations; where no step lowers the loss, see there."""
        n_iter = len(self.losses)
        converged = n_iter < self.max_iter and steepest is None
        return Minimum(weights, loss, n_iter, converged, steepest)


def build_metric(n_weights: int) -> _core.InverseHessian:
    """A model of the curvature that knows nothing yet."""
    return _core.InverseHessian(n_weights, MEMORY)


def minimize(
    loss: Loss,
    weights: Vector,
    iterations: Iterations,
    metric: _core.InverseHessian,
    n_threads: int,
) -> Descent:
    """Minimise a smooth loss, which gives its value and gradient, from some weights on.

    ``metric`` is what is known of the curvature, and is taught in turn. With weights, iterations
    and metric as they were after an iteration, a minimisation goes on as if it had never stopped.
    """
    value, gradient = loss(weights)
    direction = np.empty_like(weights)
    while not iterations.over and gradient.any():
        fresh = metric.is_empty  # the direction is the plain gradient's, of no known scale
        metric.fill_direction(gradient, direction, n_threads)
        metric.make_room()
        ray = _Ray(loss, weights, direction, n_threads)
        step = ray.search(value, gradient, fresh)
        if step is not None:
            value, new_gradient = ray.at(step)[1:]
            ray.forget()  # the weights are made again: the metric needs as much memory first
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
    """A point with a lower loss, or none; then `Minimum.steepest`."""

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
    """Halve a step until it lowers the loss enough.

    Parameters
    ----------
    at
        Where a step of some size leads, and the loss there.
    weights, value, slopes
        Where it begins.
    direction
        That of the step, which is of size 1 at first. A fresh one has length 1 at most.
    iterations
        Iterations so far; their `tol` and first loss give the smallest decrease that counts.
    """
    if not direction.any():
        return Backtracking(None)
    size, most = 1.0, MAX_HALVINGS
    if fresh:
        size = 1.0 / max(1.0, float(np.sqrt(dot(direction, direction))))  # which may underflow
        most = MAX_FRESH_HALVINGS
    # At a minimum no step lowers the loss by more than rounding. A step d shows that this is none
    # if no part of it lowers the loss, although
    #     promise = -slopes . d > least  and  rise = loss(w + d) - loss(w) <= 2 * promise.
    # Why 2: on a parabola rise = curvature / 2 - promise, so that up to there a quarter of the step
    # would lower the loss; and where slopes have the wrong sign, the loss rises by about the
    # promise. A step with a larger rise is only too long. Nor is it a minimum where no loss is
    # finite.
    least = max(iterations.tol * abs(value), iterations.rounding(value))
    steep, finite = False, False
    for _ in range(most):
        point = at(size)
        promise = dot(slopes, weights - point[0])
        rise = point[1] - value
        if steep and -0.01 * least <= rise < 0:
            break  # a rounding error, where so much was promised
        if rise <= -PROMISE * promise and rise < 0:
            return Backtracking(point)
        finite |= bool(np.isfinite(rise))
        steep |= promise > least and rise <= 2 * promise
        if (point[0] == weights).all():
            break
        size /= 2
    return Backtracking(None, int(np.abs(slopes).argmax()) if steep or not finite else None)


class _Ray:
    """The loss along a ray; remembers its last point, for value and slope are asked for in turn."""

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
            self.forget()  # lets go of its vectors before new ones are made
            weights = self.weights_at(step)
            self._point, self._step = (weights, *self._loss(weights)), step
        assert self._point is not None
        return self._point

    def forget(self) -> None:
        """Let go of the last point."""
        self._point = self._step = None

    def weights_at(self, step: float) -> Vector:
        """Weights at a step from the origin."""
        weights = np.empty_like(self._origin)
        _core.fill_multiple(step, self._direction, self._origin, weights, self._n_threads)
        return weights

    def search(self, value: float, gradient: Vector, fresh: bool) -> float | None:
        """A step that meets the strong Wolfe conditions; None if none is found.

        Of a fresh direction no scale is known: its first step is about 1 long.
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
    """Dot product without BLAS, whose bits depend on the number of its threads.

    And those would go on spinning beside ours.
    """
    return float(np.einsum("i,i->", a, b))
