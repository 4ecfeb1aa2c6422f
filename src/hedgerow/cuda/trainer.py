"""Training of trees on a GPU: from parameters and labelled sequences to a booster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hedgerow.boosting.running_scores import Binned, RunningScores, TreeScoring
from hedgerow.boosting.settings import Settings, read_window
from hedgerow.boosting.trainer import BoostingTrainer
from hedgerow.boosting.transitions import PatternBound
from hedgerow.boosting.tree_training import TreeTraining
from hedgerow.cuda import cupy_device
from hedgerow.cuda.layout import Layout
from hedgerow.cuda.scores import DeviceScores, DeviceScoring
from hedgerow.cuda.support import check_memory, check_supported
from hedgerow.cuda.training import DeviceTraining
from hedgerow.potentials.scoring import sum_arcs

__all__ = ["CudaTrainer"]


class CudaTrainer(BoostingTrainer):
    """Makes a `Booster` whose scores and trees are on a GPU."""

    def _build_scoring(self) -> TreeScoring:
        """Find the GPU, and refuse unsupported settings."""
        device, data, settings = cupy_device.find_device(), self.data, self.settings
        check_supported(self.crf, data, settings, self.objective, refines=self.refiner is not None)
        layout = Layout.plan(data.targets.offsets, data.trellis.n_labels, device.n_multiprocessors)
        check_memory(
            device,
            layout,
            self.columns,
            settings,
            self._offsets,
            data.trellis.n_labels,
            self.objective,
            has_position_weights=data.targets.position_weights is not None,
        )
        arcs = sum_arcs(data.given, data.trellis)
        return DeviceScoring(
            device, self.columns, data.trellis, data.given, arcs, settings.n_threads
        )

    @property
    def _offsets(self) -> range:
        """Offsets of the columns that trees split on."""
        before, after = read_window(self.crf.window)
        return range(-before, after + 1)

    def _prepare_trees(
        self, settings: Settings, binned: Binned
    ) -> Callable[[PatternBound, RunningScores], TreeTraining[Any, Any]]:
        """What trains trees, on the device of the scores."""

        def train(bound: PatternBound, scores: RunningScores) -> TreeTraining[Any, Any]:
            assert isinstance(scores, DeviceScores)
            return DeviceTraining(self.data, settings, bound, scores, self.columns, self._offsets)

        return train
