"""Booster: one round of boosting after another.

A round computes the expected counts of the labels, grows a tree for each label from the differences
between expected and observed counts, and computes a step of the weights of label patterns. Trees
and step form a direction; a step rule chooses how far to go along it, so that the loss does not
increase.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.direction import (
    ConjugateDirection,
    Direction,
    SearchDirection,
    TreeDirection,
)
from hedgerow.boosting.iterate import Candidate, Iterate
from hedgerow.boosting.query_growth import QueryGrowth
from hedgerow.boosting.rounds import Part, Rounds
from hedgerow.boosting.running_scores import Binned, RunningScores, TreeScoring
from hedgerow.boosting.schedule import Schedule
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.transitions import PatternBound
from hedgerow.boosting.tree_training import PatternSlopes, TreeTraining
from hedgerow.exact_sums import count_all
from hedgerow.line_search import Trial, search
from hedgerow.potentials import PatternWeights, Potential
from hedgerow.potentials.scoring import have_scores
from hedgerow.relational.queries_state import pack_queries
from hedgerow.state import State
from hedgerow.training.training_set import TrainingSet
from hedgerow.training.update import Update
from hedgerow.trees.forest import Forest
from hedgerow.trellis import Scores

__all__ = ["Backtracking", "Booster", "LineSearch", "StepRule"]

# A step is given up after this many trials; fewer if the next round learns from another sample.
MAX_TRIALS = 16
SAMPLED_TRIALS = 6
# Each time, the step of the pattern weights is divided by four. The first few times only this step
# is shortened, and the loss must decrease by this share of its linear prediction; after that, the
# step of the trees is halved each time too. If the pattern weights do not change, these first
# trials are left out.
PATTERN_TRIALS = 4
LEAST_SHARE = 0.25

# A line search ends when the slope is at most `FLAT` times the first one, or after `SEARCH_TRIALS`
# steps to find an interval with the minimum and as many to narrow it down. No step changes a score
# by more than `MAX_STEPS` times `TreeCRF.max_step`, before the learning rate: if labels are
# perfectly separable, longer steps always decrease the loss, and scores would grow without bound.
FLAT = 0.1
SEARCH_TRIALS = 6
MAX_STEPS = 4.0

AnyDirection = TypeVar("AnyDirection", bound=Direction)


class Booster(Update[Binned]):
    """Boosting of trees and of the weights of label patterns.

    Parameters
    ----------
    scoring
        How trees score sequences.
    binned
        The training sequences.
    train
        Makes the tree training, from the bound of pattern weights and the scores so far.
    training
        The training labels, how they depend on each other, and penalties of label patterns.
    settings
        The settings.
    schedule
        The objective of each round.
    rounds
        The rounds so far: none, those of an initial model, or those of a checkpoint.
    max_rounds
        Total number of rounds, including these.
    state
        The output of `pack` after these rounds; None if they are those of a model.
    growth
        What extends the queries that trees split on; None: nothing.
    """

    def __init__(
        self,
        scoring: TreeScoring,
        binned: Binned,
        train: Callable[[PatternBound, RunningScores], TreeTraining[Any, Any]],
        training: TrainingSet,
        settings: Settings,
        schedule: Schedule,
        rounds: Rounds,
        max_rounds: int,
        state: State | None = None,
        growth: QueryGrowth | None = None,
    ) -> None:
        self.scoring = scoring
        self.growth = growth
        self.training = training
        self.targets = targets = training.targets
        self.grammar = training.grammar
        self._longest = training.grammar.patterns.longest
        self.trellis = targets.trellis
        self.settings = settings
        self.schedule = schedule
        self.rounds = rounds
        self.max_rounds = max_rounds
        self.n_threads = settings.n_threads
        self._bound = PatternBound(self.grammar.patterns, targets, settings.learning_rate)
        scores = scoring.catch_up(binned, rounds.parts[:-1])
        has_scores = have_scores(scores.nodes) or bool(rounds.weights.any())
        self._has_base = bool(training.given) and any(targets.comm.gather(has_scores))
        self.trees = train(self._bound, scores)
        # What `_begin` found for the next round, if that has begun already.
        self._ahead: tuple[PatternSlopes, NDArray[np.float64]] | None = None
        self.iterate = Iterate(self.trees, training, scoring, rounds, max_rounds)
        self.direction, self.step_rule = self._choose(binned)
        if state is not None:
            self.direction.recall(state, schedule.objective_of(max(self.n_done - 1, 0)))
        scoring.catch_up(binned, rounds.parts)
        # If no round is left, the objective of the last one.
        objective = schedule.objective_of(min(self.n_done, max_rounds - 1))
        self.iterate.start(rounds.weights, objective)
        if np.isnan(rounds.loss):
            self.keep()

    @property
    def n_done(self) -> int:
        """Number of rounds so far."""
        return self.rounds.n_rounds

    @property
    def has_learnt(self) -> bool:
        """Whether there are rounds, or scores from before the first one."""
        return self.n_done > 0 or self._has_base

    @property
    def n_warm(self) -> int:
        """Number of rounds for the likelihood, before those for another objective."""
        return self.schedule.warm_rounds

    @property
    def loss(self) -> float:
        """The training loss of the rounds that are kept, a mean over positions."""
        return abs(self.rounds.loss) if self.rounds.loss == 0 else self.rounds.loss

    def figures(self) -> dict[str, float]:
        """Mean loss and accuracy on the training data."""
        n_right = count_all(self._n_right(), self.targets.comm)
        return {"loss": self._mean_loss(), "accuracy": n_right / self.targets.n_known}

    def _n_right(self) -> int:
        iterate = self.iterate
        return self.trees.count_right(
            iterate.measured, iterate.objective, iterate.arcs(iterate.weights)
        )

    def score(self, sequences: Binned) -> Iterator[Scores]:
        """Scores by the rounds so far."""
        running = self.scoring.catch_up(sequences, self.rounds.parts)
        return running.runs(self.iterate.arcs(self.iterate.weights))

    def score_kept(self, sequences: Binned) -> Iterator[Scores]:
        """Scores by the rounds that are kept."""
        if self.rounds.n_kept == len(self.rounds.parts):
            return self.score(sequences)
        running, forest = self.scoring.start(sequences), self.rounds.kept_forest()
        self.scoring.complete(sequences, forest)
        running.add(forest, running)
        return running.runs(self.iterate.arcs(self.rounds.kept_weights))

    def score_training(self) -> Iterator[Scores]:
        """Scores of the training sequences, in runs, each of which must be used before the next."""
        return self.trees.score(self.iterate.arcs(self.iterate.weights))

    def keep(self) -> None:
        """Keep the rounds so far."""
        self.rounds.keep(self._mean_loss())

    def potentials(self) -> tuple[Potential, ...]:
        """Trees and weights of label patterns."""
        trees = self.scoring.potential(self.rounds.kept_forest())
        return trees, PatternWeights(self.rounds.kept_weights)

    def pack(self) -> State:
        """The rounds so far, and what the next direction needs."""
        queries = None if self.growth is None else self.growth.features()
        return self.rounds.pack() | self.direction.pack() | pack_queries(queries)

    def _mean_loss(self) -> float:
        """Loss of the last round's objective, without penalties, as a mean over positions."""
        total = self.targets.total_weight
        return self.iterate.measured.loss * (1.0 / total if total > 0 else 0.0)

    def advance(self) -> bool:
        """Do one round."""
        if self.n_done >= self.max_rounds:
            return False
        part = self._learn()
        if part is not None:
            self.rounds.add(part, self.iterate.weights)
        return part is not None

    def _learn(self) -> Part | None:
        """Do a round; returns what it has learned, or None if nothing is left to learn."""
        number, iterate, direction = self.n_done, self.iterate, self.direction
        may_improve = self.settings.draws or self.schedule.changes_after(number)
        slopes, step = self._begin(number) if self._ahead is None else self._ahead
        self._ahead = None
        trees = self._grow(number)
        if not (may_improve or trees.values.any() or step.any()):
            iterate.measure_again(None)  # its marginals have been overwritten by slopes
            return None
        direction.turn(trees, step, slopes)
        exact = self._is_exact(number)
        size = self.step_rule.take(iterate, direction, exact=exact)
        if size is None and direction.carry > 0:
            direction.forget()
            iterate.measure_again(number)
            return self._learn()  # again, along the trees only
        if size is None:
            iterate.measure_again(number + 1)
        if size is None or exact or self.step_rule.is_short(size):
            direction.forget()
        if size is None and not may_improve:
            return None
        part = direction.part(size or 0.0)
        if size is not None and self._may_begin(number + 1):
            self._ahead = self._begin(number + 1)
        return part

    def _begin(self, number: int) -> tuple[PatternSlopes, NDArray[np.float64]]:
        """The slopes that a round starts from, and its step of the weights of label patterns.

        On a GPU, this also starts to grow the trees and to measure the full step, which is nearly
        always taken.
        """
        iterate, trees = self.iterate, self.trees
        iterate.turn_to(self.schedule.objective_of(number))
        if self.schedule.changes_at(number):
            self.direction.forget()
        slopes = iterate.derive()
        trees.start_growing(number)
        step = self._pattern_step(slopes)
        if trees.works_ahead:
            may_follow = self._may_begin(number + 1) and not self._is_exact(number)
            arcs = iterate.arcs(iterate.weights + step)
            trees.start_measuring(iterate.objective, arcs, number + 1 if may_follow else None)
        return slopes, step

    def _may_begin(self, number: int) -> bool:
        """Whether a round may begin before the history of the previous one is recorded."""
        is_next = number < self.max_rounds and not self.schedule.changes_at(number)
        return self.trees.works_ahead and is_next

    def _grow(self, number: int) -> Forest:
        """The trees of a round; grown again if queries can be extended below their splits."""
        trees = self.trees.grow(number)
        while self.growth is not None and (data := self.growth.extend(trees)) is not None:
            self.trees.learn_from(data)
            trees = self.trees.grow(number)
        return trees

    def _pattern_step(self, slopes: PatternSlopes) -> NDArray[np.float64]:
        """The step of the weights of label patterns, (P,)."""
        settings = self.settings
        resistances = self.iterate.penalties + settings.reg_lambda
        step = self._bound.step(slopes.slopes, slopes.curvatures, resistances, settings.max_step)
        return settings.learning_rate * step

    def _is_exact(self, number: int) -> bool:
        """Whether a round also optimises the weights of label patterns, in a few L-BFGS steps."""
        return self.settings.exact_rounds.include(number + 1, self._longest)

    def _choose(self, binned: Binned) -> tuple[Direction, StepRule[Any]]:
        """The direction of a round and its step rule."""
        settings, iterate = self.settings, self.iterate
        direction: Direction = TreeDirection(iterate)
        if binned.direction is not None:
            is_conjugate = settings.direction == "conjugate"
            kind = ConjugateDirection if is_conjugate else SearchDirection
            direction = kind(iterate, binned.direction)
        return direction, (LineSearch if settings.line_search else Backtracking)(settings)


