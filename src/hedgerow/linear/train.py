"""Train: from a training loss to weights, for any objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.lbfgs import Iterations, Minimum, minimize
from hedgerow.linear.bundle import Bundle, minimize_bundle
from hedgerow.linear.loss import LinearLoss
from hedgerow.linear.owlqn import minimize_l1
from hedgerow.linear.standing import Standing
from hedgerow.objectives import Likelihood, TrainingObjective

__all__ = ["plan_stages", "train"]

Vector = NDArray[np.float64]


def plan_stages(objective: TrainingObjective, warm_iter: int) -> list[TrainingObjective]:
    """What to train for, stage by stage.

    Anything but the likelihood is begun with a stage of up to `warm_iter` iterations for the
    likelihood, whose curvature is where that of the objective is learnt from; and accuracy with
    stages that are smoother.
    """
    warm: list[TrainingObjective] = [Likelihood()] if warm_iter > 0 else []
    return warm + objective.stages()


def train(
    loss: LinearLoss,
    standing: Standing,
    plan: Sequence[TrainingObjective],
    *,
    reg_alpha: float,
    max_iter: int,
    warm_iter: int,
    tol: float,
    report: Callable[[Vector, float], None],
) -> Minimum:
    """Find the weights that are best for the last of the stages, going through all.

    Parameters
    ----------
    loss
        The training set.
    standing
        Where to go on; it is kept up to date with every iteration. Its weights have the units of
        the loss; those reported and returned have those of scores of attributes.
    plan
        What each stage is for, see `plan_stages`.
    reg_alpha
        Strength of the L1 penalty.
    max_iter, warm_iter, tol
        Most iterations for the objective, and those to warm up; when fewer are enough, see
        `hedgerow.lbfgs.Iterations` and `hedgerow.linear.bundle.minimize_bundle`.
    report
        ``report(weights, loss)`` is called after each iteration.
    """
    n_warm = int(warm_iter > 0)

    def note(weights: Vector, value: float) -> None:
        standing.weights = weights
        report(loss.scaling.unscale(weights), value)

    while True:
        stage = len(standing.done)
        n_done = sum(standing.done[n_warm:])
        most = warm_iter if stage < n_warm else (max_iter - n_done) // (len(plan) - stage)
        iterations = Iterations(most, tol, note, standing.losses)
        if plan[stage].is_smooth:
            found = _descend(loss, plan[stage], standing, reg_alpha, iterations)
        else:
            found = _close_gap(loss, plan[stage], standing, iterations)
        if stage == len(plan) - 1:
            weights = loss.scaling.unscale(found.weights)
            return replace(found, weights=weights, n_iter=sum(standing.done) + found.n_iter)
        standing.turn(found)


def _descend(
    loss: LinearLoss,
    objective: TrainingObjective,
    standing: Standing,
    reg_alpha: float,
    iterations: Iterations,
) -> Minimum:
    smooth, metric, n_threads = loss.of(objective), standing.metric, loss.n_threads
    assert metric is not None
    if reg_alpha == 0:
        found = minimize(smooth, standing.weights, iterations, metric, n_threads)
    else:
        alpha = loss.scaling.unscale(np.array(reg_alpha))
        found = minimize_l1(smooth, standing.weights, alpha, iterations, metric, n_threads)
    has_moved = sum(standing.done) + found.n_iter > 0
    if objective.has_kinks and has_moved and found.steepest is not None:
        # It may be lowest at a kink; an earlier stage may have ended there.
        return replace(found, converged=True, steepest=None)
    return found


def _close_gap(
    loss: LinearLoss, objective: TrainingObjective, standing: Standing, iterations: Iterations
) -> Minimum:
    risk = loss.of(objective, penalised=False)
    standing.metric = None  # nothing is smooth here
    if standing.bundle is None:
        penalty = loss.scaling.divide_penalty(loss.reg_lambda)
        standing.bundle = Bundle.begin(risk, standing.weights, penalty, floor=0.0)
    return minimize_bundle(risk, standing.bundle, iterations)
