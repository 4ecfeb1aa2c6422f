"""Booster: one round of boosting after another.

A round measures what the model expects of the training labels, grows a tree for each label from the
difference to what was observed, moves the weights of label patterns, and makes sure that the loss
did not rise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.boosting.context_training import train_trees
from hedgerow.boosting.rounds import Rounds
from hedgerow.boosting.running_scores import Binned, RunningScores, TreeScoring
from hedgerow.boosting.schedule import Schedule
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.transitions import EXACT_EVERY, PatternBound, exact_step
from hedgerow.boosting.tree_training import Found
from hedgerow.objectives import TrainingObjective
from hedgerow.potentials import PatternWeights, Potential
from hedgerow.state import State
from hedgerow.training.decoder import count_right
from hedgerow.training.training_set import TrainingSet
from hedgerow.training.update import Update
from hedgerow.trees.forest import Forest
from hedgerow.trellis import Scores

__all__ = ["Booster"]

# A step that raises the loss is shortened and tried again, so often before it is given up; less
# often if the next round learns from another sample, and may fare better.
MAX_TRIALS = 16
SAMPLED_TRIALS = 6
# Each time the step of the pattern weights is divided by four. The first times it alone is, while
# it lowers the loss by less than this share of what its slopes promise; then that of the trees is
# halved too.
PATTERN_TRIALS = 4
LEAST_SHARE = 0.25


class Booster(Update[Binned]):
    """Boosting of trees and of the weights of label patterns.

    Parameters
    ----------
    scoring
        How trees score sequences.
    binned, data
        The training sequences, and their bins laid out for growing.
    training
        The training labels, how they depend on each other, and penalties of label patterns.
    settings
        How to go about it.
    schedule
        What each round is trained for.
    rounds
        The rounds so far, none or those of a model to go on from.
    max_rounds
        How many there will be, those included.
    """

    def __init__(
        self,
        scoring: TreeScoring,
        binned: Binned,
        data: _core.TreeData,
        training: TrainingSet,
        settings: Settings,
        schedule: Schedule,
        rounds: Rounds,
        max_rounds: int,
    ) -> None:
        self.scoring = scoring
        self.training = training
        self.targets = targets = training.targets
        self.grammar = training.grammar
        self.trellis = targets.trellis
        self.settings = settings
        self.schedule = schedule
        self.rounds = rounds
        self.max_rounds = max_rounds
        self.n_threads = settings.n_threads
        self.weights = rounds.weights
        self._unit = 1.0  # what a slope of 1 is in the unit of the objective
        penalties = training.pattern_penalties
        self._penalties = np.zeros(len(self.weights)) if penalties is None else penalties
        self._bound = PatternBound(self.grammar.patterns, targets, settings.learning_rate)
        scores = scoring.catch_up(binned, rounds.parts)
        self.trees = train_trees(training, settings, self._bound, scores, data)
        # Where no round is left, that of the last one.
        self.objective = schedule.objective_of(min(self.n_done, max_rounds - 1))
        self.measured = self._measure(self.trees.scores, self.weights, self.n_done)
        if np.isnan(rounds.loss):
            self.keep()

    @property
    def n_done(self) -> int:
        """Number of rounds so far."""
        return self.rounds.n_rounds

    @property
    def has_learnt(self) -> bool:
        """Whether there are rounds."""
        return self.n_done > 0

    @property
    def n_warm(self) -> int:
        """How many rounds are for the likelihood, before those for another objective."""
        return self.schedule.warm_rounds

    @property
    def loss(self) -> float:
        """The training loss of the rounds that are kept, a mean over the positions."""
        return abs(self.rounds.loss) if self.rounds.loss == 0 else self.rounds.loss

    def figures(self) -> dict[str, float]:
        """Mean loss, and share of the positions that are labelled right."""
        return {"loss": self._mean_loss(), "accuracy": self._n_right() / self.targets.n_known}

    def _n_right(self) -> int:
        targets, n_threads, decode = self.targets, self.n_threads, self.training.decode
        if decode == "marginal" and self.trellis.constraints is None:
            return _core.count_right(self.measured.probabilities(), targets.codes, n_threads)
        return count_right(self.score_training(), targets, decode, n_threads=n_threads)

    def score(self, sequences: Binned) -> Iterator[Scores]:
        """By the rounds so far."""
        running = self.scoring.catch_up(sequences, self.rounds.parts)
        return running.runs(self._arcs(self.weights))

    def score_kept(self, sequences: Binned) -> Iterator[Scores]:
        """By the rounds that are kept."""
        if self.rounds.n_kept == len(self.rounds.parts):
            return self.score(sequences)
        running = self.scoring.start(sequences)
        running.add(self.rounds.kept_forest(), running)
        return running.runs(self._arcs(self.rounds.kept_weights))

    def score_training(self) -> Iterator[Scores]:
        """By the rounds so far."""
        return self.trees.score(self._arcs(self.weights))

    def _arcs(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of the arcs with some weights of the label patterns, (P,)."""
        return self.scoring.arcs + self.trellis.arc_scores(weights, forbidden=0.0)

    def keep(self) -> None:
        """Keep the rounds so far."""
        self.rounds.keep(self._mean_loss())

    def potentials(self) -> tuple[Potential, ...]:
        """Trees and weights of label patterns."""
        trees = self.scoring.potential(self.rounds.kept_forest())
        return trees, PatternWeights(self.rounds.kept_weights)

    def pack(self) -> State:
        """The rounds so far: all else follows from them."""
        return self.rounds.pack()

    def _mean_loss(self) -> float:
        """What the last round had to lower, as a mean over the training positions."""
        total = self.targets.total_weight
        return self.measured.loss * (1.0 / total if total > 0 else 0.0)

    def advance(self) -> bool:
        """Do one round."""
        if self.n_done >= self.max_rounds:
            return False
        trees = self._grow()
        if trees is not None:
            self.rounds.add(trees, self.weights)
        return trees is not None

    def _grow(self) -> Forest | None:
        """Grow trees and move weights; returns the trees, or None if nothing is left to learn."""
        settings, number = self.settings, self.n_done
        self._turn_to(self.schedule.objective_of(number))
        patterns = self.trees.derive(self.measured, self.objective)
        self._unit = patterns.unit
        trees = self.trees.grow(number)
        slopes = patterns.slopes + self._penalties * self.weights
        resistances = self._penalties + settings.reg_lambda
        step = self._bound.step(slopes, patterns.curvatures, resistances, settings.max_step)
        stuck = not (trees.values.any() or step.any())
        if stuck and not (settings.draws or self.schedule.changes_after(number)):
            # Its marginals are slopes now.
            self.measured = self._measure(self.trees.scores, self.weights, None)
            return None
        accepted = self._move(trees, settings.learning_rate * step, slopes)
        if accepted is None and not (settings.draws or self.schedule.changes_after(number)):
            return None
        return accepted if accepted is not None else trees.scaled(0.0)

    def _turn_to(self, objective: TrainingObjective) -> None:
        """Go on with another objective, where it is another."""
        if objective is not self.objective:
            self.objective, self._unit = objective, 1.0
            self.measured = self._measure(self.trees.scores, self.weights, self.n_done)

    def _expected_counts(self) -> NDArray[np.float64]:
        """How often each pattern occurs, by its probabilities, (P,)."""
        return self.trellis.pattern_sums(self.measured.arc_sums)

    def _move(
        self, trees: Forest, step: NDArray[np.float64], slopes: NDArray[np.float64]
    ) -> Forest | None:
        """Go the way of trees and weights, or a part of it, such that the loss is no higher.

        A step of the weights (P,) must also lower the loss by a share of what its slopes promise,
        or is shortened by itself at first: where labels begin to depend on each other, the bound
        may be too low. Returns the trees as they were added, or None if no step was short enough.
        """
        loss = self.measured.loss + self._penalty(self.weights)
        promise = self._unit * float(np.einsum("p,p", slopes, step))
        is_due = (self.n_done + 1) % EXACT_EVERY == 0
        exact = is_due and self.grammar.patterns.longest >= self.settings.exact_from
        first = 0 if step.any() else PATTERN_TRIALS
        most = SAMPLED_TRIALS if self.settings.draws else MAX_TRIALS
        for trial in range(first, most):
            shorter = trees.scaled(0.5 ** max(trial - PATTERN_TRIALS, 0))
            self.trees.propose(shorter)
            weights = self.weights + 0.25**trial * step
            if exact and trial == first:
                weights, measured = self._fit_weights(weights)
            else:
                measured = self._measure(self.trees.proposed, weights, self.n_done + 1)
            share = LEAST_SHARE * 0.25**trial if trial < PATTERN_TRIALS else 0.0
            if measured.loss + self._penalty(weights) <= loss + share * min(promise, 0.0):
                self.trees.accept()
                self.weights, self.measured = weights, measured
                return shorter
        self.measured = self._measure(self.trees.scores, self.weights, self.n_done + 1)
        return None

    def _fit_weights(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], Found]:
        """Go on to the best weights for the scores that are being tried, and measure them."""
        last: tuple[NDArray[np.float64], Found] | None = None
        # What trees learn from is needed of the best weights alone.
        number = None if self.trees.learns_as_it_measures else self.n_done + 1

        def measure(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            nonlocal last
            measured, loss, slopes = self._measure_weights(point, number)
            last = point, measured
            return loss, slopes

        weights = weights + exact_step(
            measure,
            weights,
            self._expected_counts() + self._unit * self._penalties,
            reg_lambda=self.settings.reg_lambda,
            n_threads=self.settings.n_threads,
        )
        if number is not None and last is not None and np.array_equal(last[0], weights):
            return last  # mostly so: no need to repeat it
        return weights, self._measure(self.trees.proposed, weights, self.n_done + 1)

    def _measure_weights(
        self, weights: NDArray[np.float64], number: int | None
    ) -> tuple[Found, float, NDArray[np.float64]]:
        """Loss, penalty included, and its slopes, with the scores that are being tried."""
        measured = self._measure(self.trees.proposed, weights, number)
        slopes = self.trellis.pattern_sums(measured.arc_slopes())
        pull = self._unit * self._penalties * weights
        return measured, measured.loss + self._penalty(weights), slopes + pull

    def _penalty(self, weights: NDArray[np.float64]) -> float:
        """Penalty of weights of label patterns, in the unit of the loss."""
        return self._unit / 2 * float(np.einsum("p,p,p", self._penalties, weights, weights))

    def _measure(
        self, scores: RunningScores, weights: NDArray[np.float64], number: int | None
    ) -> Found:
        """What the objective says to scores, for the round of a number to learn from, if any."""
        if number is not None and number >= self.max_rounds:
            number = None
        found: Found = self.trees.measure(self.objective, scores, self._arcs(weights), number)
        return found