class StepRule(ABC, Generic[AnyDirection]):
    """The rule for the step size."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @abstractmethod
    def take(self, iterate: Iterate, direction: AnyDirection, *, exact: bool) -> float | None:
        """Take a step along a direction; returns its size, or None if none was accepted.

        With ``exact``, a few steps of L-BFGS then improve the weights of the label patterns. If it
        returns None, the iterate has to be measured again.
        """

    def is_short(self, size: float) -> bool:
        """Whether a step was so short that its direction should not be used again."""
        return False

    def fit(self, iterate: Iterate, weights: NDArray[np.float64]) -> Candidate:
        """The proposed scores, and weights of label patterns improved for them by L-BFGS."""
        settings = self.settings
        return iterate.fit_proposed(
            weights, reg_lambda=settings.reg_lambda, n_threads=settings.n_threads
        )


class Backtracking(StepRule[Direction]):
    """The full step, or a shorter one if the loss would increase.

    In the first few trials, only the step of the weights of label patterns is shortened, and the
    loss must decrease by a share of the decrease that its slope along the weights predicts: when
    labels begin to depend on each other, the bound on the curvature may be too low. Later, it is
    enough if the loss does not increase, and the step of the trees is shortened too.
    """

    def take(self, iterate: Iterate, direction: Direction, *, exact: bool) -> float | None:
        """Take the full step, or the first shorter one that is accepted."""
        loss = iterate.loss
        first = 0 if direction.weights.any() else PATTERN_TRIALS
        most = SAMPLED_TRIALS if self.settings.draws else MAX_TRIALS
        for trial in range(first, most):
            size = 0.5 ** max(trial - PATTERN_TRIALS, 0)
            direction.propose(size)
            weights = iterate.weights + 0.25**trial * direction.weights
            if exact and trial == first:
                candidate = self.fit(iterate, weights)
            else:
                candidate = iterate.try_proposed(weights)
            share = LEAST_SHARE * 0.25**trial if trial < PATTERN_TRIALS else 0.0
            if candidate.loss <= loss + share * min(direction.promise, 0.0):
                iterate.accept(candidate)
                return size
            iterate.reject()
        return None

    def is_short(self, size: float) -> bool:
        """Whether the step of the trees was shortened."""
        return size < 1


class LineSearch(StepRule[SearchDirection]):
    """The step to about the minimum loss, for trees and weights together, times the learning rate.

    A step that satisfies the strong Wolfe conditions is searched for, see `hedgerow.line_search`.
    The loss need not be convex for that: with missing labels, or for most objectives other than the
    likelihood, it is not. If no such step is found, the one with the lowest loss of those tried is
    taken.
    """

    def take(self, iterate: Iterate, direction: SearchDirection, *, exact: bool) -> float | None:
        """Search for the minimum along the direction, with a few evaluations of the loss."""
        start = Trial(0.0, iterate.loss, direction.slope)
        if not start.slope < 0:
            return None
        rate, far = self.settings.learning_rate, direction.largest()
        largest = MAX_STEPS * self.settings.max_step / far if far > 0 else np.inf
        losses: dict[float, float] = {}
        last: tuple[float, Candidate] | None = None

        def try_step(size: float) -> Trial:
            nonlocal last
            found = direction.try_size(size)
            last, losses[size] = (size, found), found.loss
            return Trial(size, found.loss, found.slope)

        first = min((iterate.rounds.last_step or 1.0) / rate, largest)
        lowest = search(
            try_step, start, first, curvature=FLAT, largest=largest, max_trials=SEARCH_TRIALS
        )
        if lowest is None:
            lowest = min(losses, key=losses.__getitem__)
        for size in dict.fromkeys((rate * lowest, lowest)):
            if last is None or last[0] != size:
                try_step(size)
            assert last is not None
            candidate = self.fit(iterate, last[1].weights) if exact else last[1]
            if candidate.loss <= start.value:
                iterate.accept(candidate)
                return size
        return None
