"""Running scores: scores of sequences by the rounds so far, updated when trees are added.

A direction is also represented by scores: the change with a step of 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.boosting.query_rows import QueryRows
from hedgerow.boosting.rounds import Part
from hedgerow.comm import Comm
from hedgerow.exact_sums import exact_sum
from hedgerow.potentials import AddScores, ContextTrees, NodeTrees, Potential, core_contexts
from hedgerow.potentials.scoring import add_up, edge_shape, prepare
from hedgerow.relational.facts import Facts
from hedgerow.relational.refiner import Refiner
from hedgerow.sequences import Sequences, cut_runs
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest, asked_columns
from hedgerow.trellis import Scores, Trellis, flatten_edges

__all__ = ["Binned", "ContextScores", "NodeScores", "RunningScores", "TreeScoring"]

AnyScores = TypeVar("AnyScores", bound="RunningScores")

# Number of bytes of edge scores, of label pairs or arcs, in use at a time: small enough for a
# typical cache, and large enough for the overhead of calls not to matter. If kernels read the
# float32 scores directly, each only once, they need not fit into the cache.
BYTES_OF_RUN = 1 << 22
BYTES_AS_THEY_ARE = 1 << 28
# Number of positions whose scores are updated at a time, to save memory.
ROWS = 1 << 12


@dataclass(eq=False)
class Binned:
    """Sequences in the form in which trees score them during training.

    Attributes
    ----------
    bins : Bins
        Bins of X's columns at all positions, in the form that the scores need.
    offsets : (S + 1,)
        Bounds of the sequences.
    parents : (N,) or None
        Index of the parent of each position in its sequence, see `Scores`.
    given : sequence of AddScores
        Adders of potentials that are not learned.
    laid_out : TreeData or None
        The bins in the layout for growing trees, with which walking trees is faster.
    running : RunningScores or None
        Scores by the first `n_parts` parts of the rounds, plus those by the potentials of `given`.
    direction : RunningScores or None
        The direction of the last of these parts, where rounds have directions.
    rows : QueryRows or None
        The source of the bins, if attributes are queries that trees extend.
    """

    bins: Any
    offsets: NDArray[np.int64]
    parents: NDArray[np.int32] | None
    given: Sequence[AddScores | None]
    laid_out: _core.TreeData | None = None
    running: RunningScores | None = None
    direction: RunningScores | None = None
    n_parts: int = 0
    rows: QueryRows | None = None


class RunningScores(ABC):
    """Scores of sequences, without their arcs."""

    nodes: NDArray[np.float64]
    """(N, K)"""

    @abstractmethod
    def twin(self: AnyScores) -> AnyScores:
        """Other scores of the same sequences, not filled yet."""

    def zeros(self: AnyScores) -> AnyScores:
        """A zero direction."""
        found = self.twin()
        found.clear()
        return found

    def clear(self) -> None:
        """Set all to 0."""
        for array in self.arrays:
            array[...] = 0

    @property
    @abstractmethod
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays that trees add to: nodes, and edges if there are any."""

    @abstractmethod
    def add(self, trees: Forest, out: RunningScores) -> None:
        """Fill ``out``, which may be these scores, with the scores plus the values of trees."""

    def turn(self, trees: Forest, carry: float) -> None:
        """Set a direction to some trees plus ``carry`` times the previous direction."""
        for array in self.arrays:
            array *= carry
        self.add(trees, self)

    def move(self, step: float, direction: RunningScores, out: RunningScores) -> None:
        """Fill ``out``, which may be these, with the scores after a step along a direction."""
        for array, along, moved in zip(self.arrays, direction.arrays, out.arrays, strict=True):
            for first in range(0, len(array), ROWS):
                rows = slice(first, first + ROWS)
                np.add(array[rows], step * along[rows], out=moved[rows])

    def slope_by(self, slopes: tuple[NDArray[Any], ...], comm: Comm) -> float:
        """Derivative along a direction of a loss with these slopes, one for each of the arrays."""
        pairs = zip(self.arrays, slopes, strict=True)
        return sum(
            exact_sum(np.einsum("ti,ti->t", *pair, dtype=np.float64), comm) for pair in pairs
        )

    def largest(self) -> float:
        """Largest change of any score along a direction."""
        ends = (
            end for array in self.arrays for end in (array.max(initial=0), -array.min(initial=0))
        )
        return float(max(ends))

    @abstractmethod
    def runs(self, arcs: NDArray[np.float64]) -> Iterator[Scores]:
        """All scores, with scores of the arcs; each run must be used before the next."""


