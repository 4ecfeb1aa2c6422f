"""NodeTrees: trees on the input, each of which adds to the score of a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Grammar
from hedgerow.potentials.potential import AddScores, ContributionRequest, Potential
from hedgerow.sequences import Schema, Sequences, check_not_infinite
from hedgerow.state import State
from hedgerow.tables import Table
from hedgerow.trees.columns import Columns
from hedgerow.trees.columns_state import pack_columns, unpack_columns
from hedgerow.trees.contributions import path_contributions
from hedgerow.trees.export import export_trees
from hedgerow.trees.forest import Forest, asked_columns
from hedgerow.trees.forest_state import pack_forest, unpack_forest
from hedgerow.trellis import Trellis

__all__ = ["NodeTrees"]

# Positions are scored this many at a time, or as many as take about this many bytes, if that is
# more.
BATCH = 1 << 16
BATCH_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class NodeTrees(Potential):
    """Sums of trees.

    Attributes
    ----------
    columns : Columns
        The columns of X, and how their values are binned.
    forest : Forest
        The trees, which split on these columns.
    """

    columns: Columns
    forest: Forest

    @staticmethod
    def check_values(sequences: Sequences, name: str, *, n_threads: int) -> None:
        """Raise ValueError for infinite numbers; NaN is a missing value."""
        check_not_infinite(sequences, name, n_threads=n_threads)

    def asked_attributes(self) -> list[int]:
        """The columns of X that splits use."""
        asked: list[int] = asked_columns(self.forest, self.columns.n_columns).tolist()
        return asked

    def batch_positions(self, trellis: Trellis) -> int:
        """Number of positions whose bins, scores and probabilities take little memory."""
        return max(BATCH, BATCH_BYTES // (self.columns.n_columns + 16 * trellis.n_labels))

    def prepare(self, sequences: Sequences, n_threads: int) -> AddScores:
        """Prepare to score; values are used directly, or binned in batches to save memory."""

        def add(
            first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
        ) -> None:
            part = sequences.part(first, stop)
            values = self.columns.values(part) if self.forest.walks_values(len(nodes)) else None
            if values is not None:
                self.forest.add_scores(values, nodes, nodes, n_threads)
            else:
                bins = self.columns.bins(part, n_threads)
                self.forest.add_scores(bins, nodes, nodes, n_threads)

        return add

    def contributions(
        self, sequences: Sequences, asked: ContributionRequest
    ) -> list[tuple[float, Table]]:
        """Changes of value on the path from the roots to the leaves."""
        return path_contributions(
            self.forest, self.columns, sequences, asked.positions, asked.signs
        )

    def pack(self) -> State:
        """The columns, with the cuts between their bins, and the trees."""
        columns = pack_columns(self.columns)
        return State(columns.tensors | pack_forest(self.forest), columns.metadata)

    def to_json(self) -> dict[str, Any]:
        """The features that splits use, and the trees."""
        return export_trees(self.forest, self.columns)

    @classmethod
    def unpack(
        cls, state: State, *, schema: Schema, index: _core.StringIndex, grammar: Grammar
    ) -> NodeTrees:
        """Read the output of `pack`."""
        columns = unpack_columns(state, schema, index)
        return cls(columns, unpack_forest(state, grammar.n_labels, columns))
