"""ContextTrees: trees that split on the input and on previous labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.graph import find_roots
from hedgerow.labels import Grammar
from hedgerow.lazy import LazyAttributes, lazy
from hedgerow.potentials.node_trees import NodeTrees
from hedgerow.potentials.potential import AddScores, ContributionRequest
from hedgerow.sequences import Schema, Sequences
from hedgerow.state import State, read_array, require
from hedgerow.tables import Table
from hedgerow.trees.columns_state import unpack_columns
from hedgerow.trees.contributions import path_contributions
from hedgerow.trees.forest_state import unpack_forest
from hedgerow.trellis import Trellis, build_trellis

__all__ = ["ContextTrees", "core_contexts"]

# Number of bytes of edge scores that are computed at a time.
BATCH_BYTES = 1 << 25


def core_contexts(trellis: Trellis) -> _core.Contexts:
    """The previous labels that the arcs of a trellis represent, in the format of the kernels."""
    contexts = trellis.edge_contexts()
    return _core.Contexts(trellis.n_labels, contexts.labels, contexts.before)


@dataclass(frozen=True, eq=False)
class ContextTrees(NodeTrees, LazyAttributes):
    """Sums of trees, each of which adds to the scores of the arcs that lead to a label.

    Attributes
    ----------
    columns : Columns
        The columns of X, and the previous labels.
    forest : Forest
        The trees, which split on these columns.
    trellis : Trellis
        The trellis of the arcs.
    """

    trellis: Trellis

    @property
    def has_edges(self) -> bool:
        """True: the scores of arcs differ from position to position."""
        return True

    @property
    def scores_arcs(self) -> bool:
        """True: it scores all arcs."""
        return True

    @lazy
    def ready(self) -> _core.ContextForest:
        """The trees, ready to be walked."""
        contexts = core_contexts(self.trellis)
        return _core.ContextForest(self.forest, contexts, self.columns.n_columns)

    def batch_positions(self, trellis: Trellis) -> int:
        """Number of positions whose edges take little memory."""
        return max(1, BATCH_BYTES // (8 * int(np.prod(self.trellis.arc_shape))))

    def prepare(self, sequences: Sequences, n_threads: int) -> AddScores:
        """Prepare to score; values are binned in batches."""

        def add(
            first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
        ) -> None:
            assert edges is not None
            part = sequences.part(first, stop)
            bins = self.columns.bins(part, n_threads)
            added = np.zeros((len(nodes), int(np.prod(edges.shape[1:]))), np.float32)
            self.ready.add_scores(bins, nodes, added, nodes, added, n_threads)
            edges += added.reshape(edges.shape)

        return add

    def contributions(
        self, sequences: Sequences, asked: ContributionRequest
    ) -> list[tuple[float, Table]]:
        """Changes of value on the path from the roots to the leaves, given the previous labels."""
        before = np.zeros((*asked.signs.shape, self.columns.n_lags), np.uint8)
        is_root = np.zeros(sequences.n_positions, np.bool_)
        is_root[find_roots(sequences.offsets, sequences.parents)] = True
        for i, position in enumerate(asked.positions.tolist()):
            if not is_root[position]:
                before[i] = self._labels_before(sequences, position, asked.signs[i], asked.codes)
        return path_contributions(
            self.forest, self.columns, sequences, asked.positions, asked.signs, before
        )

    def _labels_before(
        self,
        sequences: Sequences,
        position: int,
        signs: NDArray[np.int64],
        codes: NDArray[np.int32],
    ) -> NDArray[np.uint8]:
        """Codes of the previous labels plus 1, by the label of the tree, (K, n_lags); 0: unused."""
        number, place = sequences.locate(position)
        bounds = sequences.offsets[number : number + 2]
        own = slice(*bounds.tolist())
        parents = None if sequences.parents is None else sequences.parents[own]
        contexts, changed = self.trellis.edge_contexts(), codes[own].copy()
        before = np.zeros((len(signs), self.columns.n_lags), np.uint8)
        for label in np.flatnonzero(signs):
            changed[place] = label
            taken = self.trellis.arcs_taken(changed, bounds - bounds[0], parents)
            before[label] = contexts.before[taken[place]]
        return before

    def pack(self) -> State:
        """The columns, the number of previous labels that are used, and the trees."""
        lags = State(
            {"edges.lags": np.array([self.columns.n_lags])},
            {"label_names": list(self.columns.labels)},
        )
        return super().pack() | lags

    @classmethod
    def unpack(
        cls, state: State, *, schema: Schema, index: _core.StringIndex, grammar: Grammar
    ) -> NodeTrees:
        """Read the output of `pack`; `NodeTrees` if the trees do not split on labels."""
        if "edges.lags" not in state.tensors:
            return NodeTrees.unpack(state, schema=schema, index=index, grammar=grammar)
        trellis, names = build_trellis(grammar), state.metadata.get("label_names")
        lags = read_array(state, "edges.lags", np.int64).tolist()
        fits = lags == [trellis.edge_contexts().before.shape[1]]
        require(fits, "edges.lags does not fit the label patterns")
        are_names = isinstance(names, list) and all(isinstance(name, str) for name in names)
        require(
            are_names and len(names or ()) == grammar.n_labels,
            "the names of its labels are not valid",
        )
        columns = unpack_columns(state, schema, index)
        columns = replace(columns, labels=tuple(names or ()), n_lags=lags[0])
        forest = unpack_forest(state, grammar.n_labels, columns)
        return cls(columns, forest, trellis)
