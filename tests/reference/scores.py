"""Scores over the trellises that the library has, and slopes of objectives, in short."""

from itertools import product
from types import SimpleNamespace

import numpy as np

from hedgerow.labels.automaton import Automaton, PatternArcs
from hedgerow.objectives import Targets
from hedgerow.trellis import AutomatonChain, Chain, Scores


def trellis_of(n_labels, automaton=None):
    """First-order chains, or chains over an automaton."""
    return Chain(n_labels) if automaton is None else AutomatonChain(automaton)


def scores_of(nodes, arcs, offsets, edges=None, automaton=None):
    """Scores over the trellis of `trellis_of`."""
    return Scores(nodes, arcs, offsets, trellis_of(np.shape(nodes)[-1], automaton), edges)


def targets_of(offsets, codes, n_labels, automaton=None, **weights):
    """Targets over the trellis of `trellis_of`."""
    return Targets(offsets, codes, trellis_of(n_labels, automaton), **weights)


def every_arc(automaton):
    """Arcs as if each of them were a pattern that no other arc ends in."""
    arcs = np.arange(automaton.n_arcs, dtype=np.int32)
    return PatternArcs(np.arange(automaton.n_arcs + 1, dtype=np.int64), arcs)


def all_arcs(scores):
    """Arcs as if each of them were a pattern that no other arc ends in."""
    n_arcs = np.size(scores.arcs)
    return PatternArcs(np.arange(n_arcs + 1, dtype=np.int64), np.arange(n_arcs, dtype=np.int32))


def slopes_of(objective, scores, targets, n_threads=1, out=None):
    """Loss and slopes."""
    found = objective.measure(scores, targets, n_threads=n_threads, out=out)
    return SimpleNamespace(loss=found.loss, **vars(found.slopes(out)))


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
