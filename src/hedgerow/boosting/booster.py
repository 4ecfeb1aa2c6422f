"""Booster: one round of boosting after another.

A round measures what the model expects of the training labels, grows a tree for each label from the
difference to what was observed, moves the weights of label patterns, and makes sure that the loss
did not rise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.boosting.curvature import MODEST, measure_curvature
from hedgerow.boosting.rounds import Rounds
from hedgerow.boosting.schedule import Schedule
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.transitions import EXACT_EVERY, PatternBound, exact_step
from hedgerow.objectives import Measured, Targets, TrainingObjective
from hedgerow.potentials import AddScores, NodeTrees, PatternWeights, Potential
from hedgerow.potentials.scoring import add_up, sum_arcs
from hedgerow.sequences import Sequences
from hedgerow.state import State
from hedgerow.training.decoder import count_right
from hedgerow.training.training_set import TrainingSet
from hedgerow.training.update import Update
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest
from hedgerow.trees.learner import TreeLearner
from hedgerow.trellis import Mixing, Scores

__all__ = ["Binned", "Booster"]

# A step that raises the loss is shortened and tried again, so often before it is given up; less
# often if the next round learns from another sample, and may fare better.
MAX_TRIALS = 16
SAMPLED_TRIALS = 6
# Each time the step of the pattern weights is divided by four. The first times it alone is, while
# it lowers the loss by less than this share of what its slopes promise; then that of the trees is
# halved too.
PATTERN_TRIALS = 4
LEAST_SHARE = 0.25


@dataclass(eq=False)
class Binned:
    """Sequences that trees in training score.

    Attributes
    ----------
    bins : Bins
        Bins of X's columns at all positions.
    offsets : (S + 1,)
        Where the sequences begin and end.
    given : sequence of AddScores
        What adds the scores of potentials that are not learnt.
    scores : Scores or None
        Scores of the first `n_parts` parts of the rounds, and of those potentials.
    """

    bins: _core.Bins
    offsets: NDArray[np.int64]
    given: Sequence[AddScores | None]
    scores: Scores | None = None
    n_parts: int = 0

    @classmethod
    def of(
        cls, sequences: Sequences, columns: Columns, given: Sequence[Potential], n_threads: int
    ) -> Binned:
        """Bin sequences, which other potentials score too."""
        adders = [potential.prepare(sequences, n_threads) for potential in given]
        return cls(columns.bins(sequences, n_threads), sequences.offsets, adders)


class Booster(Update[Binned]):
    """Boosting of trees and of the weights of label patterns.

    Parameters
    ----------
    columns
        The columns of X.
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
    given
        Potentials that are not learnt.
    """

    def __init__(
        self,
        columns: Columns,
        binned: Binned,
        data: _core.TreeData,
        training: TrainingSet,
        settings: Settings,
        schedule: Schedule,
        rounds: Rounds,
        max_rounds: int,
        given: Sequence[Potential] = (),
    ) -> None:
        self.columns = columns
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
        self._has_edges = any(potential.has_edges for potential in given)
        self._bare_arcs = sum_arcs(given, self.trellis)
        self._bins, self._start = binned.bins, self._score(binned)
        self.scores = self._start.nodes
        self._curvature_weights = _weigh_curvature(targets)
        self.learner = TreeLearner(
            data,
            settings.growth_rules,
            settings.sampling,
            offsets=targets.offsets,
            codes=targets.codes,
            scales=self._curvature_weights,
            column_rules=settings.column_rules,
            # What is added to all scores of a position changes nothing: their slopes sum to 0.
            opposite=self.scores.shape[1] == 2,
            n_threads=settings.n_threads,
        )
        self._next_scores = np.empty_like(self.scores)
        self._marginals = np.empty_like(self.scores)
        self._gradients: NDArray[np.float64] | None = None
        # Where no round is left, that of the last one.
        self.objective = schedule.objective_of(min(self.n_done, max_rounds - 1))
        self.measured = self._measure(self.scores, self.weights)
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
        yield replace(self._score(sequences), arcs=self._arcs(self.weights))

    def score_kept(self, sequences: Binned) -> Iterator[Scores]:
        """By the rounds that are kept."""
        if self.rounds.n_kept == len(self.rounds.parts):
            yield from self.score(sequences)
            return
        scores = self._score_given(sequences)
        self.rounds.kept_forest().add_scores(
            sequences.bins, scores.nodes, scores.nodes, self.n_threads
        )
        yield replace(scores, arcs=self._arcs(self.rounds.kept_weights))

    def score_training(self) -> Iterator[Scores]:
        """By the rounds so far."""
        yield self._all_scores(self.scores, self.weights)

    def _score(self, sequences: Binned) -> Scores:
        """Add what the rounds since the last call have learnt, but for the arcs."""
        if sequences.scores is None:
            sequences.scores = self._score_given(sequences)
        nodes = sequences.scores.nodes
        for trees in self.rounds.parts[sequences.n_parts :]:
            if trees.n_trees:
                trees.add_scores(sequences.bins, nodes, nodes, self.n_threads)
        sequences.n_parts = len(self.rounds.parts)
        return sequences.scores

    def _score_given(self, sequences: Binned) -> Scores:
        """Scores before the first round: those of other potentials."""
        (scores,) = add_up(
            sequences.given,
            sequences.offsets,
            self._bare_arcs,
            self.trellis,
            has_edges=self._has_edges,
        )
        return scores

    def _arcs(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of the arcs with some weights of the label patterns, (P,)."""
        return self._bare_arcs + self.trellis.arc_scores(weights, forbidden=0.0)

    def keep(self) -> None:
        """Keep the rounds so far."""
        self.rounds.keep(self._mean_loss())

    def potentials(self) -> tuple[Potential, ...]:
        """Trees and weights of label patterns."""
        trees = NodeTrees(self.columns, self.rounds.kept_forest())
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
        mixing = measure_curvature(
            settings.curvature if settings.newton else "mixing",  # then of patterns alone
            self._all_scores(self.scores, self.weights),
            self.grammar,
            self.measured.posteriors,
            weights=self.targets.mean_weights,
            n_threads=settings.n_threads,
        )
        probabilities = self.measured.probabilities()  # whose place the slopes take
        curvatures = self._curvatures(mixing, probabilities)
        pattern_curvatures = self._pattern_curvatures(mixing, probabilities)
        gradients, slopes = self._measure_slopes()
        trees = self.learner.grow(gradients, curvatures, number)
        resistances = self._penalties + settings.reg_lambda
        step = self._bound.step(slopes, pattern_curvatures, resistances, settings.max_step)
        stuck = not (trees.values.any() or step.any())
        if stuck and not (settings.draws or self.schedule.changes_after(number)):
            self.measured = self._measure(self.scores, self.weights)  # its marginals are slopes now
            return None
        accepted = self._move(trees, settings.learning_rate * step, slopes)
        if accepted is None and not (settings.draws or self.schedule.changes_after(number)):
            return None
        return accepted if accepted is not None else trees.scaled(0.0)

    def _turn_to(self, objective: TrainingObjective) -> None:
        """Go on with another objective, where it is another."""
        if objective is not self.objective:
            self.objective, self._unit = objective, 1.0
            self.measured = self._measure(self.scores, self.weights)

    def _measure_slopes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How the loss changes with the scores, (N, K), and with the weights of patterns, (P,).

        Slopes that have a scale of their own are scaled so that the steepest is 1, as it is for the
        likelihood, whose curvature is taken for theirs. Penalties have the same scale.
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
            self._unit = steepest
        return nodes, patterns + self._penalties * self.weights

    def _steepest(self, slopes: NDArray[np.float64]) -> float:
        """The largest slope of a position and label, for each unit that the position counts."""
        if self._curvature_weights is None:
            return max(float(slopes.max()), -float(slopes.min()))
        weights = self._curvature_weights
        largest = np.maximum(slopes.max(axis=1), -slopes.min(axis=1))
        return float(
            np.max(np.divide(largest, weights, where=weights > 0, out=np.zeros_like(weights)))
        )

    def _curvatures(
        self, mixing: Mixing, probabilities: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        """How the gradients change: (N, K), or (N, 1) for first-order boosting."""
        scales = self._curvature_weights
        if not self.settings.newton:
            ones = np.ones(len(self.scores)) if scales is None else scales
            return ones.astype(np.float32)[:, None]
        # The scores of the next step are not there yet: their memory serves till then.
        out = self._next_scores.reshape(-1).view(np.float32)[: self.scores.size]
        out = out.reshape(self.scores.shape)
        rate = min(self.settings.learning_rate, 1.0)  # as `temper` does
        _core.fill_curvatures(
            probabilities, mixing.nodes, scales, rate, MODEST, out, self.n_threads
        )
        return out

    def _pattern_curvatures(
        self, mixing: Mixing, probabilities: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """How the slopes of pattern weights change, (P,)."""
        if not len(self.weights):
            return np.zeros(0)
        return self._bound.curvatures(mixing, probabilities, self._expected_counts())

    def _expected_counts(self) -> NDArray[np.float64]:
        """How often each pattern occurs, by its probabilities, (P,)."""
        assert self.measured.posteriors.arc_sums is not None
        return self.trellis.pattern_sums(self.measured.posteriors.arc_sums)

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
            shorter.add_scores(self._bins, self.scores, self._next_scores, self.n_threads)
            weights = self.weights + 0.25**trial * step
            if exact and trial == first:
                weights, measured = self._fit_weights(weights)
            else:
                measured = self._measure(self._next_scores, weights)
            share = LEAST_SHARE * 0.25**trial if trial < PATTERN_TRIALS else 0.0
            if measured.loss + self._penalty(weights) <= loss + share * min(promise, 0.0):
                self.scores, self._next_scores = self._next_scores, self.scores
                self.weights, self.measured = weights, measured
                return shorter
        self.measured = self._measure(self.scores, self.weights)
        return None

    def _fit_weights(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], Measured]:
        """Go on to the best weights for the scores that are being tried, and measure them."""
        last: tuple[NDArray[np.float64], Measured] | None = None

        def measure(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            nonlocal last
            measured, loss, slopes = self._measure_weights(point)
            last = point, measured
            return loss, slopes

        weights = weights + exact_step(
            measure,
            weights,
            self._expected_counts() + self._unit * self._penalties,
            reg_lambda=self.settings.reg_lambda,
            n_threads=self.settings.n_threads,
        )
        if last is not None and np.array_equal(last[0], weights):  # mostly so: no need to repeat it
            return last
        return weights, self._measure(self._next_scores, weights)

    def _measure_weights(
        self, weights: NDArray[np.float64]
    ) -> tuple[Measured, float, NDArray[np.float64]]:
        """Loss, penalty included, and its slopes, with the scores that are being tried."""
        measured = self._measure(self._next_scores, weights)
        slopes = self.trellis.pattern_sums(measured.arc_slopes())
        pull = self._unit * self._penalties * weights
        return measured, measured.loss + self._penalty(weights), slopes + pull

    def _penalty(self, weights: NDArray[np.float64]) -> float:
        """Penalty of weights of label patterns, in the unit of the loss."""
        return self._unit / 2 * float(np.einsum("p,p,p", self._penalties, weights, weights))

    def _all_scores(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> Scores:
        return replace(self._start, nodes=scores, arcs=self._arcs(weights))

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
