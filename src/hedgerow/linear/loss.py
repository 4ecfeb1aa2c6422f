"""The loss of a linear CRF and its gradient: once around the ring.

Weights and attributes give the potentials, the objective their slopes, and the slopes, summed over
the positions of each attribute, the gradient with respect to the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.linear.attributes import attribute_blocks
from hedgerow.linear.scaling import UNSCALED, Scaling
from hedgerow.linear.weights import LinearLayout, LinearWeights, WeightLayout, batches
from hedgerow.objectives import (
    Choice,
    Objective,
    Targets,
    find_direction,
    likelihood,
    max_margin,
    measure_loss,
)
from hedgerow.sequences import SparseRows
from hedgerow.trellis import Potentials, forward_backward, tangent

Vector = NDArray[np.float64]


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
    """Loss of an objective plus ``reg_lambda / 2`` times the squared norm of the weights.

    Parameters
    ----------
    rows, targets
        The training set: attributes, which are copied, and labels.
    layout
        The weights to train.
    reg_lambda
        Strength of the L2 penalty.
    scaling
        Units of the weights that it is a function of.
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
        scaling: Scaling = UNSCALED,
        n_threads: int,
    ) -> None:
        self.targets = targets
        self.layout = layout
        self.reg_lambda = reg_lambda
        self.scaling = scaling
        self.n_threads = n_threads
        self.parts = [
            Part(targets.part(batch.sequences), attribute_blocks(scaling.scale_rows(batch.rows)))
            for batch in batches(
                rows, targets.offsets, targets.n_labels, edges=layout.pairs is not None
            )
        ]
        largest = max(part.n_positions for part in self.parts)
        self._nodes, self._slopes = np.empty((2, largest, targets.n_labels))

    def of(
        self, objective: Choice, *, penalised: bool = True
    ) -> Callable[[Vector], tuple[float, Vector]]:
        """The loss of an objective as a function of the weights: its value, and its gradient.

        Without the penalty if `penalised` is False.
        """
        strength = self.reg_lambda if penalised else 0.0

        def measure(vector: Vector) -> tuple[float, Vector]:
            weights = LinearWeights.from_vector(vector, self.layout)
            unscaled = self.scaling.unscale(vector)
            gradient = self.scaling.unscale(strength * unscaled)
            penalty = 0.5 * strength * float(np.einsum("i,i->", unscaled, unscaled))
            sums = _Sums(self.layout, gradient)
            if isinstance(objective, str):
                loss = self._add_labellings(objective, weights, sums)
            else:
                loss = self._add_marginals(objective, weights, sums)
            sums.finish()
            return penalty + loss, gradient

        return measure

    def _add_labellings(self, objective: str, weights: LinearWeights, sums: _Sums) -> float:
        """Add the gradient of an objective of whole labellings; returns the loss."""
        measure = max_margin if objective == "max_margin" else likelihood
        arcs, loss = self._arcs(weights), 0.0
        for part in self.parts:
            potentials = self._potentials(weights, arcs, part)
            out = self._slopes[: part.n_positions]
            slopes = measure(potentials, part.targets, n_threads=self.n_threads, out=out)
            sums.add(part, slopes.nodes, slopes.arcs, slopes.edges, self.n_threads)
            loss += slopes.loss
        return loss

    def _add_marginals(self, objective: Objective, weights: LinearWeights, sums: _Sums) -> float:
        """Add the gradient of an objective of all marginals; returns the loss.

        It may be any function of them, so all have to be known before any slope is.
        """
        arcs = self._arcs(weights)
        marginals = np.empty((len(self.targets.codes), self.targets.n_labels))
        ends = accumulate((part.n_positions for part in self.parts), initial=0)
        places = [slice(*ends) for ends in pairwise(ends)]
        for part, place in zip(self.parts, places, strict=True):
            potentials = self._potentials(weights, arcs, part)
            forward_backward(potentials, pairs=None, out=marginals[place], n_jobs=self.n_threads)
        loss = measure_loss(objective, marginals, self.targets)
        direction = find_direction(objective, marginals, self.targets)
        for part, place in zip(self.parts, places, strict=True):
            if len(self.parts) > 1:  # those of a lone part are still there
                potentials = self._potentials(weights, arcs, part)
            tangents = tangent(
                potentials,
                marginals[place],
                direction[place],
                pairs="sum" if self.layout.pairs is None else "each",
                out=self._slopes[: part.n_positions],
                n_jobs=self.n_threads,
            )
            nodes, arc_slopes, edges = tangents.marginals, tangents.arc_sums, tangents.pairs
            assert arc_slopes is not None
            for slopes in (nodes, arc_slopes, edges):
                if slopes is not None:
                    np.negative(slopes, out=slopes)  # the loss is minus the value
            sums.add(part, nodes, arc_slopes, edges, self.n_threads)
        return loss

    def _arcs(self, weights: LinearWeights) -> Vector:
        return self.layout.grammar.arcs(weights.patterns)

    def _potentials(self, weights: LinearWeights, arcs: Vector, part: Part) -> Potentials:
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


class _Sums:
    """The gradient with respect to the weights, summed over the parts."""

    def __init__(self, layout: LinearLayout, gradient: Vector) -> None:
        self._layout = layout
        self._sums = LinearWeights.from_vector(gradient, layout)
        self._arc_sums = np.zeros_like(layout.grammar.arcs(self._sums.patterns))

    def add(
        self,
        part: Part,
        nodes: Vector,
        arcs: Vector,
        edges: Vector | None,
        n_threads: int,
    ) -> None:
        """Add the slopes of a part's potentials."""
        self._sums.biases[:] += nodes.sum(axis=0)
        self._arc_sums += arcs
        part.add_gradient(self._layout.labels, nodes, self._sums.attributes, n_threads)
        if self._layout.pairs is not None:
            assert edges is not None
            by_pair = edges.reshape(part.n_positions, -1)
            part.add_gradient(self._layout.pairs, by_pair, self._sums.edges, n_threads)

    def finish(self) -> None:
        """Share out the sums over arcs to the label patterns."""
        self._sums.patterns[:] += self._layout.grammar.pattern_sums(self._arc_sums)
