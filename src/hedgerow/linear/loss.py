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
from hedgerow.linear.weights import LinearLayout, LinearWeights, WeightLayout, batches
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
    layout
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
        layout: LinearLayout,
        *,
        reg_lambda: float,
        n_threads: int,
    ) -> None:
        self.layout = layout
        self.reg_lambda = reg_lambda
        self.n_threads = n_threads
        self.parts = [
            Part(targets.part(batch.sequences), attribute_blocks(batch.rows))
            for batch in batches(
                rows, targets.offsets, targets.n_labels, edges=layout.pairs is not None
            )
        ]
        largest = max(part.n_positions for part in self.parts)
        self._nodes, self._slopes = np.empty((2, largest, targets.n_labels))

    def __call__(self, vector: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Loss at the weights `vector`, and its gradient."""
        weights = LinearWeights.from_vector(vector, self.layout)
        gradient = self.reg_lambda * vector
        sums = LinearWeights.from_vector(gradient, self.layout)
        loss = 0.5 * self.reg_lambda * float(np.einsum("i,i->", vector, vector))
        arcs = self.layout.grammar.arcs(weights.patterns)
        arc_sums = np.zeros_like(arcs)
        for part in self.parts:
            loss += self._add_part(weights, arcs, part, sums, arc_sums)
        sums.patterns[:] += self.layout.grammar.pattern_sums(arc_sums)
        return loss, gradient

    def _add_part(
        self,
        weights: LinearWeights,
        arcs: NDArray[np.float64],
        part: Part,
        sums: LinearWeights,
        arc_sums: NDArray[np.float64],
    ) -> float:
        """Add a part's gradient to `sums` and `arc_sums`; returns its loss."""
        potentials = self._potentials(weights, arcs, part)
        out = self._slopes[: part.n_positions]
        slopes = likelihood(potentials, part.targets, n_threads=self.n_threads, out=out)
        sums.biases[:] += slopes.nodes.sum(axis=0)
        arc_sums += slopes.arcs
        part.add_gradient(self.layout.labels, slopes.nodes, sums.attributes, self.n_threads)
        if self.layout.pairs is not None:
            assert slopes.edges is not None
            by_pair = slopes.edges.reshape(part.n_positions, -1)
            part.add_gradient(self.layout.pairs, by_pair, sums.edges, self.n_threads)
        return slopes.loss

    def _potentials(
        self, weights: LinearWeights, arcs: NDArray[np.float64], part: Part
    ) -> Potentials:
        grammar = self.layout.grammar
        nodes = part.fill_scores(
            self.layout.labels,
            weights.attributes,
            weights.biases,
            self._nodes[: part.n_positions],
            self.n_threads,
        )
        grammar.restrict(nodes, part.targets.offsets)
        edges = None
        if self.layout.pairs is not None:
            n_labels = self.layout.n_labels
            out = np.empty((part.n_positions, n_labels * n_labels))
            part.fill_scores(self.layout.pairs, weights.edges, None, out, self.n_threads)
            edges = out.reshape(-1, n_labels, n_labels)
        return Potentials(nodes, arcs, part.targets.offsets, edges, grammar.automaton)
