"""Random batches for every kind of trellis, and all functions that accept them."""

from itertools import product

import numpy as np

from hedgerow.labels.automaton import Automaton, PatternArcs
from hedgerow.trellis import (
    forward_backward,
    k_best,
    log_likelihood,
    log_z,
    sample,
    tangent,
    viterbi,
    weighted_forward_backward,
)
from reference.scores import scores_of, trellis_of

# Of `random_batch`.
KINDS = {
    "chain": {},
    "one label": {"n_labels": 1},
    "26 labels": {"n_labels": 26},
    "edges": {"n_labels": 3, "edges": True},
    "automaton of pairs": {"n_labels": 3, "order": 2},
    "automaton": {"n_labels": 4, "order": 3},
    "automaton, edges": {"n_labels": 3, "order": 3, "edges": True},
}
# By name, with inputs of the right shapes.
FUNCTIONS = {
    "forward_backward": forward_backward,
    "log_z": log_z,
    "log_likelihood": lambda p: log_likelihood(p, np.zeros(len(p.nodes))),
    "weighted_forward_backward": lambda p: weighted_forward_backward(
        p, np.zeros(len(p.nodes)), np.ones(len(p.nodes))
    ),
    "tangent": lambda p: tangent(p, np.ones(np.shape(p.nodes)), np.ones(np.shape(p.nodes))),
    "viterbi": viterbi,
    "k_best": lambda p: k_best(p, 2),
    "sample": lambda p: sample(p, np.full((1, len(p.nodes)), 0.5)),
}


def random_batch(n_labels=5, order=1, n_sequences=23, edges=False):
    """Sequences of 0 to 59 positions, some of extreme scores; an arc may be forbidden.

    An automaton has an arc for all strings of up to ``order`` labels.
    """
    rng = np.random.default_rng(0)
    lengths = np.concatenate([[0, 1], rng.integers(1, 60, n_sequences - 2)])
    offsets = np.concatenate([[0], lengths.cumsum()])
    nodes = 2 * rng.normal(size=(offsets[-1], n_labels))
    for s in (2, 5, 17):  # need log space
        nodes[offsets[s] : offsets[s + 1]] *= 500
    strings = [z for n in range(2, order + 1) for z in product(range(n_labels), repeat=n)]
    automaton = Automaton.build(n_labels, strings) if order > 1 else None
    arcs = rng.normal(size=trellis_of(n_labels, automaton).arc_shape)
    if n_labels > 2:
        arcs.flat[-1] = -np.inf
    edge_scores = rng.normal(size=(len(nodes), n_labels, n_labels)) if edges else None
    return scores_of(nodes, arcs, offsets, edge_scores, automaton)


def all_arcs(scores):
    """Arcs as if each of them were a pattern that no other arc ends in."""
    n_arcs = np.size(scores.arcs)
    return PatternArcs(np.arange(n_arcs + 1, dtype=np.int64), np.arange(n_arcs, dtype=np.int32))
