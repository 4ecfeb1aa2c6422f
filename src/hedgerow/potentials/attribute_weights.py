"""AttributeWeights: linear weights of attributes, for labels, label pairs and label patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow import _core
from hedgerow.labels import Grammar
from hedgerow.lazy import LazyAttributes, lazy
from hedgerow.linear.ancestor_attributes import MAX_ANCESTORS, AncestorAttributes
from hedgerow.linear.attributes import attribute_rows
from hedgerow.linear.contributions import weight_contributions
from hedgerow.linear.export import export_weights
from hedgerow.linear.state import pack_weights, unpack_weights
from hedgerow.linear.weights import LinearWeights, batch_size
from hedgerow.potentials.potential import AddScores, ContributionRequest, Potential
from hedgerow.potentials.scoring import edge_shape
from hedgerow.sequences import Schema, Sequences, check_finite
from hedgerow.state import State, read_count, require
from hedgerow.tables import Table
from hedgerow.trellis import Trellis

__all__ = ["AttributeWeights"]


@dataclass(frozen=True, eq=False)
class AttributeWeights(Potential, LazyAttributes):
    """Sums of weights times values.

    Attributes
    ----------
    weights : LinearWeights
        Weights of attributes, and the biases of labels.
    index : StringIndex
        Names of the attributes.
    n_ancestors : int
        Number of ancestors from which positions also get attributes.
    """

    weights: LinearWeights
    index: _core.StringIndex
    n_ancestors: int = 0

    @property
    def has_edges(self) -> bool:
        """Whether label pairs or label patterns have attributes."""
        return self.weights.layout.edges is not None

    @property
    def scores_patterns(self) -> bool:
        """Whether label patterns have attributes."""
        return self.weights.layout.patterns is not None

    @lazy
    def ancestors(self) -> AncestorAttributes | None:
        """Attributes that positions get from their ancestors."""
        return AncestorAttributes.of(self.index, self.n_ancestors) if self.n_ancestors else None

    @staticmethod
    def check_values(sequences: Sequences, name: str, *, n_threads: int) -> None:
        """Raise ValueError unless all numbers are finite."""
        check_finite(sequences, name, n_threads=n_threads)

    def batch_positions(self, trellis: Trellis) -> int:
        """Number of positions whose scores fit into the cache."""
        shape = edge_shape([self], trellis)
        return batch_size(trellis.n_labels if shape is None else int(np.prod(shape)))

    def prepare(self, sequences: Sequences, n_threads: int) -> AddScores:
        """Find the attributes of all positions."""
        rows = attribute_rows(sequences, self.index, ancestors=self.ancestors)
        return self.weights.adder(rows, sequences.offsets, n_threads)

    def contributions(
        self, sequences: Sequences, asked: ContributionRequest
    ) -> list[tuple[float, Table]]:
        """Contributions of attributes: weights times values."""
        rows = attribute_rows(sequences, self.index, ancestors=self.ancestors)
        names = self.index.names()
        return [
            weight_contributions(self.weights, names, rows.part(position, position + 1), signs)
            for position, signs in zip(asked.positions.tolist(), asked.signs, strict=True)
        ]

    def pack(self) -> State:
        """The weights, and what each belongs to."""
        metadata = {"ancestors": self.n_ancestors} if self.n_ancestors else {}
        return State(pack_weights(self.weights), metadata)

    def to_json(self) -> dict[str, Any]:
        """Weights by attribute, and the bias weights."""
        return export_weights(self.weights, self.index)

    @classmethod
    def unpack(
        cls, state: State, *, schema: Schema, index: _core.StringIndex, grammar: Grammar
    ) -> AttributeWeights:
        """Read the output of `pack`."""
        n_patterns, n_ancestors = len(grammar.patterns), 0
        if "ancestors" in state.metadata:
            n_ancestors = read_count(state.metadata, "ancestors")
            require(
                n_ancestors <= MAX_ANCESTORS and schema.has_parents,
                "its number of ancestors is not valid",
            )
        weights = unpack_weights(state, len(index), grammar.n_labels, n_patterns)
        return cls(weights, index, n_ancestors)
