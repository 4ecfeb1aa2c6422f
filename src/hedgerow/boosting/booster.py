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
from hedgerow.boosting.schedule import Schedule
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.transitions import bound_step, exact_step
from hedgerow.labels import Grammar
from hedgerow.objectives import Measured, Targets, TrainingObjective
from hedgerow.trees.forest import Forest
from hedgerow.trees.learner import TreeLearner
from hedgerow.trellis import Scores

__all__ = ["Boosted", "Booster", "score_positions"]

# A step that raises the loss is halved this often before it is given up.
MAX_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class Boosted:
    """What boosting learns: trees for the labels, and a weight for each label pattern, (P,)."""

    forest: Forest
    weights: NDArray[np.float64]


def score_positions(
    forest: Forest, bins: _core.Bins, targets: Targets, n_threads: int
) -> NDArray[np.float64]:
    """Scores of the labels, (N, K): the sums of their trees, and -inf where one is forbidden."""
    scores = np.zeros((len(targets.codes), targets.n_labels))
    targets.trellis.restrict(scores, targets.offsets)
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
        start: Boosted,
    ) -> None:
        self.bins = bins
        self.targets = targets
        self.grammar = grammar
        self.trellis = targets.trellis
        self.settings = settings
        self.schedule = schedule
        self.n_rounds = start.forest.n_rounds
        self.weights = start.weights
        self.scores = score_positions(start.forest, bins, targets, settings.n_threads)
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
        self._gradients: NDArray[np.float64] | None = None
        self.objective = schedule.objective_of(self.n_rounds)
        self.measured = self._measure(self.scores, self.weights)

    @property
    def loss(self) -> float:
        """What the last round had to lower, over all training positions."""
        return self.measured.loss

    def count_right(self) -> int:
        """How many training positions have their own label as the most probable one."""
        return _core.count_right(
            self.measured.probabilities(), self.targets.codes, self.settings.n_threads
        )

    def advance(self) -> Forest | None:
        """Do one round; returns its trees, or None if there is nothing left to learn."""
        settings, number = self.settings, self.n_rounds
        self._turn_to(self.schedule.objective_of(number))
        curvature = None
        if settings.newton:
            curvature = measure_curvature(
                settings.curvature,
                self._all_scores(self.scores, self.weights),
                self.grammar,
                self.measured.posteriors,
                weights=self.targets.mean_weights,
                n_threads=settings.n_threads,
            )
        curvatures = self._curvatures(curvature)  # before the slopes take the marginals' place
        gradients, slopes = self._measure_slopes()
        trees = self.learner.grow(gradients, curvatures, number)
        step = bound_step(
            slopes,
            self._pattern_curvatures(curvature),
            reg_lambda=settings.reg_lambda,
            max_step=settings.max_step,
        )
        stuck = not (trees.values.any() or step.any())
        if stuck and not (settings.draws or self.schedule.changes_after(number)):
            self.measured = self._measure(self.scores, self.weights)  # its marginals are slopes now
            return None
        accepted = self._move(trees, settings.learning_rate * step)
        if accepted is None and not (settings.draws or self.schedule.changes_after(number)):
            return None
        self.n_rounds += 1
        return accepted if accepted is not None else trees.scaled(0.0)

    def _turn_to(self, objective: TrainingObjective) -> None:
        """Go on with another objective, where it is another."""
        if objective is not self.objective:
            self.objective = objective
            self.measured = self._measure(self.scores, self.weights)

    def _measure_slopes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How the loss changes with the scores, (N, K), and with the weights of patterns, (P,).

        Slopes that have a scale of their own are scaled so that the steepest is 1, as it is for the
        likelihood, whose curvature is taken for theirs.
        """
        if not self.objective.has_unit_slopes and self._gradients is None:
            self._gradients = np.empty_like(self._marginals)
        slopes = self.measured.slopes(self._gradients)
        nodes, patterns = slopes.nodes, self.trellis.pattern_sums(slopes.arcs)
        if not self.objective.has_unit_slopes:
            steepest = self._steepest(nodes)
            if steepest > 0:
                for part in (nodes, patterns):
                    np.divide(part, steepest, out=part)
        return nodes, patterns

    def _steepest(self, slopes: NDArray[np.float64]) -> float:
        """The largest slope of a position and label, for each unit that the position counts."""
        if self._curvature_weights is None:
            return max(float(slopes.max()), -float(slopes.min()))
        weights = self._curvature_weights
        largest = np.maximum(slopes.max(axis=1), -slopes.min(axis=1))
        return float(
            np.max(np.divide(largest, weights, where=weights > 0, out=np.zeros_like(weights)))
        )

    def _curvatures(self, curvature: Curvature | None) -> NDArray[np.float32]:
        """How the gradients change: (N, K), or (N, 1) for first-order boosting."""
        scales = self._curvature_weights
        if curvature is None:
            ones = np.ones(len(self.scores)) if scales is None else scales
            return ones.astype(np.float32)[:, None]
        # The scores of the next step are not there yet: their memory serves till then.
        out = self._next_scores.reshape(-1).view(np.float32)[: self.scores.size]
        out = out.reshape(self.scores.shape)
        probabilities, n_threads = self.measured.probabilities(), self.settings.n_threads
        _core.fill_curvatures(probabilities, curvature.nodes, scales, out, n_threads)
        return out

    def _pattern_curvatures(self, curvature: Curvature | None) -> NDArray[np.float64]:
        """Curvature of the loss in each pattern's weight, (P,), for a step in all of them at once.

        First-order boosting takes 1 per position. Otherwise it is, for pairs of a first-order
        chain, the sum over positions t of gamma_t p_t (1 - p_t), with p_t the probability that the
        pattern ends at t: see `hedgerow.boosting.curvature`.

        For an automaton, two bounds and one estimate take its place:

        - Only n = sum_t p_t is known, over the N positions that have a predecessor. As
          sum_t p_t^2 >= n^2 / N (Cauchy-Schwarz),

              sum_t p_t (1 - p_t) = n - sum_t p_t^2 <= n - n^2 / N.

          Weights of sequences are factors of each term, in n and N too.
        - The second derivative along a step is the variance of the change in score, a sum of one
          part x_l for each of the n_lengths = longest - 1 lengths of patterns. As
          Var(sum_l x_l) <= n_lengths sum_l Var(x_l) (Cauchy-Schwarz again), each length is
          bounded on its own, and its curvature multiplied by n_lengths.
        - gamma is its mean over the positions, and that of label pairs for all lengths.
        """
        n_edges = self._count_edges()
        if curvature is None:
            return np.full(len(self.weights), n_edges)
        if curvature.arcs is not None:
            return self.trellis.pattern_sums(curvature.arcs)
        expected = self._expected_counts()
        # Expected counts that are weighted by position may be negative.
        variances = (expected - expected**2 / max(n_edges, 1.0)).clip(min=0)
        n_lengths = max(self.grammar.patterns.longest - 1, 1)
        return n_lengths * curvature.edge_gamma(self.targets.weights) * variances

    def _expected_counts(self) -> NDArray[np.float64]:
        """How often each pattern occurs, by its probabilities, (P,)."""
        assert self.measured.posteriors.arc_sums is not None
        return self.trellis.pattern_sums(self.measured.posteriors.arc_sums)

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
            measured = self._measure(self._next_scores, weights)
            if measured.loss <= loss:
                self.scores, self._next_scores = self._next_scores, self.scores
                self.weights, self.measured = weights, measured
                return shorter
        self.measured = self._measure(self.scores, self.weights)
        return None

    def _measure_weights(self, weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Loss and its slopes at some weights, with the scores that are being tried."""
        measured = self._measure(self._next_scores, weights)
        return measured.loss, self.trellis.pattern_sums(measured.arc_slopes())

    def _all_scores(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> Scores:
        arcs = self.trellis.arc_scores(weights)
        return Scores(scores, arcs, self.targets.offsets, self.trellis)

    def _measure(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> Measured:
        return self.objective.measure(
            self._all_scores(scores, weights),
            self.targets,
            n_threads=self.settings.n_threads,
            out=self._marginals,
        )


def _weigh_curvature(targets: Targets) -> NDArray[np.float64] | None:
    """How much the curvature of each position counts, (N,).

    As much as the position; but where that is nothing, scores still matter to its neighbours.
    """
    if targets.position_weights is None:
        return targets.weights
    assert targets.mean_weights is not None
    means = np.repeat(targets.mean_weights, np.diff(targets.offsets))
    return np.where(targets.position_weights > 0, targets.position_weights, means)
