"""The loss of a linear CRF and its gradient: once around the ring.

Potentials (weights times attributes), trellis, marginals, residuals p - mu, gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.linear.training_set import TrainingSet
from hedgerow.linear.weights import Batch, LinearWeights, WeightLayout, batches
from hedgerow.sequences import SparseRows
from hedgerow.trellis import Posteriors, forward_backward, weighted_forward_backward


@dataclass(frozen=True, eq=False)
class Part:
    """Some consecutive sequences of a training set, with their attributes."""

    sequences: slice
    positions: slice
    offsets: NDArray[np.int64]
    blocks: _core.AttributeBlocks

    @classmethod
    def from_batch(cls, batch: Batch) -> Part:
        """Lay out the attributes of a batch for training."""
        rows = batch.rows
        blocks = _core.AttributeBlocks(rows.indptr, rows.indices, rows.values, rows.n_columns)
        return cls(batch.sequences, batch.positions, batch.offsets, blocks)

    @property
    def n_positions(self) -> int:
        """Number of positions."""
        return int(self.positions.stop - self.positions.start)

    def fill_scores(
        self,
        layout: WeightLayout,
        weights: NDArray[np.float64],
        biases: NDArray[np.float64] | None,
        out: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        """Scores of all outputs, ``out`` (N, n_outputs): biases plus weights times values."""
        self.blocks.fill_scores(layout.offsets, layout.outputs, weights, biases, out, n_threads)

    def add_gradient(
        self,
        layout: WeightLayout,
        residuals: NDArray[np.float64],
        sums: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        """Add the gradient with respect to the weights, from that with respect to the scores."""
        self.blocks.add_gradient(layout.offsets, layout.outputs, residuals, sums, n_threads)


class LinearLoss:
    """Negative log-likelihood plus ``reg_lambda / 2`` times the squared norm of the weights.

    Parameters
    ----------
    data, rows
        The training set, and the attributes of its positions, which are copied.
    layout, edge_layout
        The weights to train.
    reg_lambda
        Strength of the L2 penalty.
    n_threads
        Number of threads; the result does not depend on it.
    """

    def __init__(
        self,
        data: TrainingSet,
        rows: SparseRows,
        layout: WeightLayout,
        edge_layout: WeightLayout | None,
        *,
        reg_lambda: float,
        n_threads: int,
    ) -> None:
        self.data = data
        self.layout = layout
        self.edge_layout = edge_layout
        self.reg_lambda = reg_lambda
        self.n_threads = n_threads
        n_labels = layout.n_outputs
        self.parts = [
            Part.from_batch(batch)
            for batch in batches(rows, data.offsets, n_labels, edges=edge_layout is not None)
        ]
        self.observed_pairs = self._observed_pairs()
        largest = max(part.n_positions for part in self.parts)
        self._nodes, self._marginals = np.empty((2, largest, n_labels))

    def __call__(self, vector: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Loss at the weights `vector`, and its gradient."""
        weights = LinearWeights.from_vector(vector, self.layout, self.edge_layout)
        gradient = self.reg_lambda * vector
        sums = LinearWeights.from_vector(gradient, self.layout, self.edge_layout)
        loss = 0.5 * self.reg_lambda * float(np.einsum("i,i->", vector, vector))
        sums.arcs[:] -= self.observed_pairs
        for part in self.parts:
            loss -= self._add_part(weights, part, sums)
        return loss, gradient

    def _add_part(self, weights: LinearWeights, part: Part, sums: LinearWeights) -> float:
        """Add a part's gradient to `sums`; returns its log-likelihood."""
        n_labels, n_threads = self.layout.n_outputs, self.n_threads
        nodes = self._nodes[: part.n_positions]
        part.fill_scores(self.layout, weights.attributes, weights.biases, nodes, n_threads)
        edges = None
        if self.edge_layout is not None:
            pairs = np.empty((part.n_positions, n_labels * n_labels))
            part.fill_scores(self.edge_layout, weights.edges, None, pairs, n_threads)
            edges = pairs.reshape(-1, n_labels, n_labels)
        posteriors = self._posteriors(nodes, weights.arcs, edges, part)

        residuals = posteriors.marginals
        self._weigh(residuals, part)
        self._subtract_observed(residuals, self.data.codes, part)
        sums.biases[:] += residuals.sum(axis=0)
        part.add_gradient(self.layout, residuals, sums.attributes, n_threads)
        if self.edge_layout is None:
            assert posteriors.pair_sums is not None
            sums.arcs[:] += posteriors.pair_sums
        else:
            assert posteriors.pairs is not None
            pair_residuals = posteriors.pairs.reshape(-1, n_labels * n_labels)
            self._weigh(pair_residuals, part)
            sums.arcs[:] += pair_residuals.sum(axis=0).reshape(n_labels, n_labels)
            self._subtract_observed(pair_residuals, self.data.pair_codes, part)
            part.add_gradient(self.edge_layout, pair_residuals, sums.edges, n_threads)

        assert posteriors.log_likelihoods is not None
        if self.data.position_weights is None and self.data.sequence_weights is not None:
            return float(
                np.sum(posteriors.log_likelihoods * self.data.sequence_weights[part.sequences])
            )
        return float(posteriors.log_likelihoods.sum())

    def _posteriors(
        self,
        nodes: NDArray[np.float64],
        arcs: NDArray[np.float64],
        edges: NDArray[np.float64] | None,
        part: Part,
    ) -> Posteriors:
        data, codes = self.data, self.data.codes[part.positions]
        out = self._marginals[: len(nodes)]
        if data.position_weights is not None:
            return weighted_forward_backward(
                nodes,
                arcs,
                part.offsets,
                codes,
                data.position_weights[part.positions],
                edges=edges,
                pairs="sum" if edges is None else "each",
                out=out,
                n_jobs=self.n_threads,
            )
        weights = data.sequence_weights
        return forward_backward(
            nodes,
            arcs,
            part.offsets,
            labels=codes,
            edges=edges,
            pairs="sum" if edges is None else "each",
            weights=None if weights is None else weights[part.sequences],
            out=out,
            n_jobs=self.n_threads,
        )

    def _weigh(self, expected: NDArray[np.float64], part: Part) -> None:
        """Multiply the expected counts (N, n_outputs) by the weights of their sequences."""
        if self.data.sequence_weights is not None and self.data.position_weights is None:
            assert self.data.scale is not None
            expected *= self.data.scale[part.positions, None]

    def _subtract_observed(
        self, expected: NDArray[np.float64], codes: NDArray[np.int32], part: Part
    ) -> None:
        """Turn weighed expected counts (N, n_outputs) into residuals; code -1 is no output."""
        codes = codes[part.positions]
        positions = np.flatnonzero(codes >= 0)
        scale = self.data.scale
        observed = 1.0 if scale is None else scale[part.positions][positions]
        expected[positions, codes[positions]] -= observed

    def _observed_pairs(self) -> NDArray[np.float64]:
        """How often each label pair occurs, weighed, (K, K)."""
        n_labels, codes, scale = self.layout.n_outputs, self.data.pair_codes, self.data.scale
        follows = codes >= 0
        counts = np.bincount(
            codes[follows], None if scale is None else scale[follows], n_labels * n_labels
        )
        return counts.astype(np.float64).reshape(n_labels, n_labels)
