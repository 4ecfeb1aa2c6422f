"""Tree training: from the scores of a round to the trees of the next, for one kind of trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.boosting.curvature import MODEST, measure_curvature, needs_mixing
from hedgerow.boosting.rounds import Part
from hedgerow.boosting.running_scores import NodeScores, RunningScores
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.transitions import PatternBound
from hedgerow.comm import ALONE, Comm
from hedgerow.exact_sums import largest_of_all
from hedgerow.objectives import Measured, Slopes, Targets, TrainingObjective
from hedgerow.training.decoder import count_right
from hedgerow.training.training_set import TrainingSet
from hedgerow.trees.forest import Forest
from hedgerow.trees.learner import Observed, TreeLearner
from hedgerow.trellis import Mixing, Scores
from hedgerow.trellis.tree_graph import inference

__all__ = ["Along", "Found", "NodeTraining", "PatternSlopes", "TreeTraining"]


class Found(Protocol):
    """The measurement of some scores."""

    @property
    def loss(self) -> float:
        """The loss, summed over all positions with their weights."""
        ...

    @property
    def arc_sums(self) -> NDArray[np.float64]:
        """Expected number of times each arc is taken."""
        ...

    def arc_slopes(self) -> NDArray[np.float64]:
        """Gradient of the loss with respect to the scores of the arcs."""
        ...

    def probabilities(self) -> NDArray[np.float64]:
        """Marginals of the labels, (N, K)."""
        ...


AnyScores = TypeVar("AnyScores", bound=RunningScores)
AnyFound = TypeVar("AnyFound", bound=Found)


@dataclass(frozen=True, eq=False)
class PatternSlopes:
    """Gradient of the loss with respect to the weights of label patterns.

    For objectives that are functions of the marginals, the curvature of the likelihood is used. So
    their slopes are divided by `unit`: the steepest slope of a score is then 1; those of the
    likelihood are at most 1, and not divided.
    """

    slopes: NDArray[np.float64]
    """(P,)"""
    curvatures: NDArray[np.float64]
    """(P,) how the slopes change, see `PatternBound.curvatures`."""
    unit: float
    """The slopes are divided by this number; multiplied by it, they are those of the objective."""


@dataclass(frozen=True, eq=False)
class Along(Generic[AnyFound]):
    """The measurement of some scores along a direction."""

    found: AnyFound
    slope: float
    """Derivative of the loss along the direction, through the scores of trees only."""
    arc_slopes: NDArray[np.float64]
    """Gradient of the loss with respect to the scores of the arcs."""


class TreeTraining(ABC, Generic[AnyScores, AnyFound]):
    """Scores of the training sequences, their measurements, and the trees grown from these.

    Parameters
    ----------
    training
        The training labels, and how they depend on each other.
    settings
        The settings.
    bound
        The bound that gives the curvatures of label patterns.
    scores
        Of the training sequences, by the rounds so far.
    """

    learns_as_it_measures: bool = False
    """Whether `measure` finds what trees learn from, which takes additional time."""

    def __init__(
        self, training: TrainingSet, settings: Settings, bound: PatternBound, scores: AnyScores
    ) -> None:
        self.training, self.settings, self.bound = training, settings, bound
        self.targets, self.trellis = training.targets, training.targets.trellis
        self.scores = scores
        self.proposed = self.empty_proposal()
        self.curvature_weights = _weigh_curvature(self.targets)

    def empty_proposal(self) -> AnyScores:
        """Scores to propose, not filled yet."""
        return self.scores.twin()

    def propose(self, trees: Forest) -> None:
        """Scores with more trees, which can be measured, and are then accepted or rejected."""
        self.scores.add(trees, self.proposed)

    def accept(self) -> None:
        """Continue with the proposed scores."""
        self.scores, self.proposed = self.proposed, self.scores

    def reject(self, parts: Sequence[Part]) -> None:
        """Continue with the scores as they were; ``parts`` are those of all rounds so far."""
        return

    @abstractmethod
    def measure(
        self,
        objective: TrainingObjective,
        scores: AnyScores,
        arcs: NDArray[np.float64],
        round_number: int | None,
    ) -> AnyFound:
        """Measure an objective at scores.

        ``round_number`` is the round that learns from the measurement, None if there is none.
        """

    @abstractmethod
    def measure_along(
        self,
        objective: TrainingObjective,
        scores: AnyScores,
        arcs: NDArray[np.float64],
        round_number: int,
        direction: AnyScores,
    ) -> Along[AnyFound]:
        """Like `measure`, with the derivative along a direction; for rounds with directions."""

    @abstractmethod
    def slopes(self) -> tuple[NDArray[Any], ...]:
        """The slopes that `derive` found last, one array for each of `RunningScores.arrays`.

        They are divided by `PatternSlopes.unit`, and invalid after the next `measure`. Only for
        rounds with directions.
        """

    @abstractmethod
    def derive(self, found: AnyFound, objective: TrainingObjective) -> PatternSlopes:
        """Slopes and curvatures of the last measurement, from which trees can then be grown."""

    def learn_from(self, data: _core.TreeData) -> None:
        """Grow trees from other columns, if queries are extended."""
        raise NotImplementedError

    works_ahead: ClassVar[bool] = False
    """Whether work starts before its result is needed, and runs in the background."""

    def start_growing(self, round_number: int) -> None:
        """Start growing the trees of a round."""
        return

    def start_measuring(
        self, objective: TrainingObjective, arcs: NDArray[np.float64], following: int | None
    ) -> None:
        """Start measuring the full step: scores with the trees being grown, and scores of arcs.

        ``following``: the number of the next round, whose trees are then grown from this
        measurement; None: no trees are grown from it yet.
        """
        return

    @abstractmethod
    def grow(self, round_number: int) -> Forest:
        """One tree per label, from the last derived slopes."""

    def count_right(
        self, found: AnyFound, objective: TrainingObjective, arcs: NDArray[np.float64]
    ) -> int:
        """Number of training labels that are decoded correctly from the last measured scores."""
        decode, n_threads = self.training.decode, self.settings.n_threads
        if decode == "marginal" and self.trellis.constraints is None and not objective.adds_costs:
            return _core.count_right(found.probabilities(), self.targets.codes, n_threads)
        return count_right(self.score(arcs), self.targets, decode, n_threads=n_threads)

    def learner_options(self) -> dict[str, Any]:
        """What a learner of any kind of trees needs from the training set."""
        return {
            "offsets": self.targets.offsets,
            "codes": self.targets.codes,
            "scales": self.curvature_weights,
            "identities": self.training.identities,
            "bound": self.targets.bound,
            "n_positions": self.targets.n_positions,
            "column_rules": self.settings.column_rules,
            "n_threads": self.settings.n_threads,
            "comm": self.targets.comm,
        }

    def score(self, arcs: NDArray[np.float64]) -> Iterator[Scores]:
        """Scores by the rounds so far, in runs."""
        return self.scores.runs(arcs)

    def measure_mixing(
        self, targets: Targets, found: Measured, arc_sums: NDArray[np.float64]
    ) -> Mixing:
        """Mixing: how strongly labels depend on each other.

        An automaton is replaced by a first-order chain: the score of a label pair is the mean score
        of its arcs, weighted by ``arc_sums``, their expected or observed counts.
        """
        settings = self.settings
        return measure_curvature(
            # in first-order boosting, only patterns need curvatures
            settings.curvature if settings.newton else "mixing",
            found.scores,
            self.training.grammar,
            found.posteriors,
            arc_sums,
            weights=targets.mean_weights,
            n_threads=settings.n_threads,
        )


class NodeTraining(TreeTraining[NodeScores, Measured]):
    """Training of trees on the input."""

    def __init__(
        self,
        training: TrainingSet,
        settings: Settings,
        bound: PatternBound,
        scores: NodeScores,
        data: _core.TreeData,
    ) -> None:
        super().__init__(training, settings, bound, scores)
        self.learner = TreeLearner(
            data,
            settings.growth_rules,
            settings.sampling,
            **self.learner_options(),
            # Adding a constant to all scores of a position has no effect: their slopes sum to 0.
            opposite=self.targets.n_labels == 2,
        )
        self._marginals = np.empty_like(scores.nodes)
        self._curvature_rows: NDArray[np.float32] | None = None
        (run,) = scores.runs(np.zeros(self.trellis.arc_shape))
        self.learns_as_it_measures = (
            needs_mixing(run, training.grammar) and inference(run).empty_mixing(run) is not None
        )
        self._gradients: NDArray[np.float64] | None = None
        self._observed: Observed | None = None  # if not None, the slopes are still marginals
        self._known: Slopes | None = None  # those of the last measurement

    def empty_proposal(self) -> NodeScores:
        """The scores themselves: unless rounds have directions, trees are added in place.

        That saves memory, and the time to copy the scores. Nearly all proposals are accepted, so
        they seldom have to be computed again, see `reject`.
        """
        return self.scores.twin() if self.settings.have_directions else self.scores

    def reject(self, parts: Sequence[Part]) -> None:
        """Compute the scores again; since that takes long, later proposals are separate."""
        if self.proposed is self.scores:
            self.scores.restore(parts)
            self.proposed = self.scores.twin()

    def learn_from(self, data: _core.TreeData) -> None:
        """Grow trees from other columns of the same positions."""
        self.learner.data = data

    def measure(
        self,
        objective: TrainingObjective,
        scores: NodeScores,
        arcs: NDArray[np.float64],
        round_number: int | None,
    ) -> Measured:
        """Measure all sequences at once, with mixing rates if a round learns from them."""
        (run,) = scores.runs(arcs)
        self._known = None
        run = replace(run, bound=self.targets.bound)
        mixing = round_number is not None and self.learns_as_it_measures
        n_threads = self.settings.n_threads
        return objective.measure(
            run, self.targets, n_threads=n_threads, out=self._marginals, mixing=mixing
        )

    def measure_along(
        self,
        objective: TrainingObjective,
        scores: NodeScores,
        arcs: NDArray[np.float64],
        round_number: int,
        direction: NodeScores,
    ) -> Along[Measured]:
        """Measure all sequences at once; the slopes are kept for `derive`.

        Mixing rates are not measured: a line search needs them only for its last step.
        """
        found = self.measure(objective, scores, arcs, None)
        self._known = found.slopes(self._own_gradients())
        slope = direction.slope_by((self._known.nodes,), self.targets.comm)
        return Along(found, slope, self._known.arcs)

    def slopes(self) -> tuple[NDArray[np.float64]]:
        """The slopes of the nodes."""
        return (self._slopes,)

    def derive(self, found: Measured, objective: TrainingObjective) -> PatternSlopes:
        """Slopes and curvatures of the last measurement.

        Slopes overwrite the marginals, except if the objective needs both, or if the learner
        computes slopes from marginals.
        """
        arc_sums = found.arc_sums
        mixing = self.measure_mixing(self.targets, found, arc_sums)
        found.drop_mixing()
        probabilities = found.probabilities()
        expected = self.trellis.pattern_sums(arc_sums)
        pattern_curvatures = self.bound.curvatures(mixing, probabilities, expected)
        rate = min(self.settings.learning_rate, 1.0)  # as `temper` does
        slopes, codes = self._known, found.observed_codes()
        if codes is not None and self.settings.newton and not self.settings.have_directions:
            # Few slopes are large enough to learn from, so the learner computes only these,
            # from the marginals.
            gammas = mixing.nodes
            self._slopes = probabilities
            self._curvatures = gammas if gammas.ndim == 2 else gammas[:, None]
            self._observed = Observed(codes, (rate, MODEST))
            patterns = self.trellis.pattern_sums(found.arc_slopes())
            return PatternSlopes(patterns, pattern_curvatures, 1.0)
        self._curvatures, self._observed = self._find_curvatures(mixing, probabilities, rate), None
        if slopes is None:
            own = None if objective.has_unit_slopes else self._own_gradients()
            slopes = found.slopes(own)
        nodes, patterns, unit = slopes.nodes, self.trellis.pattern_sums(slopes.arcs), 1.0
        if not objective.has_unit_slopes:
            unit = steepest(nodes, self.curvature_weights, self.targets.comm)
            if unit > 0:
                for part in (nodes, patterns):
                    np.divide(part, unit, out=part)
        self._slopes = nodes
        return PatternSlopes(patterns, pattern_curvatures, unit)

    def _own_gradients(self) -> NDArray[np.float64]:
        """An array for slopes in addition to the marginals, reused in every call."""
        if self._gradients is None:
            self._gradients = np.empty_like(self._marginals)
        return self._gradients

    def grow(self, round_number: int) -> Forest:
        """One tree per label, from slopes and curvatures of the nodes."""
        return self.learner.grow(self._slopes, self._curvatures, round_number, self._observed)

    def _find_curvatures(
        self, mixing: Mixing, probabilities: NDArray[np.float64], rate: float
    ) -> NDArray[np.float32]:
        """Curvatures: (N, K), or (N, 1) for first-order boosting."""
        scales = self.curvature_weights
        if not self.settings.newton:
            ones = np.ones(len(probabilities)) if scales is None else scales
            return ones.astype(np.float32)[:, None]
        if self._curvature_rows is None:
            self._curvature_rows = np.empty(probabilities.shape, np.float32)
        out, n_threads = self._curvature_rows, self.settings.n_threads
        _core.fill_curvatures(probabilities, mixing.nodes, scales, rate, MODEST, out, n_threads)
        return out


def steepest(
    slopes: NDArray[np.float64], weights: NDArray[np.float64] | None, comm: Comm = ALONE
) -> float:
    """The largest absolute value of slopes (N, n), each divided by its position's weight, (N,)."""
    if weights is None:
        found = max(float(slopes.max(initial=0.0)), -float(slopes.min(initial=0.0)))
    else:
        largest = np.maximum(slopes.max(axis=1), -slopes.min(axis=1))
        shares = np.divide(largest, weights, where=weights > 0, out=np.zeros_like(weights))
        found = float(shares.max(initial=0.0))
    return largest_of_all(found, comm)


def _weigh_curvature(targets: Targets) -> NDArray[np.float64] | None:
    """Weight of the curvature of each position, (N,); None: all are 1.

    It is the weight of the position; if that is 0, the mean weight of its sequence, since its
    scores still affect its neighbours.
    """
    if targets.position_weights is None:
        return targets.weights
    assert targets.mean_weights is not None
    means = np.repeat(targets.mean_weights, np.diff(targets.offsets))
    return np.where(targets.position_weights > 0, targets.position_weights, means)
