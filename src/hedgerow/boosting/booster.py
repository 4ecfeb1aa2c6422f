"""Booster: one round of boosting after another.

A round measures what the model expects of the training labels, grows a tree for each label from the
difference to what was observed, moves the weights of label patterns, and makes sure that the loss
did not rise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.boosting.curvature import Curvature, measure_curvature
from hedgerow.boosting.schedule import RoundObjective, Schedule
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.transitions import bound_step, exact_step
from hedgerow.labels import Grammar
from hedgerow.objectives import (
    Expectations,
    Objective,
    Targets,
    expect,
    expect_labelwise,
    find_direction,
)
from hedgerow.trees.forest import Forest
from hedgerow.trees.learner import TreeLearner
from hedgerow.trellis import Potentials, forward_backward, tangent

__all__ = ["Booster", "Model", "score_positions"]

# A step that raises the loss is halved this often before it is given up.
MAX_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class Model:
    """What boosting learns: trees for the labels, and a weight for each label pattern, (P,)."""

    forest: Forest
    weights: NDArray[np.float64]


def score_positions(
    forest: Forest,
    bins: _core.Bins,
    grammar: Grammar,
    offsets: NDArray[np.int64],
    n_threads: int,
) -> NDArray[np.float64]:
    """Scores of the labels, (N, K): the sums of their trees, and -inf where one is forbidden."""
    scores = np.zeros((int(offsets[-1]), forest.n_outputs))
    grammar.restrict(scores, offsets)
    if forest.n_trees:
        forest.add_scores(bins, scores, scores, n_threads)
    return scores


class Booster:
    """The state of a training.

    Parameters
    ----------
    bins, data
        Bins of X's columns at the training positions, and these laid out for growing.
    targets, grammar
        The training labels, and how labels depend on each other.
    settings
        How to go about it.
    schedule
        What each round is trained for.
    start
        The model to go on from.
    """

    def __init__(
        self,
        bins: _core.Bins,
        data: _core.TreeData,
        targets: Targets,
        grammar: Grammar,
        settings: Settings,
        schedule: Schedule,
        start: Model,
    ) -> None:
        self.bins = bins
        self.targets = targets
        self.grammar = grammar
        self.settings = settings
        self.schedule = schedule
        self.n_rounds = start.forest.n_rounds
        self.weights = start.weights
        self.scores = score_positions(
            start.forest, bins, grammar, targets.offsets, settings.n_threads
        )
        self._curvature_weights = _weigh_curvature(targets)
        self.learner = TreeLearner(
            data,
            settings.growth_rules(),
            settings.sampling(),
            offsets=targets.offsets,
            codes=targets.codes,
            scales=self._curvature_weights,
            n_threads=settings.n_threads,
        )
        self._next_scores = np.empty_like(self.scores)
        self._marginals = np.empty_like(self.scores)
        self._gradients = np.empty_like(self.scores)
        self._bounds: NDArray[np.float32] | None = None
        self.objective: RoundObjective = schedule.objective_of(self.n_rounds)
        self.expected = self._expect(self.scores, self.weights)

    @property
    def loss(self) -> float:
        """What the last round had to lower, over all training positions."""
        return self.expected.loss

    def count_right(self) -> int:
        """How many training positions have their own label as the most probable one."""
        return _core.count_right(self._probabilities(), self.targets.codes, self.settings.n_threads)

    def advance(self) -> Forest | None:
        """Do one round; returns its trees, or None if there is nothing left to learn."""
        settings, number = self.settings, self.n_rounds
        self._turn_to(self.schedule.objective_of(number))
        gradients, slopes = self._measure_slopes()
        curvature = None
        if settings.newton:
            curvature = measure_curvature(
                settings.curvature,
                self._potentials(self.scores, self.weights),
                self.grammar,
                self.expected.posteriors,
                weights=self.targets.mean_weights,
                n_threads=settings.n_threads,
            )
        trees = self.learner.grow(gradients, self._curvatures(curvature), number)
        step = bound_step(
            slopes,
            self._pattern_curvatures(curvature),
            reg_lambda=settings.reg_lambda,
            max_step=settings.max_step,
        )
        stuck = not (trees.values.any() or step.any())
        if stuck and not (settings.draws or self.schedule.changes_after(number)):
            return None
        accepted = self._move(trees, settings.learning_rate * step)
        if accepted is None and not (settings.draws or self.schedule.changes_after(number)):
            return None
        self.n_rounds += 1
        return accepted if accepted is not None else trees.scaled(0.0)

    def _turn_to(self, objective: RoundObjective) -> None:
        """Go on with another objective, where it is another."""
        if objective is not self.objective:
            self.objective = objective
            self.expected = self._expect(self.scores, self.weights)

    def _measure_slopes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How the loss changes with the scores, (N, K), and with the weights of patterns, (P,).

        Those of other objectives than the likelihood are scaled so that the steepest is 1, as it is
        for the likelihood, whose curvature is taken for theirs.
        """
        if isinstance(self.objective, str):
            slopes = self.grammar.pattern_sums(self.expected.arc_slopes(self.targets))
            return self._likelihood_gradients(), slopes
        gradients = self._gradients
        slopes = self._follow(self.objective, self.scores, self.weights, gradients)
        steepest = self._steepest(gradients)
        if steepest > 0:
            for part in (gradients, slopes):
                np.divide(part, -steepest, out=part)
        return gradients, slopes

    def _follow(
        self,
        objective: Objective,
        scores: NDArray[np.float64],
        weights: NDArray[np.float64],
        out: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """How the value changes with the weights of patterns, (P,), and in `out` with the scores.

        The marginals must be those of these scores and weights.
        """
        tangents = tangent(
            self._potentials(scores, weights),
            self._marginals,
            find_direction(objective, self._marginals, self.targets),
            out=out,
            n_jobs=self.settings.n_threads,
        )
        assert tangents.arc_sums is not None
        return self.grammar.pattern_sums(tangents.arc_sums)

    def _steepest(self, slopes: NDArray[np.float64]) -> float:
        """The largest slope of a position and label, for each unit that the position counts."""
        if self._curvature_weights is None:
            return max(float(slopes.max()), -float(slopes.min()))
        weights = self._curvature_weights
        largest = np.maximum(slopes.max(axis=1), -slopes.min(axis=1))
        return float(
            np.max(np.divide(largest, weights, where=weights > 0, out=np.zeros_like(weights)))
        )

    def _likelihood_gradients(self) -> NDArray[np.float64]:
        """Expected less observed labels, (N, K), by as much as positions count."""
        targets, given = self.targets, self.expected.given
        gradients = self._gradients
        np.copyto(gradients, self.expected.posteriors.marginals)
        weights = np.ones(len(gradients)) if targets.weights is None else targets.weights
        if targets.position_weights is None and targets.weights is not None:
            gradients *= weights[:, None]
        known = targets.codes >= 0
        if given is not None and targets.partial is not None:
            partial = targets.partial.positions
            known[partial] = False
            gradients[partial] -= weights[partial, None] * given.marginals
        gradients[known, targets.codes[known]] -= weights[known]
        return gradients

    def _curvatures(self, curvature: Curvature | None) -> NDArray[np.float32]:
        """How the gradients change: (N, K), or (N, 1) for first-order boosting."""
        scales = self._curvature_weights
        if curvature is None:
            ones = np.ones(len(self.scores)) if scales is None else scales
            return ones.astype(np.float32)[:, None]
        if self._bounds is None:
            self._bounds = np.empty(self.scores.shape, np.float32)
        _core.fill_curvatures(
            self._probabilities(), curvature.nodes, scales, self._bounds, self.settings.n_threads
        )
        return self._bounds

    def _pattern_curvatures(self, curvature: Curvature | None) -> NDArray[np.float64]:
        """Bound on the second derivative of the loss by each pattern's weight, (P,).

        The sum over positions of gamma p (1 - p). Patterns of an automaton have only the sum n of
        their probabilities at hand, for which it is at most gamma (n - n^2 / N); and one of each
        length may end at the same position, so that so many move a score together.
        """
        n_edges = self._count_edges()
        if curvature is None:
            return np.full(len(self.weights), n_edges)
        if curvature.pairs is not None:
            return self.grammar.pattern_sums(curvature.pairs)
        expected = self._expected_counts()
        variances = (expected - expected**2 / max(n_edges, 1.0)).clip(min=0)
        n_lengths = max(self.grammar.patterns.longest - 1, 1)
        return n_lengths * curvature.edge_gamma(self.targets.weights) * variances

    def _expected_counts(self) -> NDArray[np.float64]:
        """How often each pattern occurs, by its probabilities, (P,)."""
        assert self.expected.posteriors.arc_sums is not None
        return self.grammar.pattern_sums(self.expected.posteriors.arc_sums)

    def _count_edges(self) -> float:
        """How many neighbouring positions there are, by the weight of their sequence."""
        counts = (np.diff(self.targets.offsets) - 1).clip(min=0)
        weights = self.targets.mean_weights
        return float(counts.sum() if weights is None else np.einsum("s,s", counts, weights))

    def _move(self, trees: Forest, step: NDArray[np.float64]) -> Forest | None:
        """Go the way of trees and weights, or half of it, and so on until the loss is no higher.

        Returns the trees as they were added, or None if no step was short enough.
        """
        loss = self.loss
        for halvings in range(MAX_HALVINGS):
            shorter = trees.scaled(0.5**halvings)
            shorter.add_scores(self.bins, self.scores, self._next_scores, self.settings.n_threads)
            if self.settings.transition_step == "exact":
                step = exact_step(
                    self._measure_weights,
                    self.weights,
                    self._expected_counts(),
                    reg_lambda=self.settings.reg_lambda,
                    n_threads=self.settings.n_threads,
                )
                weights = self.weights + step
            else:
                weights = self.weights + 0.5**halvings * step
            expected = self._expect(self._next_scores, weights)
            if expected.loss <= loss:
                self.scores, self._next_scores = self._next_scores, self.scores
                self.weights, self.expected = weights, expected
                return shorter
        self.expected = self._expect(self.scores, self.weights)
        return None

    def _measure_weights(self, weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Loss and its slopes at some weights, with the scores that are being tried."""
        expected = self._expect(self._next_scores, weights)
        if isinstance(self.objective, str):
            return expected.loss, self.grammar.pattern_sums(expected.arc_slopes(self.targets))
        return expected.loss, -self._follow(self.objective, self._next_scores, weights, None)

    def _potentials(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> Potentials:
        return Potentials(
            scores,
            self.grammar.arcs(weights),
            self.targets.offsets,
            automaton=self.grammar.automaton,
        )

    def _expect(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> Expectations:
        potentials = self._potentials(scores, weights)
        n_threads, out = self.settings.n_threads, self._marginals
        if isinstance(self.objective, str):
            return expect(potentials, self.targets, n_threads=n_threads, out=out)
        return expect_labelwise(
            self.objective, potentials, self.targets, n_threads=n_threads, out=out
        )

    def _probabilities(self) -> NDArray[np.float64]:
        """Marginals of the labels, (N, K)."""
        if self.targets.position_weights is None or self.objective != "likelihood":
            return self.expected.posteriors.marginals
        potentials = self._potentials(self.scores, self.weights)
        return forward_backward(potentials, pairs=None, n_jobs=self.settings.n_threads).marginals


def _weigh_curvature(targets: Targets) -> NDArray[np.float64] | None:
    """How much the curvature of each position counts, (N,).

    As much as the position; but where that is nothing, scores still matter to its neighbours.
    """
    if targets.position_weights is None:
        return targets.weights
    assert targets.mean_weights is not None
    means = np.repeat(targets.mean_weights, np.diff(targets.offsets))
    return np.where(targets.position_weights > 0, targets.position_weights, means)
