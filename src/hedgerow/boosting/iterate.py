"""Iterate: the current point of tree training, and measurements there and at nearby points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.rounds import Rounds
from hedgerow.boosting.running_scores import RunningScores, TreeScoring
from hedgerow.boosting.transitions import exact_step
from hedgerow.boosting.tree_training import Found, PatternSlopes, TreeTraining
from hedgerow.objectives import TrainingObjective
from hedgerow.training.training_set import TrainingSet
from hedgerow.trellis import Trellis

__all__ = ["Candidate", "Iterate"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point that was tried: the proposed scores, and weights of the label patterns, (P,)."""

    weights: Vector
    measured: Found
    loss: float
    """The loss, with the penalty of the weights."""
    slope: float = np.nan
    """Derivative of the loss along a direction; NaN if none was given."""


class Iterate:
    """Scores of the training sequences, weights of the label patterns, and the loss there.

    It must not be used before `start`.

    Parameters
    ----------
    trees
        The scores and their measurements.
    training
        Penalties of label patterns.
    scoring
        Scores of arcs that are not learned.
    rounds
        The rounds so far, which determine the next one.
    max_rounds
        Total number of rounds.

    Attributes
    ----------
    objective : TrainingObjective
        What is measured.
    weights : (P,)
        Those of the label patterns.
    measured : Found
        Measurement of the objective at these scores and weights.
    unit : float
        What `derive` last divided the slopes by; multiplied by it, they are those of the objective.
    """

    objective: TrainingObjective
    weights: Vector
    measured: Found

    def __init__(
        self,
        trees: TreeTraining[Any, Any],
        training: TrainingSet,
        scoring: TreeScoring,
        rounds: Rounds,
        max_rounds: int,
    ) -> None:
        self.trees, self.scoring, self.rounds, self.max_rounds = trees, scoring, rounds, max_rounds
        self.trellis: Trellis = training.targets.trellis
        self.comm = training.targets.comm
        self.weights, self.unit = rounds.weights, 1.0
        penalties = training.pattern_penalties
        self.penalties = np.zeros(len(rounds.weights)) if penalties is None else penalties

    def start(
        self, weights: Vector, objective: TrainingObjective, number: int | None = None
    ) -> None:
        """Measure the scores for round ``number`` to learn from; None: for the next, if any."""
        self.weights, self.objective = weights, objective
        if number is None:
            number = self._limit(self.rounds.n_rounds)
        arcs = self.arcs(weights)
        self.measured = self.trees.measure(objective, self.trees.scores, arcs, number)

    @property
    def loss(self) -> float:
        """The loss with the penalty of the weights."""
        return self.measured.loss + self.penalty(self.weights)

    def arcs(self, weights: Vector) -> Vector:
        """Scores of the arcs with some weights of the label patterns, (P,)."""
        return self.scoring.arcs + self.trellis.arc_scores(weights, forbidden=0.0)

    def penalty(self, weights: Vector) -> float:
        """Penalty of weights of label patterns, in the unit of the loss."""
        return self.unit / 2 * float(np.einsum("p,p,p", self.penalties, weights, weights))

    def turn_to(self, objective: TrainingObjective) -> None:
        """Continue with another objective, if it is different."""
        if objective is not self.objective:
            self.unit = 1.0
            self.start(self.weights, objective)

    def derive(self) -> PatternSlopes:
        """Slopes, including those of the penalty, and curvatures, from which trees are grown."""
        found: PatternSlopes = self.trees.derive(self.measured, self.objective)
        self.unit = found.unit
        return replace(found, slopes=found.slopes + self.penalties * self.weights)

    def measure_again(self, number: int | None) -> None:
        """Measure the current point again.

        This is needed if other points were tried, or if slopes have overwritten the marginals.
        """
        self.measured = self._measure(self.trees.scores, self.weights, number)

    def _measure(self, scores: RunningScores, weights: Vector, number: int | None) -> Found:
        """Measure the objective at scores, for round ``number`` to learn from; None: for none."""
        found: Found = self.trees.measure(
            self.objective, scores, self.arcs(weights), self._limit(number)
        )
        return found

    def _limit(self, number: int | None) -> int | None:
        """The number of a round, or None if training ends before it."""
        return None if number is None or number >= self.max_rounds else number

    def try_proposed(self, weights: Vector, *, learn: bool = True) -> Candidate:
        """Measure the proposed scores with some weights, for the next round to learn from."""
        number = self.rounds.n_rounds + 1 if learn else None
        measured = self._measure(self.trees.proposed, weights, number)
        return Candidate(weights, measured, measured.loss + self.penalty(weights))

    def try_along(self, scores: RunningScores, weights: Vector, size: float) -> Candidate:
        """Measure a step of some size along directions of the scores and the weights."""
        trees = self.trees
        trees.scores.move(size, scores, trees.proposed)
        moved = self.weights + size * weights
        number = self.rounds.n_rounds + 1
        along = trees.measure_along(
            self.objective, trees.proposed, self.arcs(moved), number, scores
        )
        slopes = self._add_pull(self.trellis.pattern_sums(along.arc_slopes), moved)
        return Candidate(
            moved,
            along.found,
            along.found.loss + self.penalty(moved),
            along.slope + float(np.einsum("p,p", slopes, weights)),
        )

    def fit_proposed(self, weights: Vector, *, reg_lambda: float, n_threads: int) -> Candidate:
        """Improve the weights for the proposed scores, by a few steps of L-BFGS."""
        last: Candidate | None = None
        # The examples of trees are needed only for the final weights.
        learn = not self.trees.learns_as_it_measures

        def measure(point: Vector) -> tuple[float, Vector]:
            nonlocal last
            last, slopes = self.try_weights(point, learn=learn)
            return last.loss, slopes

        expected = self.trellis.pattern_sums(self.measured.arc_sums)
        weights = weights + exact_step(
            measure,
            weights,
            expected + self.unit * self.penalties,
            reg_lambda=reg_lambda,
            n_threads=n_threads,
        )
        if learn and last is not None and np.array_equal(last.weights, weights):
            return last  # usually the case: no need to repeat it
        return self.try_proposed(weights)

    def try_weights(self, weights: Vector, *, learn: bool) -> tuple[Candidate, Vector]:
        """Measure the proposed scores; also returns the gradient of the weights, (P,)."""
        candidate = self.try_proposed(weights, learn=learn)
        slopes = self.trellis.pattern_sums(candidate.measured.arc_slopes())
        return candidate, self._add_pull(slopes, weights)

    def _add_pull(self, slopes: Vector, weights: Vector) -> Vector:
        """Gradient with respect to the weights, including the penalty."""
        pull: Vector = self.unit * self.penalties * weights
        return slopes + pull

    def accept(self, candidate: Candidate) -> None:
        """Continue from the proposed scores."""
        self.trees.accept()
        self.weights, self.measured = candidate.weights, candidate.measured

    def reject(self) -> None:
        """Discard the proposed scores; the iterate has to be measured again before its next use."""
        self.trees.reject(self.rounds.parts)
