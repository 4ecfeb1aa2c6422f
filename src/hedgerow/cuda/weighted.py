"""The likelihood with a weight for each position, on a device: see `weighted_forward_backward`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.cuda.device import Device, DeviceArray, Kernels
from hedgerow.cuda.layout import Layout

__all__ = ["WeightedLikelihood"]


class WeightedLikelihood:
    """Computes loss, slopes and expected label pairs of the same sequences repeatedly.

    Parameters
    ----------
    device, layout, kernels
        As in `DeviceChain`.
    weights : (N,)
        Weight of each position.
    n_labels
        Number of labels, K.
    n_blocks
        Number of warps, each of which works on a sequence at a time.

    Attributes
    ----------
    slopes : (n_rows, K) float64
        Expected minus observed counts of the last measurement.
    """

    def __init__(
        self,
        device: Device,
        layout: Layout,
        kernels: Kernels,
        weights: NDArray[np.float64],
        n_labels: int,
        n_blocks: int,
    ) -> None:
        self.device, self.kernels, self.n_blocks = device, kernels, n_blocks
        self.n_sequences, self.n_arcs = layout.n_sequences, n_labels**2
        self.weights = weights
        by_row = np.zeros(layout.n_rows)
        by_row[layout.rows] = weights
        self._weights = device.upload(by_row)
        self.slopes = device.zeros((layout.n_rows, n_labels), np.float64)
        self._losses = device.zeros(self.n_sequences, np.float64)
        self._pairs = device.empty((n_blocks, self.n_arcs), np.float64)

    def launch(
        self,
        scores: DeviceArray,
        factors: DeviceArray,
        sequences: tuple[DeviceArray, DeviceArray, int],
        labels: DeviceArray,
        lost: DeviceArray,
    ) -> None:
        """Process all sequences that are not marked in ``lost``; mark those that lose precision."""
        self.device.clear(self._pairs)
        self.kernels.launch(
            "weigh_positions", self.n_blocks, 32, scores, factors, *sequences, labels,
            self._weights, lost, self.slopes, self._losses, self._pairs,
        )  # fmt: skip

    def sum_up(self, lost: DeviceArray, found: DeviceArray) -> None:
        """Write the loss, the number of sequences marked in ``lost``, and sums of label pairs."""
        launch, n_sequences, n_arcs = self.kernels.launch, self.n_sequences, self.n_arcs
        launch("sum_losses", 1, 256, self._losses, lost, n_sequences, found[:2])
        launch(
            "sum_columns", -(-n_arcs // 32), 256, self._pairs, self.n_blocks, n_arcs,
            found[3 : 3 + n_arcs],
        )  # fmt: skip
