"""Scoring: the sum of the scores of all potentials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.potentials.potential import AddScores, Potential
from hedgerow.sequences import Sequences, cut_runs
from hedgerow.trellis import PatternEdges, Scores, Trellis, flatten_edges

__all__ = [
    "add_up",
    "edge_shape",
    "fit_edges",
    "have_scores",
    "prepare",
    "score",
    "score_at_once",
    "sum_arcs",
]


def sum_arcs(potentials: Sequence[Potential], trellis: Trellis) -> NDArray[np.float64]:
    """Scores of the arcs, the same at every position."""
    arcs = trellis.bare_arcs()
    for potential in potentials:
        potential.add_arcs(trellis, arcs)
    return arcs


def edge_shape(potentials: Sequence[Potential], trellis: Trellis) -> tuple[int, ...] | None:
    """Shape of the edges of a position: of label pairs, or of arcs; None if there are none."""
    if any(potential.scores_arcs or potential.scores_patterns for potential in potentials):
        return trellis.arc_shape
    if any(potential.has_edges for potential in potentials):
        return trellis.n_labels, trellis.n_labels
    return None


def have_scores(nodes: NDArray[np.float64]) -> bool:
    """Whether any score is not 0; -inf, the score of a forbidden label, does not count."""
    return bool(nodes.any() and (np.isfinite(nodes) & (nodes != 0)).any())


def prepare(
    potentials: Sequence[Potential],
    sequences: Sequences,
    trellis: Trellis,
    shape: tuple[int, ...] | None,
    n_threads: int,
) -> list[AddScores | None]:
    """The adders of all potentials; ``shape`` is that of the edges of a position."""
    prepared = [(potential, potential.prepare(sequences, n_threads)) for potential in potentials]
    return [
        add and fit_edges(add, potential, trellis, shape, n_threads) for potential, add in prepared
    ]


def fit_edges(
    add: AddScores,
    potential: Potential,
    trellis: Trellis,
    shape: tuple[int, ...] | None,
    n_threads: int,
) -> AddScores:
    """Adapt the adder of a potential to edges of this shape."""
    scores_arcs = potential.scores_arcs or potential.scores_patterns
    if scores_arcs and potential.edge_trellis is not None:
        return _spread_arcs(add, potential.edge_trellis, trellis)
    if potential.scores_patterns:
        return _spread_patterns(add, trellis, n_threads)
    if potential.has_edges and not potential.scores_arcs and shape is not None and len(shape) == 1:
        return _spread_pairs(add, trellis)
    return add


def _spread_patterns(add: AddScores, trellis: Trellis, n_threads: int) -> AddScores:
    """Add scores of label patterns to all arcs that end in them."""
    outputs = PatternEdges(trellis)

    def add_to_arcs(
        first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
    ) -> None:
        assert edges is not None
        of_patterns = np.zeros((len(nodes), trellis.n_patterns))
        add(first, stop, nodes, of_patterns)
        edges += outputs.spread(of_patterns, n_threads)

    return add_to_arcs


def _spread_pairs(add: AddScores, trellis: Trellis) -> AddScores:
    """Add scores of label pairs to all arcs that end in them."""
    contexts, n_labels = trellis.edge_contexts(), trellis.n_labels
    arcs = np.flatnonzero(contexts.labels >= 0)
    pairs = (contexts.before[arcs, 0].astype(np.int64) - 1) * n_labels + contexts.labels[arcs]

    def add_to_arcs(
        first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
    ) -> None:
        assert edges is not None
        of_pairs = np.zeros((len(nodes), n_labels, n_labels))
        add(first, stop, nodes, of_pairs)
        edges[:, arcs] += flatten_edges(of_pairs)[:, pairs]

    return add_to_arcs


def _spread_arcs(add: AddScores, own: Trellis, trellis: Trellis) -> AddScores:
    """Add scores of the arcs of another trellis to all arcs with the same last labels.

    The label patterns of the other trellis are a subset of those of this one, so a state here
    remembers at least as many labels. The labels of an arc here therefore lead to exactly one arc
    there, whose score it gets.
    """
    contexts = trellis.edge_contexts()
    arcs = np.flatnonzero(contexts.labels >= 0)
    before = contexts.before[arcs, ::-1].astype(np.int32) - 1  # -1: not known that far back
    strings = np.column_stack([before, contexts.labels[arcs]]).astype(np.int32)
    known = strings >= 0
    offsets = np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int64)
    own_arcs = own.arcs_taken(strings[known], offsets)[offsets[1:] - 1]

    def add_to_arcs(
        first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
    ) -> None:
        assert edges is not None
        of_own = np.zeros((len(nodes), *own.arc_shape))
        add(first, stop, nodes, of_own)
        flatten_edges(edges)[:, arcs] += flatten_edges(of_own)[:, own_arcs]

    return add_to_arcs


def score(
    potentials: Sequence[Potential],
    sequences: Sequences,
    arcs: NDArray[np.float64],
    trellis: Trellis,
    n_threads: int,
) -> Iterator[Scores]:
    """Scores of all sequences, in runs of consecutive ones; ``arcs`` come from `sum_arcs`."""
    sizes = [potential.batch_positions(trellis) for potential in potentials]
    shape = edge_shape(potentials, trellis)
    yield from add_up(
        prepare(potentials, sequences, trellis, shape, n_threads),
        sequences.offsets,
        arcs,
        trellis,
        parents=sequences.parents,
        edge_shape=shape,
        batch=min((size for size in sizes if size is not None), default=None),
        n_threads=n_threads,
    )


def score_at_once(
    potentials: Sequence[Potential],
    sequences: Sequences,
    trellis: Trellis,
    shape: tuple[int, ...] | None,
    n_threads: int,
) -> Scores:
    """Scores of all sequences together; ``shape`` is that of the edges of a position."""
    (scores,) = add_up(
        prepare(potentials, sequences, trellis, shape, n_threads),
        sequences.offsets,
        sum_arcs(potentials, trellis),
        trellis,
        parents=sequences.parents,
        edge_shape=shape,
        n_threads=n_threads,
    )
    return scores


def add_up(
    adders: Sequence[AddScores | None],
    offsets: NDArray[np.int64],
    arcs: NDArray[np.float64],
    trellis: Trellis,
    *,
    parents: NDArray[np.int32] | None,
    edge_shape: tuple[int, ...] | None,
    batch: int | None = None,
    n_threads: int = 1,
) -> Iterator[Scores]:
    """Scores of sequences in runs of about `batch` positions, or all at once.

    Parameters
    ----------
    adders
        Functions that add to the scores, see `Potential.prepare`.
    offsets : (S + 1,)
        Bounds of the sequences.
    arcs
        Scores of the arcs.
    parents : (N,) or None
        Index of the parent of each position in its sequence, see `Scores`.
    edge_shape
        Shape of the edges of a position; None if there are none.
    """
    for first, stop in cut_runs(offsets, int(offsets[-1]) if batch is None else batch):
        own = offsets[first : stop + 1] - offsets[first]
        nodes = np.empty((int(own[-1]), trellis.n_labels))
        _core.clear_numbers(nodes, n_threads)
        parents_here = None if parents is None else parents[offsets[first] : offsets[stop]]
        trellis.restrict(nodes, own, parents_here)
        edges = None if edge_shape is None else np.zeros((len(nodes), *edge_shape))
        for add in adders:
            if add is not None:
                add(first, stop, nodes, edges)
        yield Scores(nodes, arcs, own, trellis, edges, parents_here)