class NodeScores(RunningScores):
    """Scores by trees on the input."""

    def __init__(self, start: Scores, scoring: TreeScoring, binned: Binned) -> None:
        self.start, self.scoring, self.binned = start, scoring, binned
        self.nodes = start.nodes

    def twin(self) -> NodeScores:
        """Other scores with the same edges, which trees do not change."""
        nodes = np.empty_like(self.nodes)
        return NodeScores(replace(self.start, nodes=nodes), self.scoring, self.binned)

    def restore(self, parts: Sequence[Part]) -> None:
        """Compute the scores again, by adding all parts of the rounds, bit for bit as before."""
        again = self.scoring.start(self.binned)
        self.scoring.add_trees(parts, again)
        np.copyto(self.nodes, again.nodes)

    @property
    def arrays(self) -> tuple[NDArray[np.float64]]:
        """Only the nodes."""
        return (self.nodes,)

    def add(self, trees: Forest, out: RunningScores) -> None:
        """Fill ``out`` with the scores plus the values of trees, which change only nodes."""
        bins = self.binned.laid_out or self.binned.bins
        trees.add_scores(bins, self.nodes, out.nodes, self.scoring.n_threads)

    def runs(self, arcs: NDArray[np.float64]) -> Iterator[Scores]:
        """All sequences in one run."""
        yield replace(self.start, nodes=self.nodes, arcs=arcs)


