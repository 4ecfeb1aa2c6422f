"""L-BFGS, with an L1 penalty where wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Vector = NDArray[np.float64]

# Corrections that L-BFGS remembers, and iterations over which the loss must have fallen.
MEMORY = 6
PERIOD = 10


@dataclass(frozen=True)
class Minimum:
    """Where L-BFGS stopped."""

    weights: Vector
    loss: float
    n_iter: int
    converged: bool


def minimize(
    loss: Callable[[Vector], tuple[float, Vector]],
    start: Vector,
    *,
    reg_alpha: float = 0.0,
    max_iter: int,
    tol: float,
    after_iteration: Callable[[Vector, float], None],
) -> Minimum:
    """Minimise ``loss(w) + reg_alpha * |w|_1``.

    The L1 penalty is made smooth by writing w as the difference of two parts that are not negative.
    Stops after `max_iter` iterations, or when the loss has fallen by less than `tol`, relatively,
    over ten iterations; ``tol=0`` leaves only the first rule. ``after_iteration(w, loss)`` is called
    once an iteration.
    """
    n_weights = len(start)
    losses: list[float] = []

    def joined(x: Vector) -> Vector:
        return x if reg_alpha == 0 else x[:n_weights] - x[n_weights:]

    def split_loss(x: Vector) -> tuple[float, Vector]:
        value, gradient = loss(joined(x))
        return (
            value + reg_alpha * float(x.sum()),
            np.concatenate([gradient + reg_alpha, reg_alpha - gradient]),
        )

    def callback(intermediate_result: optimize.OptimizeResult) -> None:
        losses.append(float(intermediate_result.fun))
        after_iteration(joined(intermediate_result.x), losses[-1])
        if tol > 0 and len(losses) > PERIOD:
            before = losses[-1 - PERIOD]
            if before - losses[-1] < tol * max(abs(losses[-1]), 1e-300):
                raise StopIteration

    plain = reg_alpha == 0
    found = optimize.minimize(
        loss if plain else split_loss,
        start if plain else np.concatenate([start.clip(min=0), (-start).clip(min=0)]),
        jac=True,
        method="L-BFGS-B",
        bounds=None if plain else optimize.Bounds(np.zeros(2 * n_weights), np.inf),
        callback=callback,
        options={
            "maxiter": max_iter,
            "maxfun": np.iinfo(np.int32).max,
            "maxcor": MEMORY,
            "ftol": 0.0,
            "gtol": 1e-10,
        },
    )
    return Minimum(
        weights=np.array(joined(found.x)),
        loss=float(found.fun),
        n_iter=len(losses),
        converged=len(losses) < max_iter,
    )
