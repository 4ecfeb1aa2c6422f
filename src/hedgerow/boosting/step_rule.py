"""Step rules: the step size of a round, such that the loss does not increase."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.direction import Direction, SearchDirection
from hedgerow.boosting.iterate import Candidate, Iterate
from hedgerow.boosting.settings import Settings
from hedgerow.line_search import Trial, search

__all__ = ["Backtracking", "LineSearch", "StepRule"]

# A step that increases the loss is shortened this many times before it is given up; fewer times if
# the next round learns from another sample.
MAX_TRIALS = 16
SAMPLED_TRIALS = 6
# Each time, the step of the pattern weights is divided by four: alone at first, while it decreases
# the loss by less than this share of its linear prediction; then the step of the trees is halved
# too.
PATTERN_TRIALS = 4
LEAST_SHARE = 0.25

# A line search ends when the slope is this share of the first one, or after this many steps of each
# of its two parts. No step changes a score by more than this many times `TreeCRF.max_step`, before
# the learning rate: if labels are perfectly separable, the loss decreases without bound.
FLAT = 0.1
SEARCH_TRIALS = 6
MAX_STEPS = 4.0

AnyDirection = TypeVar("AnyDirection", bound=Direction)


class StepRule(ABC, Generic[AnyDirection]):
    """The rule for the step size."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @abstractmethod
    def take(self, iterate: Iterate, direction: AnyDirection, *, exact: bool) -> float | None:
        """Take a step along a direction; returns its size, or None if all increase the loss.

        With ``exact``, the weights of the label patterns are then optimised. After None, the
        iterate has to be measured again.
        """

    def is_short(self, size: float) -> bool:
        """Whether a step was so short that its direction should not be used again."""
        return False

    def fit(self, iterate: Iterate, weights: NDArray[np.float64]) -> Candidate:
        """The proposed scores, and the best weights of label patterns for them."""
        settings = self.settings
        return iterate.fit_proposed(
            weights, reg_lambda=settings.reg_lambda, n_threads=settings.n_threads
        )


class Backtracking(StepRule[Direction]):
    """The full step, or a shorter one if the loss would increase.

    A step of the weights must also decrease the loss by a share of its linear prediction; otherwise
    it is first shortened alone: when labels begin to depend on each other, the bound may be too
    low.
    """

    def take(self, iterate: Iterate, direction: Direction, *, exact: bool) -> float | None:
        """The first acceptable one of shorter and shorter steps."""
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
        return None

    def is_short(self, size: float) -> bool:
        """Whether the full step would have increased the loss."""
        return size < 1


class LineSearch(StepRule[SearchDirection]):
    """The step to about the minimum loss, for trees and weights together, times the learning rate.

    Along a direction the negative log-likelihood is convex. Other losses need not be: then the step
    satisfies the Wolfe conditions, see `hedgerow.line_search`.
    """

    def take(self, iterate: Iterate, direction: SearchDirection, *, exact: bool) -> float | None:
        """By a few evaluations of the loss; the last one is that of the step."""
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