class ContextScores(RunningScores):
    """Scores by trees that split on previous labels; those of the edges are float32."""

    def __init__(
        self, start: Scores, scoring: TreeScoring, binned: Binned, edges: NDArray[np.float32]
    ) -> None:
        self.start, self.scoring, self.binned, self.edges = start, scoring, binned, edges
        self.nodes = start.nodes

    def twin(self) -> ContextScores:
        """Other scores with their own array of edges; edges that are not learned are shared."""
        found = self.on_same_edges()
        found.edges = _zero_edges(*self.edges.shape)
        return found

    def on_same_edges(self) -> ContextScores:
        """Other scores of the nodes, not filled yet, with the same array of edges."""
        start = replace(self.start, nodes=np.empty_like(self.nodes))
        return ContextScores(start, self.scoring, self.binned, self.edges)

    def restore_edges(self, parts: Sequence[Part]) -> None:
        """Compute the edges again, by adding all parts of the rounds, bit for bit as before."""
        again = self.on_same_edges()
        again.clear()
        for part in parts:
            again.add(part.trees, again)

    @property
    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Nodes and edges."""
        return self.nodes, self.edges

    def add(self, trees: Forest, out: RunningScores) -> None:
        """Fill the nodes and edges of ``out`` with the scores plus the values of trees."""
        assert isinstance(out, ContextScores)
        ready = _core.ContextForest(trees, self.scoring.contexts, self.scoring.columns.n_columns)
        bins, n_threads = self.binned.laid_out or self.binned.bins, self.scoring.n_threads
        ready.add_scores(bins, self.nodes, self.edges, out.nodes, out.edges, n_threads)

    def runs(self, arcs: NDArray[np.float64]) -> Iterator[Scores]:
        """Runs of sequences, each of about `run_size` positions."""
        for first, stop in cut_runs(self.start.offsets, self.run_size):
            yield self.run(first, stop, arcs)

    @property
    def run_size(self) -> int:
        """Approximate number of positions in a run."""
        n_bytes = BYTES_AS_THEY_ARE if self._are_read_as_they_are else BYTES_OF_RUN
        return max(1, n_bytes // (8 * int(self.edges.shape[1])))

    @property
    def _are_read_as_they_are(self) -> bool:
        start = self.start
        is_plain = start.edges is None and start.parents is None
        return is_plain and self.scoring.trellis.takes_single_edges

    def run(self, first: int, stop: int, arcs: NDArray[np.float64]) -> Scores:
        """Scores of some sequences; the edges may be overwritten by the next call."""
        part = replace(self.start, nodes=self.nodes, arcs=arcs).part(slice(first, stop))
        begin = int(self.start.offsets[first])
        of_trees, shape = (
            self.edges[begin : begin + part.n_positions],
            self.scoring.trellis.arc_shape,
        )
        if self._are_read_as_they_are:
            return replace(part, edges=of_trees.reshape(-1, *shape))
        edges = self.scoring.borrow(part.n_positions)
        given = None if part.edges is None else flatten_edges(part.edges)
        _core.fill_edges(of_trees, given, edges, self.scoring.n_threads)
        return replace(part, edges=edges.reshape(-1, *shape))


def _zero_edges(n_positions: int, n_edges: int) -> NDArray[np.float32]:
    """Zeros in large memory pages, which older versions of NumPy do not use for `zeros`.

    Threads touch them for the first time when they add scores.
    """
    edges = np.zeros((n_positions, n_edges), np.float32)
    _core.prefer_large_pages(edges)
    return edges


class TreeScoring:
    """How trees of a training run score sequences.

    Parameters
    ----------
    columns
        The columns that trees split on; `Columns.n_lags` says whether labels are among them.
    trellis
        The trellis of the arcs.
    given
        Potentials that are not learned.
    arcs
        Their scores of the arcs.
    have_directions
        Whether rounds have directions: see `Rounds`.
    refiner
        What extends queries, if attributes are queries and trees extend them.
    """

    def __init__(
        self,
        columns: Columns,
        trellis: Trellis,
        given: Sequence[Potential],
        arcs: NDArray[np.float64],
        n_threads: int,
        *,
        have_directions: bool = False,
        refiner: Refiner | None = None,
    ) -> None:
        self.refiner = refiner
        self.columns, self.trellis, self.given, self.arcs = columns, trellis, given, arcs
        self.n_threads, self.have_directions = n_threads, have_directions
        self._shape = edge_shape(given, trellis)
        self._edges = np.empty(0)
        if columns.n_lags:
            self.contexts = core_contexts(trellis)
            if self._shape is not None:
                self._shape = trellis.arc_shape

    def bin(self, sequences: Sequences) -> Binned:
        """Prepare sequences for scoring."""
        adders = prepare(self.given, sequences, self.trellis, self._shape, self.n_threads)
        columns, parents = self.columns, sequences.parents
        binned = columns.bin(sequences, self.n_threads)
        rows = None
        if self.refiner is not None:
            assert isinstance(sequences.facts, Facts)
            assert sequences.sparse is not None
            rows = QueryRows(binned, sequences.facts, parents, sequences.sparse.n_columns)
        bins = columns.to_core(binned, parents, self.n_threads)
        return Binned(bins, sequences.offsets, parents, adders, rows=rows)

    def add_queries(self, names: list[str]) -> None:
        """Add the names of queries to the columns."""
        assert self.columns.index is not None
        for name in names:
            self.columns.index.add(name)
        self.columns = self.columns.with_attributes(len(names))

    def complete(self, sequences: Binned, trees: Forest | None = None) -> None:
        """Search these sequences for the queries that trees split on, unless done before.

        Without ``trees``, search for all queries.
        """
        if sequences.rows is None:
            return
        assert self.refiner is not None
        assert self.columns.index is not None
        n_columns = self.columns.n_columns
        columns = np.arange(n_columns) if trees is None else asked_columns(trees, n_columns)
        lacking = sequences.rows.lacking(columns)
        if lacking:
            names = self.columns.index.names()
            found = self.refiner.find([names[column] for column in lacking], sequences.rows.facts)
            sequences.rows.add(zip(lacking, found, strict=True))
            sequences.bins = sequences.rows.to_core(self.columns, self.n_threads)
            sequences.laid_out = None

    def start(self, sequences: Binned) -> RunningScores:
        """Scores before the first round: those of other potentials."""
        (scores,) = add_up(
            sequences.given,
            sequences.offsets,
            self.arcs,
            self.trellis,
            parents=sequences.parents,
            edge_shape=self._shape,
            n_threads=self.n_threads,
        )
        if not self.columns.n_lags:
            return NodeScores(scores, self, sequences)
        edges = _zero_edges(len(scores.nodes), self.contexts.n_edges)
        return ContextScores(scores, self, sequences, edges)

    def catch_up(self, sequences: Binned, parts: Sequence[Part]) -> RunningScores:
        """Add what the rounds since the last call have learned.

        ``parts`` are those of all rounds, earlier ones included.
        """
        if sequences.running is None:
            sequences.running = self.start(sequences)
            if self.have_directions:
                sequences.direction = sequences.running.zeros()
        running, direction = sequences.running, sequences.direction
        new = parts[sequences.n_parts :]
        for part in new:
            self.complete(sequences, part.trees)
        if direction is None:
            self.add_trees(new, running)
        else:
            for part in new:
                direction.turn(part.trees, part.carry)
                running.move(part.step, direction, running)
        sequences.n_parts = len(parts)
        return running

    def add_trees(self, parts: Sequence[Part], scores: RunningScores) -> None:
        """Add the trees of parts of the rounds, where rounds have no directions."""
        grown = [part.trees for part in parts if part.trees.n_trees]
        if len(grown) > 1:  # several rounds at once: bins are read only once
            grown = [Forest.join(self.trellis.n_labels, grown)]
        for trees in grown:
            scores.add(trees, scores)

    def potential(self, forest: Forest) -> NodeTrees:
        """The potential that scores new sequences by some trees."""
        if self.columns.n_lags:
            return ContextTrees(self.columns, forest, self.trellis)
        return NodeTrees(self.columns, forest)

    def borrow(self, n_positions: int) -> NDArray[np.float64]:
        """Memory for the edges of a run, (n_positions, E), reused in every call."""
        size = n_positions * self.contexts.n_edges
        if len(self._edges) < size:
            self._edges = np.empty(size)
        return self._edges[:size].reshape(n_positions, -1)
