"""The loss of a linear CRF and its gradient: once around the ring.

Potentials (weights times attributes), trellis, marginals, residuals p - mu, gradient.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.linear.attributes import AttributeColumns
from hedgerow.linear.training_set import TrainingSet
from hedgerow.linear.weights import Batch, LinearWeights, WeightLayout, batches
from hedgerow.trellis import Posteriors, forward_backward, weighted_forward_backward


class LinearLoss:
    """Negative log-likelihood plus ``reg_lambda / 2`` times the squared norm of the weights.

    Parameters
    ----------
    data
        The training set.
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
        self.parts = list(batches(data.rows, data.sequences.offsets, edge_layout))
        self.columns = (
            [data.columns]
            if len(self.parts) == 1
            else [AttributeColumns.from_rows(part.rows) for part in self.parts]
        )
        largest = max(len(part.rows.indptr) - 1 for part in self.parts)
        self._nodes, self._marginals = np.empty((2, largest, layout.n_outputs))

    def __call__(self, vector: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Loss at the weights `vector`, and its gradient."""
        weights = LinearWeights.from_vector(vector, self.layout, self.edge_layout)
        gradient = self.reg_lambda * vector
        sums = LinearWeights.from_vector(gradient, self.layout, self.edge_layout)
        loss = 0.5 * self.reg_lambda * float(vector @ vector)
        for part, columns in zip(self.parts, self.columns, strict=True):
            loss -= self._add_part(weights, part, columns, sums)
        return loss, gradient

    def _add_part(
        self, weights: LinearWeights, part: Batch, columns: AttributeColumns, sums: LinearWeights
    ) -> float:
        """Add a batch's gradient to `sums`; returns its log-likelihood."""
        n_positions, n_labels = len(part.rows.indptr) - 1, self.layout.n_outputs
        nodes = weights.nodes(part.rows, self.n_threads, out=self._nodes[:n_positions])
        edges = weights.edge_scores(part.rows, self.n_threads)
        posteriors = self._posteriors(nodes, weights.arcs, edges, part)

        residuals = posteriors.marginals
        self._subtract_observed(residuals, self.data.codes, part)
        sums.biases[:] += residuals.sum(axis=0)
        self._add_gradient(self.layout, columns, residuals, sums.attributes)
        if self.edge_layout is None:
            assert posteriors.pair_sums is not None
            sums.arcs[:] += posteriors.pair_sums - self._observed_pairs(part)
        else:
            assert posteriors.pairs is not None
            pair_residuals = posteriors.pairs.reshape(n_positions, n_labels * n_labels)
            self._subtract_observed(pair_residuals, self.data.pair_codes, part)
            sums.arcs[:] += pair_residuals.sum(axis=0).reshape(n_labels, n_labels)
            self._add_gradient(self.edge_layout, columns, pair_residuals, sums.edges)

        assert posteriors.log_likelihoods is not None
        if self.data.position_weights is None and self.data.sequence_weights is not None:
            return float(posteriors.log_likelihoods @ self.data.sequence_weights[part.sequences])
        return float(posteriors.log_likelihoods.sum())

    def _posteriors(
        self,
        nodes: NDArray[np.float64],
        arcs: NDArray[np.float64],
        edges: NDArray[np.float64] | None,
        part: Batch,
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

    def _subtract_observed(
        self, expected: NDArray[np.float64], codes: NDArray[np.int32], part: Batch
    ) -> None:
        """Turn expected counts (N, n_outputs) into residuals, in place; code -1 is no output."""
        codes = codes[part.positions]
        scale = None if self.data.scale is None else self.data.scale[part.positions]
        if scale is not None and self.data.position_weights is None:
            expected *= scale[:, None]  # position weights are in the expected counts already
        positions = np.flatnonzero(codes >= 0)
        expected[positions, codes[positions]] -= 1.0 if scale is None else scale[positions]

    def _observed_pairs(self, part: Batch) -> NDArray[np.float64]:
        n_labels = self.layout.n_outputs
        codes = self.data.pair_codes[part.positions]
        follows = codes >= 0
        scale = None if self.data.scale is None else self.data.scale[part.positions][follows]
        counts = np.bincount(codes[follows], scale, n_labels * n_labels)
        return counts.reshape(n_labels, n_labels)

    def _add_gradient(
        self,
        layout: WeightLayout,
        columns: AttributeColumns,
        residuals: NDArray[np.float64],
        sums: NDArray[np.float64],
    ) -> None:
        found = np.empty(layout.n_weights)
        layout.fill_gradient(columns, residuals, found, self.n_threads)
        sums += found
