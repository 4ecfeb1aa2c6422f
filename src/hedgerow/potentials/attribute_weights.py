"""AttributeWeights: linear weights of attributes, for labels and for label pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.linear.attributes import attribute_rows
from hedgerow.linear.contributions import weight_contributions
from hedgerow.linear.weights import BATCH_BYTES, LinearWeights
from hedgerow.potentials.potential import AddScores, Potential
from hedgerow.sequences import Sequences, check_finite
from hedgerow.tables import Table

__all__ = ["AttributeWeights"]


@dataclass(frozen=True, eq=False)
class AttributeWeights(Potential):
    """Sums of weights times values.

    Attributes
    ----------
    weights : LinearWeights
        Those of attributes and labels; those of label patterns are another potential's.
    index : StringIndex
        Names of the attributes.
    """

    weights: LinearWeights
    index: _core.StringIndex

    @property
    def has_edges(self) -> bool:
        """Whether label pairs have attributes."""
        return self.weights.layout.pairs is not None

    def check_values(self, sequences: Sequences, name: str) -> None:
        """Numbers must be finite."""
        check_finite(sequences, name)

    def batch_positions(self, n_labels: int) -> int:
        """As many as have scores that stay in the cache."""
        return max(1, BATCH_BYTES // (8 * n_labels * (n_labels if self.has_edges else 1)))

    def prepare(self, sequences: Sequences, n_threads: int) -> AddScores:
        """Find the attributes of all positions."""
        rows, offsets = attribute_rows(sequences, self.index), sequences.offsets

        def add(
            first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
        ) -> None:
            part = rows.part(int(offsets[first]), int(offsets[stop]))
            self.weights.add_nodes(part, nodes, n_threads)
            if edges is not None:
                self.weights.add_edges(part, edges, n_threads)

        return add

    def contributions(
        self, sequences: Sequences, position: int, signs: NDArray[np.int64]
    ) -> tuple[float, Table]:
        """Weights times values."""
        rows = attribute_rows(sequences, self.index)
        return weight_contributions(self.weights, self.index, rows, position, signs)
