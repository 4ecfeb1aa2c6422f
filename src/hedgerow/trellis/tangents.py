"""Tangents: forward-backward with a directional derivative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.trellis.posteriors import Pairs, allocate
from hedgerow.trellis.reading import read_floats
from hedgerow.trellis.tree_graph import inference
from hedgerow.trellis.trellis import Scores

__all__ = ["Tangents", "tangent"]


@dataclass(frozen=True, eq=False)
class Tangents:
    """Derivatives of the results of forward-backward along a direction of the scores."""

    marginals: NDArray[np.float64]
    """(N, K) derivatives of the marginals."""
    arc_sums: NDArray[np.float64] | None
    """Derivatives of the expected counts of the arcs, in their shape."""
    pairs: NDArray[np.float64] | None
    """Derivatives of pairs, (N, K, K), or in the shape of the edges; 0 where a sequence begins."""


def tangent(
    scores: Scores,
    marginals: ArrayLike,
    nodes: ArrayLike,
    arcs: ArrayLike | None = None,
    *,
    pairs: Pairs = "sum",
    out: NDArray[np.float64] | None = None,
    n_threads: int = 1,
) -> Tangents:
    """Derivatives of the marginals as the scores move along a direction.

    With V the sum of the direction's entries along a labelling, the derivative of the probability
    of an event is the covariance of the event and V. The marginals are the gradient of the sum of
    log Z, so this is its Hessian times the direction.

    Parameters
    ----------
    scores
        The scores.
    marginals
        (N, K) marginals that `forward_backward` returns for the same scores.
    nodes
        (N, K) direction of the node scores. It may be as large as 1 / marginals; where a marginal
        is 0, the direction does not matter.
    arcs
        Direction of the arc scores, of their shape; None is 0.
    pairs, n_threads
        As in `forward_backward`.
    out
        (N, K) float64 array that receives the derivatives of the marginals.
    """
    probs = _of_shape(marginals, np.shape(scores.nodes), "marginals", "nodes")
    node_moves = _of_shape(nodes, np.shape(scores.nodes), "the direction of nodes", "nodes")
    _check_finite(node_moves, "nodes", "position {}, label {}")
    arc_moves = None
    if arcs is not None:
        arc_moves = _of_shape(arcs, np.shape(scores.arcs), "the direction of arcs", "arcs")
        _check_finite(arc_moves, "arcs", "arc {}" if arc_moves.ndim == 1 else "labels {} to {}")
    if out is not None and any(np.may_share_memory(out, read) for read in (probs, node_moves)):
        raise ValueError("out shares memory with marginals or nodes; pass a separate array")
    result = allocate(scores, pairs, out)
    assert result.marginals is not None
    inference(scores).fill_tangents(scores, probs, node_moves, arc_moves, result, n_threads)
    return Tangents(result.marginals, result.arc_sums, result.pairs)


def _of_shape(
    array: ArrayLike, shape: tuple[int, ...], name: str, other: str
) -> NDArray[np.float64]:
    """An array in the format of the kernels."""
    numbers = read_floats(array)
    if numbers.shape != shape:
        raise ValueError(
            f"{name} has shape {numbers.shape}; expected the shape of {other}, {shape}"
        )
    return numbers


def _check_finite(direction: NDArray[np.float64], name: str, place: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(direction.sum()):  # much faster than checking each number
            return
    bad = np.argwhere(~np.isfinite(direction))
    if len(bad):
        where = place.format(*bad[0].tolist())
        value = direction[tuple(bad[0])]
        raise ValueError(f"the direction of {name} is {value} at {where}; expected finite numbers")
