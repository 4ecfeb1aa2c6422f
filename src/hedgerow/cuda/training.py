"""Training of trees on a device: forward-backward, derivatives and trees stay there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.curvature import MODEST
from hedgerow.boosting.settings import Settings
from hedgerow.boosting.transitions import PatternBound
from hedgerow.boosting.tree_training import Along, PatternSlopes, TreeTraining
from hedgerow.cuda.chain import DeviceChain, Expected
from hedgerow.cuda.learner import DeviceLearner, TreeInputs
from hedgerow.cuda.scores import DeviceScores
from hedgerow.objectives import TrainingObjective
from hedgerow.training.training_set import TrainingSet
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest

__all__ = ["DeviceTraining"]


@dataclass(eq=False)
class DeviceExpectations:
    """The likelihood of some scores, and what they expect of the labels."""

    loss: float
    """Negative log-likelihood of the labels, weights included."""
    expected: Expected
    chain: DeviceChain
    arc_counts: NDArray[np.float64]
    """(K, K) how often label pairs occur, weights included."""

    @property
    def arc_sums(self) -> NDArray[np.float64]:
        """Expected number of times each label pair occurs."""
        return self.expected.arc_sums

    def arc_slopes(self) -> NDArray[np.float64]:
        """Expected minus observed counts."""
        return self.arc_sums - self.arc_counts

    def probabilities(self) -> NDArray[np.float64]:
        """A copy of the marginals, (N, K), as long as nothing else was measured."""
        marginals = self.chain.device.download(self.chain.marginals)
        return marginals[self.chain.layout.rows]


class DeviceTraining(TreeTraining[DeviceScores, DeviceExpectations]):
    """Of trees on the input.

    Parameters
    ----------
    training, settings, bound, scores
        As `TreeTraining` has them.
    columns
        What trees ask about.
    offsets
        Where in the window they do.
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
            bins.device, bins.layout, targets.n_labels, targets.codes, targets.sequence_weights
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
            rate=min(settings.learning_rate, 1.0),
            modest=MODEST,
            newton=settings.newton,
            opposite=targets.n_labels == 2,
        )

    def propose(self, trees: Forest) -> None:
        """Trees that were just grown are on the device still."""
        self.learner.add(trees, self.scores.by_row, self.proposed.by_row)

    def measure(
        self,
        objective: TrainingObjective,
        scores: DeviceScores,
        arcs: NDArray[np.float64],
        round_number: int | None,
    ) -> DeviceExpectations:
        """All at once."""
        expected = self.chain.measure(scores.by_row, arcs)
        return DeviceExpectations(expected.loss, expected, self.chain, self.targets.arc_counts)

    def measure_along(
        self,
        objective: TrainingObjective,
        scores: DeviceScores,
        arcs: NDArray[np.float64],
        round_number: int,
        direction: DeviceScores,
    ) -> Along[DeviceExpectations]:
        """Never asked for: such directions are refused."""
        raise NotImplementedError

    def slopes(self) -> tuple[NDArray[np.float64], ...]:
        """Never asked for either."""
        raise NotImplementedError

    def derive(self, found: DeviceExpectations, objective: TrainingObjective) -> PatternSlopes:
        """Those of the nodes follow on the device."""
        sums = self.trellis.pattern_sums
        return PatternSlopes(
            sums(found.arc_slopes()), sums(found.expected.arc_curvatures), unit=1.0
        )

    def start_growing(self, round_number: int) -> None:
        """Launch all kernels."""
        assert self.chain.labels is not None
        inputs = TreeInputs(self.chain.marginals, self.chain.gammas, self.chain.labels)
        self.learner.launch(inputs, round_number)

    def grow(self, round_number: int) -> Forest:
        """Wait for the trees."""
        return self.learner.collect()

    def count_right(
        self,
        found: DeviceExpectations,
        objective: TrainingObjective,
        arcs: NDArray[np.float64],
    ) -> int:
        """On the device."""
        if self.training.decode == "viterbi":
            return self.chain.count_right(self.chain.viterbi(self.scores.by_row, arcs))
        return self.chain.count_right(self.chain.choose_labels())
