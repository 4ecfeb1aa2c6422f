"""Training of trees on a device: forward-backward, derivatives and trees stay there.

A function of the marginals and its gradient with respect to them are evaluated on the CPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.curvature import MODEST
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.transitions import PatternBound
from hedgerow.boosting.tree_training import Along, PatternSlopes, TreeTraining, steepest
from hedgerow.cuda.chain import DeviceChain, Expected
from hedgerow.cuda.device import DeviceArray
from hedgerow.cuda.learner import DeviceLearner, TreeInputs
from hedgerow.cuda.scores import DeviceScores
from hedgerow.objectives import Objective, OfMarginals, Targets, TrainingObjective
from hedgerow.objectives.labelwise import find_direction, measure_loss
from hedgerow.training.training_set import TrainingSet
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest

__all__ = ["DeviceTraining"]


@dataclass(eq=False)
class DeviceFound(ABC):
    """Measurements of scores, and expected counts of labels."""

    loss: float
    """The loss, summed over all positions with their weights."""
    expected: Expected
    chain: DeviceChain
    targets: Targets

    @property
    def arc_sums(self) -> NDArray[np.float64]:
        """Expected number of times each label pair occurs."""
        return self.expected.arc_sums

    def arc_slopes(self) -> NDArray[np.float64]:
        """Gradient of the loss with respect to the scores of label pairs."""
        return self.slopes()[1]

    def probabilities(self) -> NDArray[np.float64]:
        """A copy of the marginals, (N, K); must be called before the next measurement."""
        marginals = self.chain.device.download(self.chain.marginals)
        return marginals[self.chain.layout.rows]

    @abstractmethod
    def slopes(self) -> tuple[NDArray[np.float64] | None, NDArray[np.float64]]:
        """Slopes of the scores of labels, (N, K), and of label pairs.

        None instead of the former: the device computes them from expected and observed counts.
        """


class DeviceExpectations(DeviceFound):
    """The likelihood: slopes are expected minus observed counts."""

    def slopes(self) -> tuple[None, NDArray[np.float64]]:
        """None, as the device computes slopes of labels; and the slopes of label pairs."""
        return None, self.arc_sums - self.targets.arc_counts


@dataclass(eq=False)
class DeviceMarginals(DeviceFound):
    """A function of the marginals, and the scores that they were computed from."""

    objective: Objective
    by_row: DeviceArray
    arcs: NDArray[np.float64]

    def slopes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Slopes of labels and of label pairs.

        Minus the derivative of the marginals along the objective's gradient with respect to them.
        """
        direction = find_direction(self.objective, self.probabilities(), self.targets)
        marginals, pairs = self.chain.tangent(self.by_row, self.arcs, direction)
        return -marginals, -pairs


