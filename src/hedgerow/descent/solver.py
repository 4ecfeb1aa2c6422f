"""Solver: optimises the weights for any objective, one iteration at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.descent.bundle import Bundle, minimize_bundle
from hedgerow.descent.loss import LinearLoss
from hedgerow.descent.owlqn import minimize_l1
from hedgerow.descent.solver_state import SolverState
from hedgerow.lbfgs import Descent, Iterations, Minimum, minimize
from hedgerow.objectives import Likelihood, TrainingObjective
from hedgerow.potentials import AddScores, AttributeWeights, PatternWeights, Potential
from hedgerow.potentials.scoring import add_up, fit_edges, have_scores, sum_arcs
from hedgerow.sequences import SparseRows
from hedgerow.state import State
from hedgerow.training.update import Update
from hedgerow.trellis import Scores

__all__ = ["Attributed", "Plan", "Solver"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """The objectives of training, stage by stage.

    Attributes
    ----------
    stages : sequence of TrainingObjective
        Objective of each stage.
    warm_iter, max_iter : int
        Maximum number of iterations of the warm-up, which is the first stage (0: there is none),
        and of all other stages together.
    tol : float
        Tolerance, see `hedgerow.lbfgs.Iterations` and
        `hedgerow.descent.bundle.minimize_bundle`.
    reg_alpha : float
        Strength of the L1 penalty.
    """

    stages: Sequence[TrainingObjective]
    warm_iter: int
    max_iter: int
    tol: float
    reg_alpha: float = 0.0

    @classmethod
    def of(
        cls,
        objective: TrainingObjective,
        warm_iter: int,
        *,
        max_iter: int,
        tol: float,
        reg_alpha: float,
    ) -> Plan:
        """Begin with up to `warm_iter` iterations for the likelihood.

        The curvature found there is the initial estimate for the objective. Objectives such as
        accuracy have several stages, the smoothest first.
        """
        warm: list[TrainingObjective] = [Likelihood()] if warm_iter > 0 else []
        return cls(warm + objective.stages(), warm_iter, max_iter, tol, reg_alpha)

    @property
    def n_warm(self) -> int:
        """Number of warm-up stages: one or none."""
        return int(self.warm_iter > 0)

    def most_iterations(self, done: Sequence[int]) -> int:
        """Maximum number of iterations of the next stage.

        ``done`` are the numbers of iterations that the finished stages took.
        """
        stage = len(done)
        if stage < self.n_warm:
            return self.warm_iter
        return (self.max_iter - sum(done[self.n_warm :])) // (len(self.stages) - stage)


@dataclass(frozen=True, eq=False)
class Attributed:
    """Sequences for scoring in training: rows of attributes, and what adds other scores."""

    rows: SparseRows
    offsets: NDArray[np.int64]
    parents: NDArray[np.int32] | None
    given: Sequence[AddScores | None]


class Solver(Update[Attributed]):
    """Optimises the weights for the last of the stages, going through all of them.

    Parameters
    ----------
    loss
        The training set.
    index
        Names of the attributes.
    state
        The state to start from. Its weights have the units of training.
    plan
        The stages.
    given
        Potentials that are not learned.
    n_ancestors
        Number of ancestors from which positions also get attributes.
    """

    def __init__(
        self,
        loss: LinearLoss,
        index: _core.StringIndex,
        state: SolverState,
        plan: Plan,
        given: Sequence[Potential] = (),
        n_ancestors: int = 0,
    ) -> None:
        self.loss_function = loss
        self.n_ancestors = n_ancestors
        self.given = given
        self.index = index
        self.state = state
        self.plan = plan
        self.n_threads = loss.n_threads
        self.minimum: Minimum | None = None  # if it stopped by itself
        self._present_loss = state.losses[-1] if state.losses else np.nan
        self._steps = self._iterate()

    @property
    def n_done(self) -> int:
        """Number of iterations so far."""
        return self.state.n_iter

    @property
    def has_learnt(self) -> bool:
        """Whether any weight is not zero, or there are scores that do not depend on weights."""
        parts = self.loss_function.parts
        return bool(self.state.weights.any()) or any(
            part.given is not None and have_scores(part.given.nodes) for part in parts
        )

    @property
    def n_warm(self) -> int:
        """Number of iterations of the warm-up stage so far."""
        done = self.state.done[: self.plan.n_warm]
        return self.n_done if len(done) < self.plan.n_warm else sum(done)

    @property
    def loss(self) -> float:
        """The loss of the kept weights, penalties included, for the objective of their stage."""
        if not np.isnan(self.state.kept_loss):
            return self.state.kept_loss
        # Nothing was kept yet: these are the weights from before the first iteration.
        weights, loss = self.state.kept_weights, self.loss_function
        sizes = self.plan.reg_alpha * np.abs(loss.scaling.unscale(weights))
        return loss.of(self.plan.stages[-1])(weights)[0] + float(sizes.sum())

    def advance(self) -> bool:
        """Do one iteration; False if the loss has converged, or after the last iteration."""
        found = next(self._steps, None)
        if found is not None:
            self.state.weights, self._present_loss = found
        return found is not None

    def figures(self) -> dict[str, float]:
        """The loss, penalties included."""
        return {"loss": self._present_loss}

    def score(self, sequences: Attributed) -> Iterator[Scores]:
        """Scores with the weights of the last iteration."""
        return self._score(sequences, self.state.weights)

    def _score(self, sequences: Attributed, weights: Vector) -> Iterator[Scores]:
        attributes, patterns = self._potentials(weights)
        trellis, shape = self.loss_function.targets.trellis, self.loss_function.edge_shape
        offsets = sequences.offsets
        add = attributes.weights.adder(sequences.rows, offsets, self.n_threads)
        return add_up(
            [fit_edges(add, attributes, trellis, shape, self.n_threads), *sequences.given],
            offsets,
            sum_arcs([patterns, *self.given], trellis),
            trellis,
            parents=sequences.parents,
            edge_shape=shape,
            batch=attributes.batch_positions(trellis),
            n_threads=self.n_threads,
        )

    def score_kept(self, sequences: Attributed) -> Iterator[Scores]:
        """Scores with the kept weights."""
        return self._score(sequences, self.state.kept_weights)

    def keep(self) -> None:
        """Keep the weights of the last iteration."""
        self.state.kept_weights, self.state.kept_loss = self.state.weights, self._present_loss

    def potentials(self) -> tuple[Potential, ...]:
        """Weights of attributes, and of label patterns."""
        return self._potentials(self.state.kept_weights)

    def pack(self) -> State:
        """The state."""
        return self.state.pack()

    def _potentials(self, weights: Vector) -> tuple[AttributeWeights, PatternWeights]:
        unscaled = self.loss_function.scaling.unscale(weights)
        own, patterns = self.loss_function.split(unscaled)
        return AttributeWeights(own, self.index, self.n_ancestors), PatternWeights(patterns)

    def _iterate(self) -> Iterator[tuple[Vector, float]]:
        """Weights, in the units of training, and their loss after each iteration of all stages."""
        state, stages = self.state, self.plan.stages
        while True:
            objective = stages[len(state.done)]
            most = self.plan.most_iterations(state.done)
            iterations = Iterations(most, self.plan.tol, state.losses)
            if objective.is_smooth:
                found = yield from self._descend(objective, iterations)
            else:
                found = yield from self._close_gap(objective, iterations)
            state.weights, self._present_loss = found.weights, found.loss
            if len(state.done) == len(stages) - 1:
                self.minimum = found
                return
            state.turn(found)

    def _descend(self, objective: TrainingObjective, iterations: Iterations) -> Descent:
        state, loss, n_threads = self.state, self.loss_function, self.n_threads
        smooth, metric = loss.of(objective), state.metric
        assert metric is not None
        if self.plan.reg_alpha == 0:
            found = yield from minimize(smooth, state.weights, iterations, metric, n_threads)
        else:
            alpha = loss.scaling.unscale(np.array(self.plan.reg_alpha))
            found = yield from minimize_l1(
                smooth, state.weights, alpha, iterations, metric, n_threads
            )
        if objective.has_kinks and self.n_done > 0 and found.steepest is not None:
            # The minimum may be at a kink; an earlier stage may have ended there.
            return replace(found, converged=True, steepest=None)
        return found

    def _close_gap(self, objective: TrainingObjective, iterations: Iterations) -> Descent:
        state, loss = self.state, self.loss_function
        risk = loss.of(objective, penalised=False)
        state.metric = None  # the loss is not smooth
        if state.bundle is None:
            penalty = loss.scaling.divide_penalty(loss.reg_lambda)
            state.bundle = Bundle.begin(risk, state.weights, penalty, floor=0.0)
        return (yield from minimize_bundle(risk, state.bundle, iterations))
