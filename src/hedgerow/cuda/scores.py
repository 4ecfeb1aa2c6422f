"""Scores of sequences that stay on a device while trees are added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.running_scores import Binned, RunningScores, TreeScoring
from hedgerow.cuda.bins import DeviceBins
from hedgerow.cuda.device import Device, DeviceArray
from hedgerow.cuda.layout import Layout
from hedgerow.potentials import Potential
from hedgerow.potentials.scoring import add_up, prepare
from hedgerow.sequences import Sequences
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest
from hedgerow.trellis import Scores, Trellis

__all__ = ["DeviceScores", "DeviceScoring"]


class DeviceScores(RunningScores):
    """Scores by trees on the input, by row of a layout.

    Parameters
    ----------
    start
        Scores of the same sequences on the CPU, from before the first round; only their bounds and
        trellis are used.
    bins
        The bins for walking trees.
    by_row : (n_rows, K)
        The scores.
    """

    def __init__(self, start: Scores, bins: DeviceBins, by_row: DeviceArray) -> None:
        self.start, self.bins, self.by_row = start, bins, by_row

    @classmethod
    def put(cls, scores: Scores, bins: DeviceBins, *, are_zeros: bool = False) -> DeviceScores:
        """Copy scores to the device of the bins; zeros are created there."""
        if are_zeros:
            shape = bins.layout.n_rows, *scores.nodes.shape[1:]
            return cls(scores, bins, bins.device.zeros(shape, np.float64))
        return cls(scores, bins, bins.put(scores.nodes))

    @property
    def nodes(self) -> NDArray[np.float64]:  # type: ignore[override]
        """A copy on the CPU, (N, K)."""
        return self.bins.device.download(self.by_row)[self.bins.layout.rows]

    def twin(self) -> DeviceScores:
        """Other scores of the same sequences on the same device, not filled yet."""
        by_row = self.bins.device.zeros(self.by_row.shape, np.float64)
        return DeviceScores(self.start, self.bins, by_row)

    @property
    def arrays(self) -> tuple[DeviceArray, ...]:
        """The array on the device."""
        return (self.by_row,)

    def add(self, trees: Forest, out: RunningScores) -> None:
        """Fill ``out`` with the scores plus the values of trees, on the device."""
        assert isinstance(out, DeviceScores)
        self.bins.add_forest(trees, self.by_row, out.by_row)

    def runs(self, arcs: NDArray[np.float64]) -> Iterator[Scores]:
        """All sequences in one run, on the CPU."""
        yield replace(self.start, nodes=self.nodes, arcs=arcs)


class DeviceScoring(TreeScoring):
    """How trees of a training run score sequences on a device, see `TreeScoring`."""

    def __init__(
        self,
        device: Device,
        columns: Columns,
        trellis: Trellis,
        given: tuple[Potential, ...],
        arcs: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        super().__init__(columns, trellis, given, arcs, n_threads)
        self.device = device

    def bin(self, sequences: Sequences) -> Binned:
        """Put the bins on the device."""
        n_labels, n_threads = self.trellis.n_labels, self.n_threads
        layout = Layout.plan(sequences.offsets, n_labels, self.device.n_multiprocessors)
        bins = DeviceBins(self.device, layout, self.columns, sequences, n_labels, n_threads)
        adders = prepare(self.given, sequences, self.trellis, None, n_threads)
        return Binned(bins, sequences.offsets, None, adders)

    def start(self, sequences: Binned) -> RunningScores:
        """Scores before the first round: those of other potentials."""
        (scores,) = add_up(
            sequences.given,
            sequences.offsets,
            self.arcs,
            self.trellis,
            parents=None,
            edge_shape=None,
        )
        return DeviceScores.put(scores, sequences.bins, are_zeros=not any(sequences.given))
