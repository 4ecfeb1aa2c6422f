"""Maximum margin: the hinge loss of whole sequences, and its slopes.

Of each sequence, with the labels y and the cost Delta(y', y) of the positions that another
labelling y' gets wrong, the loss is (Gross et al. 2006, Eq. 5)

    max(0, max_y' [Delta(y', y) + score(y')] - score(y)).

It is not smooth: where several labellings attain the maximum, the slopes are those of one of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.objectives.slopes import Slopes
from hedgerow.objectives.targets import Targets
from hedgerow.trellis import Potentials, viterbi

__all__ = ["max_margin"]


def max_margin(
    potentials: Potentials,
    targets: Targets,
    *,
    n_threads: int,
    out: NDArray[np.float64] | None = None,
) -> Slopes:
    """Structured hinge loss; its slopes are the counts of the worst labelling minus the given ones.

    A wrong label costs 1, or with position weights that of its position as a multiple of its
    sequence's. The weight of a sequence multiplies all of its loss. All labels must be known, and
    their scores finite. ``out`` (N, K), where given, receives the slopes of the nodes.
    """
    assert targets.partial is None
    nodes = np.empty_like(potentials.nodes) if out is None else out
    costs = _costs(targets)
    given = replace(targets, position_weights=None)
    _add_costs(potentials.nodes, costs, given.codes, nodes)
    worst = replace(given, codes=viterbi(replace(potentials, nodes=nodes), n_jobs=n_threads))

    sequences = np.repeat(np.arange(potentials.n_sequences), np.diff(targets.offsets))
    gains = _gains(potentials, given, worst) + np.where(worst.codes == given.codes, 0.0, costs)
    hinges = np.bincount(sequences, gains, potentials.n_sequences).clip(min=0)
    if targets.sequence_weights is not None:
        hinges *= targets.sequence_weights
    # A sequence without a loss, be it by its weight, has no slopes.
    worst = replace(worst, codes=np.where(hinges[sequences] > 0, worst.codes, given.codes))
    edges = None if potentials.edges is None else np.zeros_like(potentials.edges)
    nodes.fill(0.0)
    for labelled, sign in ((worst, 1.0), (given, -1.0)):
        _add_counts(nodes, labelled.codes, labelled.weights, sign)
        if edges is not None:
            pairs = edges.reshape(len(edges), -1)
            _add_counts(pairs, labelled.pair_codes, labelled.weights, sign)
    return Slopes(float(hinges.sum()), nodes, worst.arc_counts - given.arc_counts, edges)


def _costs(targets: Targets) -> NDArray[np.float64]:
    """What a wrong label costs at each position, (N,), but for its sequence's weight."""
    if targets.position_weights is None:
        return np.ones(len(targets.codes))
    if targets.sequence_weights is None:
        return targets.position_weights
    # A sequence of weight 0 counts nothing, whatever its costs.
    weights = np.where(targets.sequence_weights > 0, targets.sequence_weights, 1.0)
    costs: NDArray[np.float64] = targets.position_weights / np.repeat(
        weights, np.diff(targets.offsets)
    )
    return costs


def _add_costs(
    scores: NDArray[np.float64],
    costs: NDArray[np.float64],
    codes: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """Fill ``out`` (N, K) with the scores of nodes, and the costs added to all but the codes'."""
    positions = np.arange(len(codes))
    np.add(scores, costs[:, None], out=out)
    out[positions, codes] = scores[positions, codes]


def _gains(potentials: Potentials, given: Targets, worst: Targets) -> NDArray[np.float64]:
    """By how much the worst labels outscore the given ones at each position, (N,).

    Only differences are ever summed: the scores themselves may be too large to tell them apart.
    """
    positions = np.arange(potentials.n_positions)
    nodes = potentials.nodes
    gains: NDArray[np.float64] = nodes[positions, worst.codes] - nodes[positions, given.codes]
    arcs = np.append(potentials.arcs, 0.0)  # the last is for positions that no arc leads to
    gains += arcs[_arcs_taken(worst)] - arcs[_arcs_taken(given)]
    if potentials.edges is not None:
        edges = potentials.edges.reshape(len(positions), -1)
        inner = positions[given.pair_codes >= 0]
        gains[inner] += edges[inner, worst.pair_codes[inner]]
        gains[inner] -= edges[inner, given.pair_codes[inner]]
    return gains


def _arcs_taken(targets: Targets) -> NDArray[np.int32]:
    """Arc into each position, (N,), as an index into all arcs; -1 if there is none."""
    if targets.automaton is None:
        return targets.pair_codes
    return targets.automaton.arcs_taken(targets.codes, targets.offsets)


def _add_counts(
    counts: NDArray[np.float64],
    codes: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
    sign: float,
) -> None:
    """Add to ``counts`` (N, n_outputs) what each position counts at its code; -1 is nothing."""
    positions = np.flatnonzero(codes >= 0)
    counts[positions, codes[positions]] += sign if weights is None else sign * weights[positions]
