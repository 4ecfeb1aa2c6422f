"""The loss of a linear CRF and its gradient: once around the ring.

Weights and attributes give the potentials, the objective their slopes, and the slopes, summed over
the positions of each attribute, the gradient with respect to the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.linear.attributes import attribute_blocks
from hedgerow.linear.weights import LinearWeights, WeightLayout, batches
from hedgerow.objectives import Targets, likelihood
from hedgerow.sequences import SparseRows
from hedgerow.trellis import Potentials


@dataclass(frozen=True, eq=False)
class Part:
    """Some consecutive sequences of a training set, with their attributes."""

    targets: Targets
    blocks: _core.AttributeBlocks

    @property
    def n_positions(self) -> int:
        """Number of positions."""
        return len(self.targets.codes)

    def fill_scores(
        self,
        layout: WeightLayout,
        weights: NDArray[np.float64],
        biases: NDArray[np.float64] | None,
        out: NDArray[np.float64],
        n_threads: int,
    ) -> NDArray[np.float64]:
        """Scores of all outputs, ``out`` (N, n_outputs): biases plus weights times values."""
        self.blocks.fill_scores(layout.offsets, layout.outputs, weights, biases, out, n_threads)
        return out

    def add_gradient(
        self,
        layout: WeightLayout,
        slopes: NDArray[np.float64],
        sums: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        """Add the gradient with respect to the weights, from the slopes of the scores."""
        self.blocks.add_gradient(layout.offsets, layout.outputs, slopes, sums, n_threads)


class LinearLoss:
    """Negative log-likelihood plus ``reg_lambda / 2`` times the squared norm of the weights.

    Parameters
    ----------
    rows, targets
        The training set: attributes, which are copied, and labels.
    layout, edge_layout
        The weights to train.
    reg_lambda
        Strength of the L2 penalty.
    n_threads
        Number of threads; the result does not depend on it.
    """

    def __init__(
        self,
        rows: SparseRows,
        targets: Targets,
        layout: WeightLayout,
        edge_layout: WeightLayout | None,
        *,
        reg_lambda: float,
        n_threads: int,
    ) -> None:
        self.layout = layout
        self.edge_layout = edge_layout
        self.reg_lambda = reg_lambda
        self.n_threads = n_threads
        self.parts = [
            Part(targets.part(batch.sequences), attribute_blocks(batch.rows))
            for batch in batches(
                rows, targets.offsets, targets.n_labels, edges=edge_layout is not None
            )
        ]
        largest = max(part.n_positions for part in self.parts)
        self._nodes, self._slopes = np.empty((2, largest, targets.n_labels))

    def __call__(self, vector: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Loss at the weights `vector`, and its gradient."""
        weights = LinearWeights.from_vector(vector, self.layout, self.edge_layout)
        gradient = self.reg_lambda * vector
        sums = LinearWeights.from_vector(gradient, self.layout, self.edge_layout)
        loss = 0.5 * self.reg_lambda * float(np.einsum("i,i->", vector, vector))
        for part in self.parts:
            loss += self._add_part(weights, part, sums)
        return loss, gradient

    def _add_part(self, weights: LinearWeights, part: Part, sums: LinearWeights) -> float:
        """Add a part's gradient to `sums`; returns its loss."""
        potentials = self._potentials(weights, part)
        out = self._slopes[: part.n_positions]
        slopes = likelihood(potentials, part.targets, n_threads=self.n_threads, out=out)
        sums.biases[:] += slopes.nodes.sum(axis=0)
        sums.arcs[:] += slopes.arcs
        part.add_gradient(self.layout, slopes.nodes, sums.attributes, self.n_threads)
        if self.edge_layout is not None:
            assert slopes.edges is not None
            by_pair = slopes.edges.reshape(part.n_positions, -1)
            part.add_gradient(self.edge_layout, by_pair, sums.edges, self.n_threads)
        return slopes.loss

    def _potentials(self, weights: LinearWeights, part: Part) -> Potentials:
        nodes = part.fill_scores(
            self.layout,
            weights.attributes,
            weights.biases,
            self._nodes[: part.n_positions],
            self.n_threads,
        )
        edges = None
        if self.edge_layout is not None:
            n_labels = self.layout.n_outputs
            out = np.empty((part.n_positions, n_labels * n_labels))
            part.fill_scores(self.edge_layout, weights.edges, None, out, self.n_threads)
            edges = out.reshape(-1, n_labels, n_labels)
        return Potentials(part.targets.offsets, nodes, weights.arcs, edges)
