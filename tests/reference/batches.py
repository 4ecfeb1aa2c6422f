"""Batches of short sequences over label automata, drawn by Hypothesis."""

import itertools
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hedgerow.labels import Constraints, Patterns, pin_known
from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import Potentials
from reference.automata import PatternChain


@dataclass
class Batch:
    """Sequences that share their patterns, and the automaton that scores them."""

    chains: list
    automaton: Automaton
    potentials: Potentials

    @classmethod
    def of(cls, chains, n_labels):
        """Forbidden pairs become patterns of the score -inf, all else nodes of that score."""
        one = chains[0]
        extra = [(pair, -np.inf) for pair in one.forbidden]
        if one.edges is not None:
            extra += [(pair, 0.0) for pair in Patterns.pairs(n_labels)]
        automaton = Automaton.build(n_labels, [*one.patterns, *(pattern for pattern, _ in extra)])
        arcs = automaton.arc_scores([*one.weights, *(score for _, score in extra)])
        offsets = np.cumsum([0, *(len(chain.nodes) for chain in chains)])
        nodes = np.concatenate([chain.nodes for chain in chains])
        pin_known(nodes, np.concatenate([chain.known for chain in chains]).astype(np.int32))
        flags = [np.isin(np.arange(n_labels), list(group)) for group in (one.start, one.end)]
        Constraints(np.ones((n_labels, n_labels), np.bool_), *flags).restrict(nodes, offsets)
        edges = None
        if one.edges is not None:
            edges = np.concatenate([chain.edges for chain in chains])
        return cls(chains, automaton, Potentials(nodes, arcs, offsets, edges, automaton))

    @property
    def n_patterns(self):
        return len(self.chains[0].patterns)

    def parts(self):
        """Positions of each sequence."""
        return itertools.starmap(slice, itertools.pairwise(self.potentials.offsets))


def moderate(rng, *shape):
    return 2 * rng.normal(size=shape)


def extreme(rng, *shape):
    """Huge and tiny numbers, in steps that add up without rounding."""
    huge = rng.choice([1e2, -1e2, 8e2, -8e2, 1e5, -1e5], shape)
    return np.where(rng.random(shape) < 0.3, huge, rng.integers(-320, 321, shape) / 64)


def extreme_or_forbidden(rng, *shape):
    return np.where(rng.random(shape) < 0.2, -np.inf, extreme(rng, *shape))


@st.composite
def batches(draw, scores=moderate, edges=None, constrained=True, longest=6):
    """A few short sequences, with patterns and constraints of all kinds."""
    n_labels = draw(st.integers(1, 3))
    labels = st.integers(0, n_labels - 1)
    patterns = draw(st.lists(st.lists(labels, min_size=1, max_size=4).map(tuple), max_size=6))
    lengths = draw(st.lists(st.integers(0, longest), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = scores(rng, len(patterns))
    has_edges = draw(st.booleans()) if edges is None else edges
    every = frozenset(range(n_labels))
    forbidden, start, end, known = frozenset(), every, every, st.just(-1)
    if constrained and draw(st.booleans()):
        forbidden = draw(st.frozensets(st.tuples(labels, labels), min_size=1, max_size=3))
        start = draw(st.just(every) | st.frozensets(labels, min_size=1))
        end = draw(st.just(every) | st.frozensets(labels, min_size=1))
        known = st.just(-1) | st.just(-1) | labels
    finite = extreme if scores is extreme_or_forbidden else scores
    chains = [
        PatternChain(
            nodes=scores(rng, length, n_labels),
            patterns=patterns,
            weights=weights,
            edges=finite(rng, length, n_labels, n_labels) if has_edges else None,
            forbidden=forbidden,
            start=start,
            end=end,
            known=tuple(draw(st.lists(known, min_size=length, max_size=length))),
        )
        for length in lengths
    ]
    return Batch.of(chains, n_labels)
