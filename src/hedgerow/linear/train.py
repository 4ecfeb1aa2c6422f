"""Train: from a training loss to weights, for any objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.linear.bundle import minimize_bundle
from hedgerow.linear.lbfgs import Minimum, build_metric, minimize
from hedgerow.linear.loss import LinearLoss
from hedgerow.objectives import Choice, stages

__all__ = ["train"]

Vector = NDArray[np.float64]


def train(
    loss: LinearLoss,
    start: Vector,
    objective: Choice,
    *,
    reg_alpha: float,
    max_iter: int,
    warm_iter: int,
    tol: float,
    report: Callable[[Vector, float], None],
) -> Minimum:
    """Find the weights that are best for an objective, from ``start`` on.

    Parameters
    ----------
    loss
        The training set.
    objective
        What to train for. Anything but the likelihood is begun with up to ``warm_iter`` iterations
        for the likelihood, whose curvature is where that of the objective is learnt from; and
        accuracy with stages that are smoother.
    reg_alpha, max_iter, tol, report
        See `hedgerow.linear.lbfgs.minimize`. ``max_iter`` is the most for the objective.
    """
    metric = build_metric(len(start))

    def minimize_for(one: Choice, weights: Vector, most: int) -> Minimum:
        return minimize(
            loss.of(one),
            weights,
            reg_alpha=reg_alpha,
            max_iter=most,
            tol=tol,
            n_threads=loss.n_threads,
            report=report,
            metric=metric,
        )

    found = Minimum(start, np.inf, 0, converged=False)
    if warm_iter > 0:
        found = minimize_for("likelihood", start, warm_iter)
    n_warm = found.n_iter
    if objective == "max_margin":
        del metric
        last = minimize_bundle(
            loss.of(objective, penalised=False),
            found.weights,
            reg_lambda=loss.reg_lambda,
            max_iter=max_iter,
            tol=tol,
            report=report,
            floor=0.0,
        )
        return replace(last, n_iter=n_warm + last.n_iter)
    left: list[Choice] = ["likelihood"]
    if not isinstance(objective, str):
        left = [*stages(objective)]
    n_iter = 0
    while left:
        share = (max_iter - n_iter) // len(left)
        found = minimize_for(left.pop(0), found.weights, share)
        n_iter += found.n_iter
    return replace(found, n_iter=n_warm + n_iter)
