"""Tangents: forward-backward that carries a derivative along."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.trellis.posteriors import Pairs, empty_posteriors
from hedgerow.trellis.potentials import Potentials, Scores, count_threads, over_automaton

__all__ = ["Tangents", "tangent"]


@dataclass(frozen=True, eq=False)
class Tangents:
    """Derivatives of what forward-backward finds out, along a direction of the scores."""

    marginals: NDArray[np.float64]
    """(N, K) of the marginals."""
    arc_sums: NDArray[np.float64] | None
    """(K, K), or (A,) with an automaton."""
    pairs: NDArray[np.float64] | None
    """(N, K, K); 0 where a sequence begins."""
    arc_marginals: NDArray[np.float64] | None
    """(N, A)"""


def tangent(
    potentials: Potentials,
    marginals: ArrayLike,
    nodes: ArrayLike,
    arcs: ArrayLike | None = None,
    *,
    pairs: Pairs = "sum",
    arc_marginals: bool = False,
    out: NDArray[np.float64] | None = None,
    n_jobs: int | None = None,
) -> Tangents:
    """How the marginals change as the scores move along a direction.

    With V the sum of the direction's entries along a labelling, the derivative of the probability
    of an event is the covariance of the event and V. All marginals together are the gradient of the
    sum of log Z, so that this is its Hessian times the direction.

    Parameters
    ----------
    potentials
        The scores.
    marginals
        (N, K) those of `forward_backward` for the same scores.
    nodes
        (N, K) direction of the node scores. It may be as large as 1 / marginals; where a marginal
        is 0 it does not matter.
    arcs
        Direction of the arc scores, of their shape; None is 0.
    pairs, arc_marginals, n_jobs
        As in `forward_backward`.
    out
        (N, K) float64 array that receives the derivatives of the marginals.
    """
    scores = Scores(potentials)
    probs = _of_shape(marginals, np.shape(potentials.nodes), "marginals", "nodes")
    node_moves = _of_shape(nodes, np.shape(potentials.nodes), "the direction of nodes", "nodes")
    _check_finite(node_moves, "nodes", "position {}, label {}")
    arc_moves = None
    if arcs is not None:
        arc_moves = _of_shape(arcs, np.shape(potentials.arcs), "the direction of arcs", "arcs")
        _check_finite(arc_moves, "arcs", "arc {}" if arc_moves.ndim == 1 else "labels {} to {}")
    if out is not None and any(np.may_share_memory(out, read) for read in (probs, node_moves)):
        raise ValueError("out is where marginals or nodes are; pass an array of its own")
    room = empty_posteriors(potentials, pairs, out, arc_marginals, likelihoods=False)
    result = Tangents(room.marginals, room.arc_sums, room.pairs, room.arc_marginals)
    n_threads = count_threads(n_jobs)
    if potentials.automaton is not None:
        _fill_over_automaton(scores, probs, node_moves, arc_moves, None, result, n_threads)
    else:
        _fill_chain_tangents(scores, probs, node_moves, arc_moves, result, n_threads)
    return result


def _fill_chain_tangents(
    scores: Scores,
    marginals: NDArray[np.float64],
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64] | None,
    result: Tangents,
    n_threads: int,
) -> None:
    """Fast where that can be; with edges or extreme scores over the automaton of label pairs."""
    potentials = scores.potentials
    left = np.ones(potentials.n_sequences, dtype=np.uint8)
    if potentials.edges is None:
        node_scores, arc_scores, _, offsets = scores.arguments
        _core.fill_tangents(
            node_scores,
            arc_scores,
            offsets,
            marginals,
            nodes,
            arcs,
            result.marginals,
            result.arc_sums,
            result.pairs,
            left,
            n_threads,
        )
        if not left.any():
            return
    over_pairs = over_automaton(potentials)
    automaton = over_pairs.automaton
    assert automaton is not None
    sums = None if result.arc_sums is None else np.empty(automaton.n_arcs)
    arc_moves = None if arcs is None else automaton.arc_scores(np.ravel(arcs))
    _fill_over_automaton(
        Scores(over_pairs),
        marginals,
        nodes,
        arc_moves,
        left,
        replace(result, arc_sums=sums),
        n_threads,
    )
    if result.arc_sums is None or sums is None:
        return
    by_pair = automaton.pattern_sums(sums).reshape(result.arc_sums.shape)
    if potentials.edges is None:
        result.arc_sums[...] += by_pair
    else:
        result.arc_sums[...] = by_pair


def _fill_over_automaton(
    scores: Scores,
    marginals: NDArray[np.float64],
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64] | None,
    wanted: NDArray[np.uint8] | None,
    result: Tangents,
    n_threads: int,
) -> None:
    """Over an automaton; `wanted` (S,) says of which sequences, None of all."""
    fill = scores.bind(None, _core.fill_automaton_tangents)
    outputs = result.marginals, result.arc_sums, result.arc_marginals, result.pairs
    fill(marginals, nodes, arcs, wanted, *outputs, n_threads)


def _of_shape(
    array: ArrayLike, shape: tuple[int, ...], name: str, other: str
) -> NDArray[np.float64]:
    """An array as the kernels want it."""
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    if numbers.shape != shape:
        raise ValueError(f"{name} have shape {numbers.shape}; expected that of {other}, {shape}")
    return numbers


def _check_finite(direction: NDArray[np.float64], name: str, place: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(direction.sum()):  # much faster than a look at each number
            return
    bad = np.argwhere(~np.isfinite(direction))
    if len(bad):
        where = place.format(*bad[0].tolist())
        value = direction[tuple(bad[0])]
        raise ValueError(f"the direction of {name} is {value} at {where}; expected finite numbers")
