"""Weights: which there are, how they lie in one vector, and the scores they give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.linear.attributes import AttributeColumns, slice_rows
from hedgerow.sequences import SparseRows
from hedgerow.trellis import Potentials

# Bytes that the edge scores of one batch of sequences may take.
EDGE_BYTES = 1 << 26


@dataclass(frozen=True, eq=False)
class WeightLayout:
    """The pairs (attribute, output) that have a weight.

    Attributes
    ----------
    offsets : (A + 1,) int64
        Attribute a has the weights ``offsets[a]`` to ``offsets[a + 1]``.
    outputs : (W,) int32
        Output of each weight, ascending within an attribute: a label, or a pair of labels
        (j, k) as j * K + k.
    n_outputs : int
        Number of outputs.
    """

    offsets: NDArray[np.int64]
    outputs: NDArray[np.int32]
    n_outputs: int

    @classmethod
    def seen(
        cls, columns: AttributeColumns, outputs: NDArray[np.int32], n_outputs: int
    ) -> WeightLayout:
        """Only pairs that occur. ``outputs`` (N,) of each position, -1 where it has none."""
        arrays = _core.build_seen_pairs(columns.offsets, columns.positions, outputs, n_outputs)
        return cls(*arrays, n_outputs)

    @classmethod
    def full(cls, n_attributes: int, n_outputs: int) -> WeightLayout:
        """All pairs."""
        offsets = np.arange(n_attributes + 1, dtype=np.int64) * n_outputs
        outputs = np.tile(np.arange(n_outputs, dtype=np.int32), n_attributes)
        return cls(offsets, outputs, n_outputs)

    @property
    def n_weights(self) -> int:
        """Number of weights, W."""
        return len(self.outputs)

    def attribute_of_weight(self) -> NDArray[np.int64]:
        """Attribute of each weight, (W,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def fill_scores(
        self,
        rows: SparseRows,
        weights: NDArray[np.float64],
        biases: NDArray[np.float64] | None,
        out: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        """Scores of all outputs, ``out`` (N, n_outputs): biases plus weights times values."""
        _core.fill_scores(
            rows.indptr,
            rows.indices,
            rows.values,
            self.offsets,
            self.outputs,
            weights,
            biases,
            out,
            n_threads,
        )

    def fill_gradient(
        self,
        columns: AttributeColumns,
        residuals: NDArray[np.float64],
        out: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        """Gradient with respect to the weights from that with respect to the scores."""
        _core.fill_gradient(
            columns.offsets,
            columns.positions,
            columns.values,
            self.offsets,
            self.outputs,
            residuals,
            out,
            n_threads,
        )


@dataclass(frozen=True, eq=False)
class LinearWeights:
    """All weights of a linear CRF over K labels; the arrays may be views of one vector.

    Attributes
    ----------
    layout, edge_layout
        Pairs (attribute, label), and (attribute, label pair) if transitions have attributes.
    attributes : (W,), edges : (E,)
        Weights of those pairs.
    biases : (K,), arcs : (K, K)
        Weights of the labels and label pairs themselves.
    """

    layout: WeightLayout
    edge_layout: WeightLayout | None
    attributes: NDArray[np.float64]
    edges: NDArray[np.float64]
    biases: NDArray[np.float64]
    arcs: NDArray[np.float64]

    @classmethod
    def from_vector(
        cls, vector: NDArray[np.float64], layout: WeightLayout, edge_layout: WeightLayout | None
    ) -> LinearWeights:
        """Cut one vector into views, in the order attributes, edges, biases, arcs."""
        n_labels = layout.n_outputs
        n_edges = 0 if edge_layout is None else edge_layout.n_weights
        sizes = [layout.n_weights, n_edges, n_labels, n_labels * n_labels]
        assert len(vector) == sum(sizes)
        attributes, edges, biases, arcs = np.split(vector, np.cumsum(sizes)[:-1])
        return cls(layout, edge_layout, attributes, edges, biases, arcs.reshape(n_labels, n_labels))

    @classmethod
    def zeros(cls, layout: WeightLayout, edge_layout: WeightLayout | None) -> LinearWeights:
        """All weights zero."""
        n_labels = layout.n_outputs
        n_edges = 0 if edge_layout is None else edge_layout.n_weights
        size = layout.n_weights + n_edges + n_labels + n_labels * n_labels
        return cls.from_vector(np.zeros(size), layout, edge_layout)

    @property
    def n_weights(self) -> int:
        """Number of all weights together."""
        return len(self.attributes) + len(self.edges) + len(self.biases) + self.arcs.size

    def to_vector(self) -> NDArray[np.float64]:
        """All weights as one vector, a copy."""
        return np.concatenate([self.attributes, self.edges, self.biases, self.arcs.ravel()])

    def nodes(
        self, rows: SparseRows, n_threads: int, out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Node scores of each position, (N, K)."""
        if out is None:
            out = np.empty((len(rows.indptr) - 1, self.layout.n_outputs))
        self.layout.fill_scores(rows, self.attributes, self.biases, out, n_threads)
        return out

    def edge_scores(self, rows: SparseRows, n_threads: int) -> NDArray[np.float64] | None:
        """Edge scores of each position, (N, K, K), or None."""
        if self.edge_layout is None:
            return None
        n_positions, n_labels = len(rows.indptr) - 1, self.layout.n_outputs
        out = np.empty((n_positions, n_labels * n_labels))
        self.edge_layout.fill_scores(rows, self.edges, None, out, n_threads)
        return out.reshape(n_positions, n_labels, n_labels)

    def potentials(
        self, rows: SparseRows, offsets: NDArray[np.int64], n_threads: int
    ) -> Iterator[Potentials]:
        """Scores of all sequences, in as many batches as memory asks for."""
        for batch in batches(rows, offsets, self.edge_layout):
            yield Potentials(
                batch.offsets,
                self.nodes(batch.rows, n_threads),
                self.arcs,
                self.edge_scores(batch.rows, n_threads),
            )


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive sequences: where they stand among all, and their attributes."""

    sequences: slice
    positions: slice
    offsets: NDArray[np.int64]
    rows: SparseRows


def batches(
    rows: SparseRows, offsets: NDArray[np.int64], edge_layout: WeightLayout | None
) -> Iterator[Batch]:
    """All sequences at once, or, if edges have scores of their own, as many as memory allows."""
    n_sequences = len(offsets) - 1
    if edge_layout is None:
        yield Batch(slice(0, n_sequences), slice(0, int(offsets[-1])), offsets, rows)
        return
    most = max(1, EDGE_BYTES // (8 * edge_layout.n_outputs))
    first = 0
    while first < n_sequences:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = min(max(last, first + 1), n_sequences)
        start, stop = int(offsets[first]), int(offsets[last])
        yield Batch(
            slice(first, last),
            slice(start, stop),
            offsets[first : last + 1] - start,
            slice_rows(rows, start, stop),
        )
        first = last