class DeviceTraining(TreeTraining[DeviceScores, DeviceFound]):
    """Training of trees on the input, on a device.

    Parameters
    ----------
    training, settings, bound, scores
        See `TreeTraining`.
    columns
        The columns that trees split on.
    offsets
        Their offsets in the window.
    """

    def __init__(
        self,
        training: TrainingSet,
        settings: Settings,
        bound: PatternBound,
        scores: DeviceScores,
        columns: Columns,
        offsets: range,
    ) -> None:
        super().__init__(training, settings, bound, scores)
        targets, bins = self.targets, scores.bins
        self.chain = DeviceChain(
            bins.device,
            bins.layout,
            targets.n_labels,
            targets.codes,
            targets.mean_weights,
            targets.position_weights,
            decode=training.decode,
        )
        self.learner = DeviceLearner(
            bins.device,
            bins,
            columns,
            offsets,
            settings.growth_rules,
            settings.sampling,
            n_outputs=targets.n_labels,
            scales=self.curvature_weights,
            identities=training.identities,
            rate=min(settings.learning_rate, 1.0),
            modest=MODEST,
            newton=settings.newton,
            opposite=targets.n_labels == 2,
        )
        # Scores of the arcs with which a measurement of the proposed scores is running.
        self._begun: NDArray[np.float64] | None = None
        # Slopes that come from the CPU.
        self._given_slopes: DeviceArray | None = None
        # Functions that wait for the trees of a round, and for those grown from proposed scores.
        self._growing: Callable[[], Forest]
        self._following: Callable[[], Forest] | None = None
        # Whether the last measurement had been launched ahead, with the right scores.
        self._is_ahead = False

    works_ahead = True

    def start_measuring(
        self, objective: TrainingObjective, arcs: NDArray[np.float64], following: int | None
    ) -> None:
        """Launch all kernels of the measurement, and those that grow the next round's trees."""
        by_row, of_marginals = self.proposed.by_row, isinstance(objective, OfMarginals)
        fill = partial(self.learner.add_next, self.scores.by_row, by_row)
        self.chain.launch(by_row, arcs, by_position=not of_marginals, fill=fill)
        self._begun = arcs
        if following is not None and self._is_ahead and not of_marginals:
            self._following = self._launch_trees(following)

    def propose(self, trees: Forest) -> None:
        """Propose scores with more trees, unless the device has already added them."""
        if self._begun is None or not (trees.tree_weights == 1.0).all():
            self._begun = None
            self.learner.add(trees, self.scores.by_row, self.proposed.by_row)

    def measure(
        self,
        objective: TrainingObjective,
        scores: DeviceScores,
        arcs: NDArray[np.float64],
        round_number: int | None,
    ) -> DeviceFound:
        """Measure all sequences at once."""
        chain, targets = self.chain, self.targets
        by_row, by_position = scores.by_row, not isinstance(objective, OfMarginals)
        has_begun = self._has_begun(scores, arcs)
        if not has_begun:
            chain.launch(by_row, arcs, by_position=by_position)
        self._begun = None
        expected = chain.collect(by_row, arcs, by_position=by_position)
        self._is_ahead = has_begun and not expected.repaired
        if not self._is_ahead:
            self._following = None
        found = DeviceExpectations(expected.loss, expected, chain, targets)
        if not isinstance(objective, OfMarginals):
            return found
        function = objective.objective
        loss = measure_loss(function, found.probabilities(), targets).value
        return DeviceMarginals(loss, expected, chain, targets, function, scores.by_row, arcs)

    def _has_begun(self, scores: DeviceScores, arcs: NDArray[np.float64]) -> bool:
        """Whether these scores are being measured already."""
        is_proposed = self._begun is not None and scores is self.proposed
        return is_proposed and bool((arcs == self._begun).all())

    def measure_along(
        self,
        objective: TrainingObjective,
        scores: DeviceScores,
        arcs: NDArray[np.float64],
        round_number: int,
        direction: DeviceScores,
    ) -> Along[DeviceFound]:
        """Never used: rounds with directions are not supported on a device."""
        raise NotImplementedError

    def slopes(self) -> tuple[NDArray[np.float64], ...]:
        """Never used, for the same reason as `measure_along`."""
        raise NotImplementedError

    def derive(self, found: DeviceFound, objective: TrainingObjective) -> PatternSlopes:
        """Slopes and curvatures; for the likelihood, the device computes those of labels."""
        sums, (nodes, arcs), unit = self.trellis.pattern_sums, found.slopes(), 1.0
        patterns = sums(arcs)
        weighted = self.chain.weighted
        self._slopes = None if weighted is None else weighted.slopes
        if nodes is not None:
            unit = steepest(nodes, self.curvature_weights)
            if unit > 0:
                nodes, patterns = nodes / unit, patterns / unit
            self._given_slopes = self.scores.bins.put(nodes, self._given_slopes)
            self._slopes = self._given_slopes
        return PatternSlopes(patterns, sums(found.expected.arc_curvatures), unit)

    def start_growing(self, round_number: int) -> None:
        """Launch the kernels that grow trees, unless `start_measuring` has done so."""
        if self._following is None:
            self._following = self._launch_trees(round_number)
        self._growing, self._following = self._following, None

    def _launch_trees(self, round_number: int) -> Callable[[], Forest]:
        """Grow trees from the last measurement; returns a function that waits for them."""
        chain = self.chain
        inputs = TreeInputs(chain.marginals, chain.gammas, chain.labels, self._slopes)
        return self.learner.launch(inputs, round_number)

    def grow(self, round_number: int) -> Forest:
        """Wait for the trees."""
        return self._growing()

    def count_right(
        self,
        found: DeviceFound,
        objective: TrainingObjective,
        arcs: NDArray[np.float64],
    ) -> int:
        """Number of correct training labels, which the device counted with the measurement."""
        return found.expected.n_right
