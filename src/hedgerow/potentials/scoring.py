"""Scoring: what potentials give to sequences, added up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.potentials.potential import AddScores, Potential
from hedgerow.sequences import Sequences, cut_runs
from hedgerow.trellis import Scores, Trellis

__all__ = ["add_up", "score", "score_at_once", "sum_arcs"]


def sum_arcs(potentials: Sequence[Potential], trellis: Trellis) -> NDArray[np.float64]:
    """Scores of the arcs, the same at every position."""
    arcs = trellis.bare_arcs()
    for potential in potentials:
        potential.add_arcs(trellis, arcs)
    return arcs


def score(
    potentials: Sequence[Potential],
    sequences: Sequences,
    arcs: NDArray[np.float64],
    trellis: Trellis,
    n_threads: int,
) -> Iterator[Scores]:
    """Scores of all sequences, in runs of consecutive ones; ``arcs`` are their `sum_arcs`."""
    sizes = [potential.batch_positions(trellis.n_labels) for potential in potentials]
    yield from add_up(
        [potential.prepare(sequences, n_threads) for potential in potentials],
        sequences.offsets,
        arcs,
        trellis,
        has_edges=any(potential.has_edges for potential in potentials),
        batch=min((size for size in sizes if size is not None), default=None),
    )


def score_at_once(
    potentials: Sequence[Potential], sequences: Sequences, trellis: Trellis, n_threads: int
) -> Scores:
    """Scores of all sequences together."""
    (scores,) = add_up(
        [potential.prepare(sequences, n_threads) for potential in potentials],
        sequences.offsets,
        sum_arcs(potentials, trellis),
        trellis,
        has_edges=any(potential.has_edges for potential in potentials),
    )
    return scores


def add_up(
    adders: Sequence[AddScores | None],
    offsets: NDArray[np.int64],
    arcs: NDArray[np.float64],
    trellis: Trellis,
    *,
    has_edges: bool,
    batch: int | None = None,
) -> Iterator[Scores]:
    """Scores of sequences in runs of about `batch` positions, or all at once.

    Parameters
    ----------
    adders
        What adds to the scores, see `Potential.prepare`.
    offsets : (S + 1,)
        Where the sequences begin and end.
    arcs
        Scores of the arcs.
    """
    for first, stop in cut_runs(offsets, int(offsets[-1]) if batch is None else batch):
        own = offsets[first : stop + 1] - offsets[first]
        nodes = np.zeros((int(own[-1]), trellis.n_labels))
        trellis.restrict(nodes, own)
        edges = np.zeros((len(nodes), trellis.n_labels, trellis.n_labels)) if has_edges else None
        for add in adders:
            if add is not None:
                add(first, stop, nodes, edges)
        yield Scores(nodes, arcs, own, trellis, edges)
