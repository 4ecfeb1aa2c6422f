"""Search directions of a round, in the scores of its trees and the weights of label patterns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.iterate import Candidate, Iterate
from hedgerow.boosting.rounds import Part
from hedgerow.boosting.running_scores import RunningScores
from hedgerow.boosting.tree_training import PatternSlopes
from hedgerow.exact_sums import largest_of_all
from hedgerow.objectives import TrainingObjective
from hedgerow.state import State, read_optional_count, read_weights
from hedgerow.trees.forest import Forest

__all__ = ["ConjugateDirection", "Direction", "SearchDirection", "TreeDirection"]

Vector = NDArray[np.float64]

# A conjugate direction is restarted after this many rounds, and if the loss decreases by less than
# this share of the decrease along the trees.
MAX_CONJUGATE_ROUNDS = 20
LEAST_DESCENT = 0.1


@dataclass(eq=False)
class Memory:
    """What the next conjugate direction needs from a round.

    Attributes
    ----------
    slopes : arrays
        Gradient of the loss with respect to the scores at the start of the round, divided by
        `unit`: one array for each of `RunningScores.arrays`.
    pattern_slopes : (P,)
        The same with respect to the weights of label patterns, penalty included.
    unit : float
        The slopes are divided by this number; multiplied by it, they are those of the objective.
    product : float
        Derivative of the loss along the round's own trees and steps: < G, h >.
    weights : (P,)
        Weights of the label patterns at the start of the round.
    n_rounds : int
        Number of previous rounds that contribute to the direction.
    """

    slopes: tuple[NDArray[Any], ...]
    pattern_slopes: Vector
    unit: float
    product: float
    weights: Vector
    n_rounds: int


class Direction(ABC):
    """The direction of a round.

    Attributes
    ----------
    weights : (P,)
        Change of the weights of label patterns with a step of 1.
    promise : float
        Derivative of the loss along this change at the start of the round.
    carry : float
        Share of the previous direction.
    memory : Memory or None
        What the next direction needs from this one; None: nothing.
    """

    weights: Vector
    promise: float
    carry: float = 0.0
    memory: Memory | None = None

    def __init__(self, iterate: Iterate) -> None:
        self.iterate = iterate

    @abstractmethod
    def turn(self, trees: Forest, step: Vector, slopes: PatternSlopes) -> None:
        """Set the direction of a round from its trees and the step of its weights, (P,)."""

    @abstractmethod
    def propose(self, size: float) -> None:
        """Propose the scores after a step of some size."""

    @abstractmethod
    def part(self, size: float) -> Part:
        """What a round with this step has learned."""

    def forget(self) -> None:
        """Make the next direction independent of this one."""
        self.memory = None

    def pack(self) -> State:
        """What a checkpoint needs in addition to the rounds."""
        return State({}, {})

    def recall(self, state: State, objective: TrainingObjective) -> None:
        """Restore the output of `pack`; the current scores are those before the last round.

        Raises ModelFileError.
        """
        self.forget()


class TreeDirection(Direction):
    """Only the trees and steps of the round; it needs no memory."""

    def turn(self, trees: Forest, step: Vector, slopes: PatternSlopes) -> None:
        """Set the direction to exactly these trees and this step."""
        self.trees, self.weights = trees, step
        self.promise = slopes.unit * float(np.einsum("p,p", slopes.slopes, step))

    def propose(self, size: float) -> None:
        """Propose the scores after a step; the trees are walked for this."""
        self.iterate.trees.propose(self.trees.scaled(size))

    def part(self, size: float) -> Part:
        """The trees, with their weights multiplied by the step size."""
        return Part(self.trees.scaled(size))


class SearchDirection(Direction):
    """A direction whose scores are stored, so that a line search along it is possible.

    Like `TreeDirection`, it consists of the round's trees and steps only; subclasses add a share of
    the previous direction.

    Parameters
    ----------
    iterate
        The current point.
    scores
        The direction of the last round, in scores of the training sequences.

    Attributes
    ----------
    slope : float
        Derivative of the loss along the direction at the start of the round.
    """

    slope: float

    def __init__(self, iterate: Iterate, scores: RunningScores) -> None:
        super().__init__(iterate)
        self.scores = scores
        self.weights = np.zeros_like(iterate.weights)

    def turn(self, trees: Forest, step: Vector, slopes: PatternSlopes) -> None:
        """Set the direction to the trees and steps, plus `_find_carry` times the previous one."""
        self.trees = trees
        self.carry = self._find_carry(trees, step, slopes)
        self.scores.turn(trees, self.carry)
        self.weights = step + self.carry * self.weights
        self.promise = slopes.unit * float(np.einsum("p,p", slopes.slopes, self.weights))
        by_trees = self.scores.slope_by(self.iterate.trees.slopes(), self.iterate.comm)
        self.slope = slopes.unit * by_trees + self.promise

    def _find_carry(self, trees: Forest, step: Vector, slopes: PatternSlopes) -> float:
        """The share of the previous direction that is added; here 0."""
        return 0.0

    def propose(self, size: float) -> None:
        """Propose the scores after a step; the stored scores are added for this."""
        training = self.iterate.trees
        training.scores.move(size, self.scores, training.proposed)

    def try_size(self, size: float) -> Candidate:
        """Measure the loss and its slope at a step of some size."""
        self.propose(size)
        return self.iterate.try_along(self.scores, self.weights, size)

    def largest(self) -> float:
        """Largest change of any tree score with a step of 1."""
        return largest_of_all(self.scores.largest(), self.iterate.comm)

    def part(self, size: float) -> Part:
        """The trees, the step size, and the share of the previous direction."""
        return Part(self.trees, size, self.carry)


class ConjugateDirection(SearchDirection):
    """Nonlinear conjugate gradients (Polak & Ribiere 1969), with the trees as a preconditioner.

    With G the gradient of the loss with respect to all scores and pattern weights at the start of
    round m, and h the trees and steps that follow from it, the direction is

        D_m = h_m + b_m D_{m-1},    b_m = max(0, < G_m - G_{m-1}, h_m > / < G_{m-1}, h_{m-1} >).

    h takes the place of -M G, with M the preconditioner, an approximate inverse Hessian. Gutmann &
    Kersting use h in place of G in b_m too. With G, b_m is 0 if the loss was at least as steep
    along h_m before the last step as after it: then the new trees only make up for what that step
    should already have achieved. Powell's test, to restart where G_m and G_{m-1} are far from
    orthogonal, would restart in every round, since a few trees hardly change most of the gradient.
    So the direction is restarted by the rules of `MAX_CONJUGATE_ROUNDS` and `LEAST_DESCENT`
    instead.
    """

    def _find_carry(self, trees: Forest, step: Vector, slopes: PatternSlopes) -> float:
        training = self.iterate.trees
        own = training.proposed  # not in use at this time
        own.clear()
        own.add(trees, own)
        here = training.slopes()
        product = self._product(own, step, here, slopes.slopes, slopes.unit)
        carry, last = 0.0, self.memory
        if last is not None and last.n_rounds < MAX_CONJUGATE_ROUNDS and last.product < 0:
            before = self._product(own, step, last.slopes, last.pattern_slopes, last.unit)
            carry = max(0.0, (product - before) / last.product)
            # How much steeper the direction becomes with the previous one.
            more = self._product(self.scores, self.weights, here, slopes.slopes, slopes.unit)
            if not product + carry * more <= LEAST_DESCENT * product:
                carry = 0.0
        self._remember(slopes, product, last.n_rounds + 1 if last is not None and carry else 0)
        return carry

    def _remember(self, slopes: PatternSlopes, product: float, n_rounds: int) -> None:
        """Remember where the round begins, for the next one."""
        here = self.iterate.trees.slopes()
        kept = tuple(map(np.empty_like, here)) if self.memory is None else self.memory.slopes
        for array, values in zip(kept, here, strict=True):
            np.copyto(array, values)
        weights = self.iterate.weights
        self.memory = Memory(kept, slopes.slopes, slopes.unit, product, weights, n_rounds)

    def _product(
        self,
        scores: RunningScores,
        weights: Vector,
        slopes: tuple[NDArray[Any], ...],
        pattern_slopes: Vector,
        unit: float,
    ) -> float:
        """Derivative of the loss along scores and pattern weights."""
        by_weights = float(np.einsum("p,p", pattern_slopes, weights))
        return unit * (scores.slope_by(slopes, self.iterate.comm) + by_weights)

    def pack(self) -> State:
        """The memory without the slopes, which can be measured again."""
        if self.memory is None:
            return State({}, {"conjugate_rounds": None})
        tensors = {
            "direction.weights": self.weights,
            "direction.weights_before": self.memory.weights,
            "direction.product": np.array([self.memory.product]),
        }
        return State(tensors, {"conjugate_rounds": self.memory.n_rounds})

    def recall(self, state: State, objective: TrainingObjective) -> None:
        """Restore the last round: its starting point is measured again."""
        n_rounds = read_optional_count(state.metadata, "conjugate_rounds")
        if n_rounds is None:
            return
        iterate, shape = self.iterate, self.weights.shape
        before = read_weights(state, "direction.weights_before", shape)
        product = read_weights(state, "direction.product", (1,))
        iterate.start(before, objective, max(iterate.rounds.n_rounds - 1, 0))
        self.weights = read_weights(state, "direction.weights", shape)
        self._remember(iterate.derive(), float(product[0]), n_rounds)
