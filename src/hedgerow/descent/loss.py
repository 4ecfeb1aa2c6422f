"""The loss of a linear CRF and its gradient.

Scores are computed from weights and attributes, their slopes from the objective, and the gradient
with respect to the weights by summing the slopes over the positions of each attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import Comm
from hedgerow.descent.scaling import UNSCALED, Scaling
from hedgerow.exact_sums import ExactTotal, SumGrid
from hedgerow.linear.weights import LinearLayout, LinearWeights, WeightLayout, batches
from hedgerow.objectives import Slopes, Targets, TrainingObjective
from hedgerow.sequences import SparseRows
from hedgerow.trellis import OutputEdges, PairEdges, PatternEdges, Scores, Trellis

Vector = NDArray[np.float64]

# Maximum number of bytes for the dense rows of the first attributes in training: small enough for
# the cache. Two bytes are enough to number these attributes.
LEADING_BYTES = 1 << 20
MAX_LEADING = 1 << 16
# Exponent of the largest power of two that bounds the values of an attribute, see `_find_powers`.
LARGEST_POWER = 500
# Positions are divided into parts, which threads sum up separately, if each part has at least this
# many occurrences of attributes for each of its dense rows.
ATTRIBUTES_PER_ROW = 8

Leading = TypeVar("Leading", _core.LeadingWeights, _core.LeadingSums)


@dataclass(frozen=True, eq=False)
class Part:
    """Some consecutive sequences of a training set, with their attributes."""

    targets: Targets
    labels: _core.AttributeBlocks
    edges: _core.AttributeBlocks | None
    given: Scores | None

    @property
    def n_positions(self) -> int:
        """Number of positions."""
        return len(self.targets.codes)


class LinearLoss:
    """Loss of an objective plus ``reg_lambda / 2`` times the square of each weight, summed up.

    Parameters
    ----------
    rows, targets
        The training set: attributes, which are copied, and labels.
    layout
        The weights to train.
    reg_lambda
        Strength of the L2 penalty, of all weights or of each, (W,).
    scaling
        Units of the weights in training.
    given
        Scores that do not depend on the weights, if any; their edges, if any, have the same shape
        as those of the weights.
    n_threads
        Number of threads; the result does not depend on it.
    """

    def __init__(
        self,
        rows: SparseRows,
        targets: Targets,
        layout: LinearLayout,
        *,
        reg_lambda: float | Vector,
        scaling: Scaling = UNSCALED,
        given: Scores | None = None,
        n_threads: int,
    ) -> None:
        if not all(targets.comm.gather(rows.values is None)) and rows.values is None:
            rows = replace(rows, values=np.ones(len(rows.indices)))  # other workers have values
        self.targets = targets
        self.layout = layout
        self.n_weights = layout.n_weights + targets.trellis.n_patterns
        self.reg_lambda = reg_lambda
        self.scaling = scaling
        self.n_threads = n_threads
        self.edges_of = output_edges(layout, targets.trellis)
        self.edge_shape = None if layout.edges is None else self.edges_of.shape
        self.bare_arcs = targets.trellis.bare_arcs()
        if given is not None:
            self.bare_arcs = given.arcs
            if given.edges is not None:
                self.edge_shape = given.edges.shape[1:]
        n_scores = targets.n_labels if self.edge_shape is None else int(np.prod(self.edge_shape))
        n_outputs = max(part.n_outputs for part in (layout.labels, layout.edges) if part)
        self.n_leading = min(MAX_LEADING, LEADING_BYTES // (8 * n_outputs))
        self.parts = [
            Part(
                targets.part(batch.sequences),
                *self._lay_out(scaling.scale_rows(batch.rows)),
                None if given is None else given.part(batch.sequences),
            )
            for batch in batches(rows, targets.offsets, n_scores, n_threads)
        ]
        self.value_powers = _find_powers(scaling.scale_rows(rows), targets.comm)
        self.max_parts = 1
        if self.value_powers is None or (self.value_powers < 2.0**LARGEST_POWER).all():
            n_rows = min(self.n_leading, rows.n_columns)
            self.max_parts += len(rows.indices) // (ATTRIBUTES_PER_ROW * max(1, n_rows))
        largest = max(part.n_positions for part in self.parts)
        self.nodes, self.slopes = np.empty((2, largest, targets.n_labels))

    def _lay_out(
        self, rows: SparseRows
    ) -> tuple[_core.AttributeBlocks, _core.AttributeBlocks | None]:
        """Attributes, arranged for the weights of labels and for those of edges."""

        def arrange(layout: WeightLayout) -> _core.AttributeBlocks:
            arrays = rows.indptr, rows.indices, rows.values
            return _core.AttributeBlocks(*arrays, *layout.arrays, self.n_leading)

        labels, edges = self.layout.labels, self.layout.edges
        return arrange(labels), None if edges is None else arrange(edges)

    def split(self, vector: Vector) -> tuple[LinearWeights, Vector]:
        """Split a vector into views: weights of attributes and labels, and of label patterns."""
        n_own = self.layout.n_weights
        return LinearWeights.from_vector(vector[:n_own], self.layout), vector[n_own:]

    def of(
        self, objective: TrainingObjective, *, penalised: bool = True
    ) -> Callable[[Vector], tuple[float, Vector]]:
        """The loss of an objective, as a function that returns its value and its gradient.

        The penalty is included unless `penalised` is False.
        """
        strength = self.reg_lambda if penalised else 0.0

        def measure(vector: Vector) -> tuple[float, Vector]:
            weights, patterns = self.split(vector)
            unscaled = self.scaling.unscale(vector)
            pull = _multiply(strength, unscaled, self.n_threads)
            penalty = 0.5 * float(np.einsum("i,i->", pull, unscaled))
            gradient = np.zeros_like(vector)
            total, sums = ExactTotal(0.0, 0.0), _Sums(self, gradient)
            arcs, rows = self._arcs(patterns), self._weight_rows(weights)
            parts = [_PartScores(self, part, rows, arcs) for part in self.parts]
            measured = objective.measure_parts(parts, self.targets, n_threads=self.n_threads)
            for scored, found in measured:
                sums.add(scored.part, found.slopes(scored.empty_slopes()))
                total = total.plus(found.total)
            sums.finish()
            gradient += self.scaling.unscale(pull)
            total = total.share(self.targets.bound, self.targets.comm)
            return penalty + total.value, gradient

        return measure

    def _arcs(self, patterns: Vector) -> Vector:
        return self.bare_arcs + self.targets.trellis.arc_scores(patterns, forbidden=0.0)

    def _weight_rows(self, weights: LinearWeights) -> _WeightRows:
        labels = self.leading(_core.LeadingWeights, self.layout.labels, weights.attributes)
        if self.layout.edges is None:
            return _WeightRows(labels, None, weights.biases)
        edges = self.leading(_core.LeadingWeights, self.layout.edges, weights.edges)
        return _WeightRows(labels, edges, weights.biases)

    def leading(
        self, kind: Callable[..., Leading], layout: WeightLayout, vector: Vector, *options: int
    ) -> Leading:
        """Weights or sums, with dense rows for the first attributes."""
        return kind(*layout.arrays, vector, self.n_leading, self.n_threads, *options)

    def score(self, part: Part, weights: _WeightRows, arcs: Vector) -> Scores:
        """Scores of a part; those of the nodes overwrite those of the last part."""
        nodes = self.nodes[: part.n_positions]
        part.labels.fill_scores(weights.labels, weights.biases, nodes, self.n_threads)
        trellis, targets = self.targets.trellis, part.targets
        trellis.restrict(nodes, targets.offsets, targets.parents)
        edges = self._score_edges(part, weights)
        if part.given is not None:
            nodes += part.given.nodes
            if part.given.edges is not None:
                assert edges is not None
                edges += part.given.edges
        return Scores(
            nodes, arcs, targets.offsets, trellis, edges, targets.parents, self.targets.bound
        )

    def _score_edges(self, part: Part, weights: _WeightRows) -> NDArray[np.float64] | None:
        layout = self.layout.edges
        if layout is None:
            shape = self.edge_shape
            return None if shape is None else np.zeros((part.n_positions, *shape))
        assert weights.edges is not None
        assert part.edges is not None
        sums = np.empty((part.n_positions, layout.n_outputs))
        part.edges.fill_scores(weights.edges, None, sums, self.n_threads)
        return self.edges_of.spread(sums, self.n_threads)


def output_edges(layout: LinearLayout, trellis: Trellis) -> OutputEdges:
    """How the outputs of a layout become edges."""
    if layout.patterns is None:
        return PairEdges(layout.n_labels)
    return PatternEdges(trellis)


def _multiply(strength: float | Vector, weights: Vector, n_threads: int) -> Vector:
    if isinstance(strength, np.ndarray):
        return strength * weights
    out = np.empty_like(weights)
    _core.fill_multiple(strength, weights, None, out, n_threads)
    return out


def _find_powers(rows: SparseRows, comm: Comm) -> Vector | None:
    """For each attribute, a power of two that bounds the values of all workers, (A,); None: 1.

    Products with values above 2^`LARGEST_POWER`, whose bounds might overflow, are summed without
    rounding them first.
    """
    if rows.values is None:
        return None
    largest = np.zeros(rows.n_columns)
    np.maximum.at(largest, rows.indices, np.abs(rows.values))
    shares, exponents = np.frexp(comm.max(largest))
    exponents -= shares == 0.5  # already a power of two
    powers: Vector = np.exp2(exponents.clip(max=LARGEST_POWER))
    return powers


@dataclass(frozen=True, eq=False)
class _WeightRows:
    """Weights, laid out for scoring many positions."""

    labels: _core.LeadingWeights
    edges: _core.LeadingWeights | None
    biases: Vector


@dataclass(frozen=True, eq=False)
class _PartScores:
    """A part, and the weights that score it."""

    loss: LinearLoss
    part: Part
    weights: _WeightRows
    arcs: Vector

    @property
    def targets(self) -> Targets:
        return self.part.targets

    def scores(self) -> Scores:
        return self.loss.score(self.part, self.weights, self.arcs)

    def empty_slopes(self) -> Vector:
        return self.loss.slopes[: self.part.n_positions]


class _Sums:
    """The gradient with respect to the weights, summed over the parts."""

    def __init__(self, loss: LinearLoss, gradient: Vector) -> None:
        self._edges_of, self._trellis = loss.edges_of, loss.targets.trellis
        self._n_threads, self._powers = loss.n_threads, loss.value_powers
        self._comm, self._bound = loss.targets.comm, 0.0
        self._sums, self._pattern_sums = loss.split(gradient)
        self._arc_sums = np.zeros(self._trellis.arc_shape)
        self._layout = loss.layout
        labels, edges = loss.layout.labels, loss.layout.edges
        self._labels = loss.leading(
            _core.LeadingSums, labels, self._sums.attributes, loss.max_parts
        )
        self._edges = None
        if edges is not None:
            self._edges = loss.leading(_core.LeadingSums, edges, self._sums.edges, loss.max_parts)

    def add(self, part: Part, slopes: Slopes) -> None:
        """Add the slopes of a part's scores."""
        sums, n_threads = self._sums, self._n_threads
        self._arc_sums += slopes.arcs
        self._bound = slopes.bound
        exact = (slopes.bound, self._powers)
        part.labels.add_gradient(
            slopes.nodes, self._labels, sums.attributes, sums.biases, n_threads, *exact
        )
        if self._edges is not None:
            assert slopes.edges is not None
            assert part.edges is not None
            by_output = self._edges_of.collect(slopes.edges, n_threads)
            part.edges.add_gradient(by_output, self._edges, sums.edges, None, n_threads, *exact)

    def finish(self) -> None:
        """Write the sums of all workers to the gradient; sums over arcs become sums of patterns."""
        self._labels.write(self._sums.attributes, self._n_threads)
        if self._edges is not None:
            self._edges.write(self._sums.edges, self._n_threads)
        grid = SumGrid(self._bound)
        arc_sums = grid.share(self._arc_sums, self._comm)
        self._pattern_sums += self._trellis.pattern_sums(arc_sums)
        if self._comm.size > 1:
            sums, layout = self._sums, self._layout
            self._share(sums.attributes, layout.labels)
            if layout.edges is not None:
                self._share(sums.edges, layout.edges)
            sums.biases[...] = grid.share(sums.biases, self._comm)

    def _share(self, sums: Vector, layout: WeightLayout) -> None:
        """Add up the sums of the workers, those of each attribute on a grid for its values."""
        of_weights = layout.attribute_of_weight()
        powers = 1.0 if self._powers is None else self._powers[of_weights]
        sums[...] = SumGrid(self._bound).share(sums / powers, self._comm) * powers
