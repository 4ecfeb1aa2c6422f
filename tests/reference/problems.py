"""Three short sequences with scores over every kind of trellis, and targets for objectives."""

from itertools import pairwise, product

import numpy as np

from hedgerow.labels.automaton import Automaton
from reference.automata import PatternChain
from reference.scores import scores_of, targets_of

OFFSETS = np.array([0, 4, 5, 8])
RNG = np.random.default_rng(0)
KNOWN = RNG.integers(0, 3, 8).astype(np.int32)
# A partly labelled sequence, an unlabelled one, and a fully labelled one.
PARTIAL = np.array([2, -1, -1, 0, -1, 0, 2, 1], dtype=np.int32)
# Codes of labels, and how they are weighted.
TARGETS = {
    "all known": (KNOWN, {}),
    "sequence weights": (KNOWN, {"sequence_weights": np.array([2.0, 0.0, 0.5])}),
    "position weights": (KNOWN, {"position_weights": RNG.uniform(0, 3, 8)}),
    "some known": (PARTIAL, {}),
    "some known, sequence weights": (PARTIAL, {"sequence_weights": np.array([2.0, 0.7, 0.5])}),
}
PAIRS = list(product(range(3), repeat=2))
SOME = [(0, 1), (2, 0), (1, 1), (0, 2, 1), (2, 0, 0, 2)]
# Patterns, whether there are scores of edges.
FORMS = {
    "arcs": (PAIRS, False),
    "edges": (PAIRS, True),
    "automaton": (SOME, False),
    "automaton, edges": ([*PAIRS, *SOME[3:]], True),
}


def make_problem(form, case=(KNOWN, {}), scale=1.0, forbidden=None):
    """Scores, targets, and the chains that the oracles work on; some nodes may be forbidden."""
    rng = np.random.default_rng(1)
    (patterns, has_edges), (codes, weighting) = form, case
    nodes, weights = scale * rng.normal(size=(8, 3)), scale * rng.normal(size=len(patterns))
    edges = scale * rng.normal(size=(8, 3, 3)) if has_edges else None
    if forbidden is not None:
        nodes[forbidden] = -np.inf
    automaton = None if patterns is PAIRS else Automaton.build(3, patterns)
    arcs = weights.reshape(3, 3) if automaton is None else automaton.arc_scores(weights)
    chains = [
        PatternChain(nodes[a:b], patterns, weights, None if edges is None else edges[a:b])
        for a, b in pairwise(OFFSETS)
    ]
    targets = targets_of(OFFSETS, codes, 3, automaton, **weighting)
    return scores_of(nodes, arcs, OFFSETS, edges, automaton), targets, chains


def central_differences(loss, array, step):
    """Central differences of a loss with respect to each number of an array."""
    slopes = np.empty(array.shape)
    for place in np.ndindex(array.shape):
        kept, ends = array[place], []
        for moved in (kept + step, kept - step):
            array[place] = moved
            ends.append(loss())
        array[place] = kept
        slopes[place] = (ends[0] - ends[1]) / (2 * step)
    return slopes
