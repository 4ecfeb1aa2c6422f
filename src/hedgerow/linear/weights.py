"""Weights: which weights exist, their order in one vector, and the scores they give."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import Comm
from hedgerow.labels import Patterns
from hedgerow.lazy import LazyAttributes, lazy
from hedgerow.sequences import SparseRows, cut_runs

# Maximum number of bytes for the scores of one batch of sequences: small enough for the cache.
BATCH_BYTES = 1 << 22
MANY_THREADS = 8


@dataclass(frozen=True, eq=False)
class WeightLayout:
    """The pairs (attribute, output) that have a weight.

    Attributes
    ----------
    offsets : (A + 1,) int64
        Attribute a has the weights ``offsets[a]`` to ``offsets[a + 1]``.
    listed_outputs : (W,) or (0,) int32
        Output of each weight, ascending within an attribute: a label, a pair of labels (j, k) as
        j * K + k, or the number of a label pattern. Empty if all attributes have all outputs.
    n_outputs : int
        Number of outputs.
    """

    offsets: NDArray[np.int64]
    listed_outputs: NDArray[np.int32]
    n_outputs: int

    @classmethod
    def seen(cls, rows: SparseRows, outputs: NDArray[np.int32], n_outputs: int) -> WeightLayout:
        """Only pairs that occur. ``outputs`` (N,) are those of each position, -1 for none."""
        arrays = _core.build_seen_pairs(
            rows.indptr, rows.indices, rows.n_columns, outputs, n_outputs
        )
        return cls(*arrays, n_outputs)

    @classmethod
    def seen_with_any(
        cls, rows: SparseRows, outputs: Iterable[NDArray[np.int32]], n_outputs: int
    ) -> WeightLayout:
        """Like `seen`, if positions may have several outputs: ``outputs`` are arrays (N,)."""
        parts = [cls.seen(rows, some, n_outputs) for some in outputs]
        if len(parts) == 1:
            return parts[0]
        keys = [part.attribute_of_weight() * n_outputs + part.outputs for part in parts]
        return cls._of_keys(keys, rows.n_columns, n_outputs)

    @classmethod
    def _of_keys(
        cls, keys: Sequence[NDArray[np.int64]], n_attributes: int, n_outputs: int
    ) -> WeightLayout:
        """The layout of pairs, given as distinct numbers attribute * n_outputs + output."""
        found = np.unique(np.concatenate([np.empty(0, np.int64), *keys]))
        attributes, listed = np.divmod(found, max(1, n_outputs))
        offsets = np.searchsorted(attributes, np.arange(n_attributes + 1)).astype(np.int64)
        return cls(offsets, listed.astype(np.int32), n_outputs)

    def union(self, comm: Comm) -> WeightLayout:
        """The pairs that any worker has."""
        if comm.size == 1:
            return self
        keys = comm.gather(self.attribute_of_weight() * self.n_outputs + self.outputs)
        return self._of_keys(keys, len(self.offsets) - 1, self.n_outputs)

    @classmethod
    def full(cls, n_attributes: int, n_outputs: int) -> WeightLayout:
        """All pairs."""
        offsets = np.arange(n_attributes + 1, dtype=np.int64) * n_outputs
        return cls(offsets, np.empty(0, np.int32), n_outputs)

    def of_attributes(self, keep: NDArray[np.bool_]) -> WeightLayout:
        """Only the weights of the attributes to keep, (A,)."""
        counts = np.where(keep, np.diff(self.offsets), 0)
        offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        kept = keep[self.attribute_of_weight()]
        return WeightLayout(offsets, self.outputs[kept], self.n_outputs)

    @property
    def n_weights(self) -> int:
        """Number of weights, W."""
        return int(self.offsets[-1])

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
        """The arguments by which the compiled module knows a layout."""
        return self.offsets, self.listed_outputs, self.n_outputs

    @property
    def outputs(self) -> NDArray[np.int32]:
        """Output of each weight, (W,)."""
        if len(self.listed_outputs) == self.n_weights:
            return self.listed_outputs
        return np.tile(np.arange(self.n_outputs, dtype=np.int32), len(self.offsets) - 1)

    def attribute_of_weight(self) -> NDArray[np.int64]:
        """Attribute of each weight, (W,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class LinearLayout:
    """Which weights attributes and labels have.

    Attributes
    ----------
    labels : WeightLayout
        Pairs (attribute, label).
    pairs : WeightLayout or None
        Pairs (attribute, label pair), if transitions have attributes.
    patterns : WeightLayout or None
        Pairs (attribute, label pattern), if label patterns have attributes; then `pairs` is None.
    """

    labels: WeightLayout
    pairs: WeightLayout | None
    patterns: WeightLayout | None = None

    @property
    def edges(self) -> WeightLayout | None:
        """The weights of edges: those for label pairs, or for label patterns."""
        return self.pairs if self.patterns is None else self.patterns

    def edge_patterns(self, patterns: Patterns) -> Patterns:
        """The patterns that the outputs of `edges` refer to, given those of the model."""
        return Patterns.pairs(self.n_labels) if self.patterns is None else patterns

    @property
    def n_labels(self) -> int:
        """Number of labels, K."""
        return self.labels.n_outputs

    @property
    def sizes(self) -> list[int]:
        """Number of weights of each kind: attributes, edges, biases."""
        n_edges = 0 if self.edges is None else self.edges.n_weights
        return [self.labels.n_weights, n_edges, self.n_labels]

    @property
    def n_weights(self) -> int:
        """Number of all weights together."""
        return sum(self.sizes)


@dataclass(frozen=True, eq=False)
class LinearWeights(LazyAttributes):
    """Weights of attributes and K labels; the arrays may be views of one vector.

    They must not change once scores have been computed.

    Attributes
    ----------
    layout : LinearLayout
        Which weights there are.
    attributes : (W,), edges : (E,)
        Weights of pairs (attribute, label), and (attribute, label pair or pattern).
    biases : (K,)
        Weights of the labels themselves.
    """

    layout: LinearLayout
    attributes: NDArray[np.float64]
    edges: NDArray[np.float64]
    biases: NDArray[np.float64]

    @classmethod
    def from_vector(cls, vector: NDArray[np.float64], layout: LinearLayout) -> LinearWeights:
        """Split one vector into views, in the order attributes, edges, biases."""
        assert len(vector) == layout.n_weights
        n_attributes, n_edges, _ = layout.sizes
        attributes, others = vector[:n_attributes], vector[n_attributes:]
        return cls(layout, attributes, others[:n_edges], others[n_edges:])

    @lazy
    def _node_scorer(self) -> _core.Scorer:
        return _core.Scorer(*self.layout.labels.arrays, self.attributes, self.biases)

    @lazy
    def _edge_scorer(self) -> _core.Scorer | None:
        layout = self.layout.edges
        if layout is None:
            return None
        return _core.Scorer(*layout.arrays, self.edges, None)

    def adder(
        self, rows: SparseRows, offsets: NDArray[np.int64], n_threads: int
    ) -> Callable[[int, int, NDArray[np.float64], NDArray[np.float64] | None], None]:
        """A function that adds the scores of sequences with these attributes.

        Edges are those of label pairs, (N, K, K), or of label patterns, (N, P).
        """

        def add(
            first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
        ) -> None:
            part = rows.part(int(offsets[first]), int(offsets[stop]))
            attributes = part.indptr, part.indices, part.values
            self._node_scorer.add_scores(*attributes, nodes, n_threads)
            if edges is not None and self._edge_scorer is not None:
                outputs = edges.reshape(len(edges), math.prod(edges.shape[1:]))
                self._edge_scorer.add_scores(*attributes, outputs, n_threads)

        return add


def batch_size(n_scores: int) -> int:
    """Number of positions, each with this many scores, that fit into `BATCH_BYTES`."""
    return max(1, BATCH_BYTES // (8 * n_scores))


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive sequences: their numbers, bounds and attributes."""

    sequences: slice
    offsets: NDArray[np.int64]
    rows: SparseRows


def batches(
    rows: SparseRows, offsets: NDArray[np.int64], n_scores: int, n_threads: int
) -> Iterator[Batch]:
    """Runs of whole sequences whose scores fit into `BATCH_BYTES`, or single long sequences.

    With many threads, runs may take twice as much, so that each thread has enough to do.
    ``n_scores`` is the number of scores at each position.
    """
    size = batch_size(n_scores) * (2 if n_threads >= MANY_THREADS else 1)
    for first, last in cut_runs(offsets, size):
        start, stop = int(offsets[first]), int(offsets[last])
        yield Batch(
            slice(first, last),
            offsets[first : last + 1] - start,
            rows.part(start, stop),
        )
