"""Training of trees that split on previous labels.

There are many edge scores: one for each arc of the trellis at every position. So sequences are
measured in runs with a limited number of edges, and only the examples that trees learn from are
kept: `hedgerow._core.ContextExamples`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.boosting.curvature import temper
from hedgerow.boosting.rounds import Part
from hedgerow.boosting.running_scores import ContextScores, NodeScores, RunningScores
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.transitions import PatternBound
from hedgerow.boosting.tree_training import (
    Along,
    NodeTraining,
    PatternSlopes,
    TreeTraining,
    steepest,
)
from hedgerow.exact_sums import ExactTotal
from hedgerow.graph import find_roots
from hedgerow.objectives import EdgeMemory, Measured, PairCounts, Targets, TrainingObjective
from hedgerow.sequences import cut_runs
from hedgerow.training.training_set import TrainingSet
from hedgerow.trees.forest import Forest
from hedgerow.trees.learner import ContextLearner
from hedgerow.trellis import Mixing, Scores, flatten_edges

__all__ = ["ContextTraining", "train_trees"]

# Slopes are rounding errors if they are smaller than this share of the largest at their position.
ROUNDING = 1e-14


def train_trees(
    training: TrainingSet,
    settings: Settings,
    bound: PatternBound,
    scores: RunningScores,
    data: _core.TreeData,
) -> TreeTraining[Any, Any]:
    """The tree training for scores of this kind: ContextTraining or NodeTraining."""
    if isinstance(scores, ContextScores):
        return ContextTraining(training, settings, bound, scores, data)
    assert isinstance(scores, NodeScores)
    return NodeTraining(training, settings, bound, scores, data)


@dataclass(eq=False)
class Sums:
    """Measurements of all sequences, except the examples that trees learn from."""

    total: ExactTotal
    """The loss, summed over all positions with their weights."""
    arc_sums: NDArray[np.float64]
    slopes: NDArray[np.float64]
    """Slopes of the arcs, not divided by `unit`."""
    marginals: NDArray[np.float64]
    """(N, K)"""
    mixing: Mixing
    """`Mixing.arc_curvatures` is None where it is not known arc by arc."""
    unit: float
    """What the slopes in the examples of the trees are divided by, see `PatternSlopes`."""

    @property
    def loss(self) -> float:
        """The loss, summed over all positions with their weights."""
        return self.total.value

    def add_mixing(self, part: Mixing, positions: slice) -> None:
        """Add the mixing of a run."""
        self.mixing.nodes[positions] = part.nodes.reshape(len(part.nodes), -1).max(axis=1)
        self.mixing.edges[positions] = part.edges
        known, more = self.mixing.arc_curvatures, part.arc_curvatures
        if known is None or more is None:
            self.mixing = replace(self.mixing, arc_curvatures=more)
        else:
            known += more

    def arc_slopes(self) -> NDArray[np.float64]:
        """Gradient of the loss with respect to the scores of the arcs."""
        return self.slopes

    def probabilities(self) -> NDArray[np.float64]:
        """Marginals of the labels."""
        return self.marginals


@dataclass(frozen=True, eq=False)
class _Part:
    """Some consecutive sequences: their numbers, positions and targets."""

    first: int
    stop: int
    positions: slice
    targets: Targets
    roots: NDArray[np.intp]
    """Their first positions, or those without a parent."""


@dataclass(frozen=True, eq=False)
class _Run:
    """A part with scores, as an objective needs it: see `ScoredPart`."""

    part: _Part
    running: ContextScores
    arcs: NDArray[np.float64]
    slopes: NDArray[np.float64]
    """(N, K) of all sequences"""

    @property
    def targets(self) -> Targets:
        return self.part.targets

    @property
    def positions(self) -> slice:
        return self.part.positions

    def scores(self) -> Scores:
        scores = self.running.run(self.part.first, self.part.stop, self.arcs)
        return replace(scores, bound=self.targets.bound)

    def empty_slopes(self) -> NDArray[np.float64]:
        return self.slopes[self.positions]


class ContextTraining(TreeTraining[ContextScores, Sums]):
    """Training of trees that split on previous labels."""

    learns_as_it_measures = True

    def __init__(
        self,
        training: TrainingSet,
        settings: Settings,
        bound: PatternBound,
        scores: ContextScores,
        data: _core.TreeData,
    ) -> None:
        super().__init__(training, settings, bound, scores)
        self.learner = ContextLearner(
            data,
            scores.scoring.contexts,
            settings.growth_rules,
            settings.sampling,
            **self.learner_options(),
        )
        self._slopes = np.empty_like(scores.nodes)
        self._edge_slopes = np.zeros_like(scores.edges) if settings.have_directions else None
        # Expected and observed counts of edges are enough for the learner only in second-order
        # boosting, where examples have probabilities, and if no direction needs slopes of edges.
        self._memory = EdgeMemory(
            counts=settings.newton and not settings.have_directions,
            n_positions=len(scores.nodes),
            trim=settings.sampling.trim if self.learner.scales is None else 0.0,
        )
        targets, offsets = self.targets, self.targets.offsets
        self._parts = []
        for first, stop in cut_runs(offsets, scores.run_size):
            positions = slice(int(offsets[first]), int(offsets[stop]))
            part = targets.part(slice(first, stop))
            roots = find_roots(part.offsets, part.parents)
            self._parts.append(_Part(first, stop, positions, part, roots))

    def empty_proposal(self) -> ContextScores:
        """Scores to propose, in the same array of edges as the current scores if possible.

        Sharing this array saves half of the memory for edges, and the time to fill another one.
        Nearly all proposals are accepted, so the edges seldom have to be computed again, see
        `reject`. If rounds have directions (see `Rounds`), proposals need an array of their own.
        """
        scores = self.scores
        return scores.twin() if self.settings.have_directions else scores.on_same_edges()

    def reject(self, parts: Sequence[Part]) -> None:
        """Compute the edges again; since that takes long, later proposals have their own array."""
        if self.proposed.edges is self.scores.edges:
            self.scores.restore_edges(parts)
            self.proposed = self.scores.twin()

    def measure(
        self,
        objective: TrainingObjective,
        scores: ContextScores,
        arcs: NDArray[np.float64],
        round_number: int | None,
    ) -> Sums:
        """Measure run by run; if a round learns from it, also collect the examples of its trees."""
        unit = 1.0
        if round_number is not None:
            if not objective.has_unit_slopes:
                unit = self._find_unit(objective, scores, arcs) or 1.0
            self.learner.begin(round_number)
        n_positions, shape = len(scores.nodes), self.trellis.arc_shape
        sums = Sums(
            ExactTotal(0.0, 0.0),
            np.zeros(shape),
            np.zeros(shape),
            np.empty_like(scores.nodes),
            Mixing(np.empty(n_positions, np.float32), np.empty(n_positions, np.float32), None),
            unit,
        )
        learns = round_number is not None
        for run, found in self._measure_runs(objective, scores, arcs, learns=learns):
            sums.total = sums.total.plus(found.total)
            sums.arc_sums += found.arc_sums
            if learns:
                self._learn(run, found, sums)
            else:
                sums.slopes += found.arc_slopes()
                sums.marginals[run.positions] = found.probabilities()
        return sums

    def measure_along(
        self,
        objective: TrainingObjective,
        scores: ContextScores,
        arcs: NDArray[np.float64],
        round_number: int,
        direction: ContextScores,
    ) -> Along[Sums]:
        """Measure with the derivative along a direction; `slopes` are kept until the next call."""
        found = self.measure(objective, scores, arcs, round_number)
        return Along(
            found, found.unit * direction.slope_by(self.slopes(), self.targets.comm), found.slopes
        )

    def slopes(self) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Slopes of nodes, and of edges, which are 0 at first positions: no edge leads there."""
        assert self._edge_slopes is not None
        return self._slopes, self._edge_slopes

    def _measure_runs(
        self,
        objective: TrainingObjective,
        scores: ContextScores,
        arcs: NDArray[np.float64],
        *,
        learns: bool = False,
    ) -> Iterator[tuple[_Run, Measured]]:
        runs = [_Run(part, scores, arcs, self._slopes) for part in self._parts]
        n_threads = self.settings.n_threads
        self._memory.begin(learns=learns)
        return objective.measure_parts(
            runs, self.targets, n_threads=n_threads, mixing=learns, memory=self._memory
        )

    def _find_unit(
        self, objective: TrainingObjective, scores: ContextScores, arcs: NDArray[np.float64]
    ) -> float:
        """The steepest slope of all positions, which is the unit of the slopes."""
        found, weights = 0.0, self.curvature_weights
        for run, measured in self._measure_runs(objective, scores, arcs):
            own = None if weights is None else weights[run.positions]
            slopes = measured.slopes(run.empty_slopes())
            assert slopes.edges is not None
            by_edge = flatten_edges(slopes.edges)
            found = max(found, steepest(slopes.nodes, own), steepest(by_edge, own))
        return found

    def _learn(self, run: _Run, found: Measured, sums: Sums) -> None:
        """Add the examples of a run."""
        n_labels, positions = self.targets.n_labels, run.positions
        offsets, parents = run.targets.offsets, run.targets.parents
        firsts = run.part.roots
        mixing = self.measure_mixing(run.targets, found, self.targets.arc_counts)
        sums.add_mixing(mixing, positions)
        marginals = sums.marginals[positions] = found.probabilities()
        gammas = self._find_gammas(mixing, positions, firsts)
        counts, by_edge = found.edge_counts(), None
        if isinstance(counts, PairCounts):
            sums.slopes += found.arc_slopes()
            counts.observed[firsts] = run.targets.codes[firsts]
            self.learner.add_pairs(
                positions.start,
                offsets,
                counts.expected.probs,
                counts.expected.observed,
                counts.observed,
                marginals,
                gammas,
            )
            return
        if counts is not None and self._edge_slopes is None:
            sums.slopes += found.arc_slopes()
            # Objectives with counts have slopes of at most 1, so no unit divides them.
            expected, observed = counts.expected, counts.observed
            expected[firsts, :n_labels] = marginals[firsts]
            observed[firsts] = run.targets.codes[firsts]
            by_edge = expected if self.settings.newton else None
            self.learner.add(
                positions.start,
                offsets,
                expected,
                by_edge,
                gammas,
                observed=observed,
                weights=counts.weights,
                parents=parents,
                totals=marginals,
            )
            return
        if self.settings.newton:
            by_edge = flatten_edges(found.edge_probabilities()).copy()
            by_edge[firsts, :n_labels] = marginals[firsts]
        slopes = found.slopes(run.empty_slopes())
        sums.slopes += slopes.arcs
        assert slopes.edges is not None
        gradients = flatten_edges(slopes.edges)
        gradients[firsts, :n_labels] = slopes.nodes[firsts]
        if sums.unit != 1.0:
            gradients /= sums.unit
        _clear_rounding_errors(gradients)
        if self._edge_slopes is not None:
            slopes.nodes[...] /= sums.unit
            self._edge_slopes[positions] = gradients
            self._edge_slopes[positions][firsts] = 0
        self.learner.add(positions.start, offsets, gradients, by_edge, gammas, parents=parents)

    def _find_gammas(
        self, mixing: Mixing, positions: slice, firsts: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Gammas times weights, (n,): the curvature of an edge is this times p (1 - p).

        In first-order boosting they are the weights alone, which are the curvatures.
        """
        if self.settings.newton:
            gammas = mixing.edges.copy()
            gammas[firsts] = mixing.nodes[firsts].reshape(len(firsts), -1).max(axis=1)
            gammas = temper(gammas, self.settings.learning_rate)
        else:
            gammas = np.ones(len(mixing.edges), np.float32)
        if self.curvature_weights is not None:
            gammas = gammas * self.curvature_weights[positions].astype(np.float32)
        return gammas

    def derive(self, found: Sums, objective: TrainingObjective) -> PatternSlopes:
        """Slopes and curvatures of the weights; for trees, the examples already contain them."""
        expected = self.trellis.pattern_sums(found.arc_sums)
        curvatures = self.bound.curvatures(found.mixing, found.marginals, expected)
        return PatternSlopes(
            self.trellis.pattern_sums(found.slopes) / found.unit, curvatures, found.unit
        )

    def grow(self, round_number: int) -> Forest:
        """One tree per label, from the examples of the last measurement."""
        return self.learner.grow(round_number)


def _clear_rounding_errors(gradients: NDArray[np.float64]) -> None:
    """Set slopes of edges to 0 where terms cancel, so that only rounding errors are left.

    In first-order boosting, every edge with a slope counts as an example. Slopes that cancel
    exactly with some weights, and nearly with others, must give the same trees.
    """
    sizes = np.abs(gradients)
    gradients[sizes < ROUNDING * sizes.max(axis=1, initial=0.0, keepdims=True)] = 0.0
