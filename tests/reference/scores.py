"""Shortcuts for scores with the trellises of the library, and slopes of objectives."""

from types import SimpleNamespace

import numpy as np

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


def slopes_of(objective, scores, targets, n_threads=1, out=None):
    """Loss and slopes."""
    found = objective.measure(scores, targets, n_threads=n_threads, out=out)
    return SimpleNamespace(loss=found.loss, **vars(found.slopes(out)))
