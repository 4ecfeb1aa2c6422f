"""Batches of short sequences over label automata, drawn by Hypothesis."""

import itertools
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hedgerow.labels import Constraints, Patterns, pin_known
from hedgerow.labels.automaton import Automaton
from hedgerow.trellis import Scores
from reference.automata import PatternChain
from reference.scores import scores_of


@dataclass
class Batch:
    """Sequences that share their patterns, and the automaton that scores them."""

    chains: list
    automaton: Automaton
    potentials: Scores

    @classmethod
    def of(cls, chains, n_labels):
        """Forbidden pairs become patterns with the score -inf, other constraints nodes with that
        score."""
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
        return cls(chains, automaton, scores_of(nodes, arcs, offsets, edges, automaton))

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


def graded(rng, *shape):
    """Numbers of all sizes up to 1e5, in steps that add up without rounding."""
    sizes = rng.choice([-1.0, 1.0], shape) * 10 ** rng.uniform(-1, 5, shape)
    return np.round(64 * sizes) / 64


def graded_or_forbidden(rng, *shape):
    return np.where(rng.random(shape) < 0.1, -np.inf, graded(rng, *shape))


def of_one_magnitude(rng, *shape):
    """Numbers around some multiples of one magnitude, in steps that add up without rounding.

    Those of a few hundred are hard cases: products of their exponentials are near the limits of a
    double, just before the kernels switch to log space.
    """
    magnitude = rng.choice([0, 1, 30, 100, 200, 247, 300, 340, 500, 700, 745, 1e3, 1e4, 1e5])
    signs = rng.choice([-1, 0, 1], rng.integers(1, 4), replace=False)
    return magnitude * rng.choice(signs, shape) + rng.integers(-128, 129, shape) / 64


# Strategies for finite scores, by name.
SCORES = {
    "moderate": (moderate, moderate),
    "extreme": (extreme, extreme),
    "extreme_or_forbidden": (extreme_or_forbidden, extreme),
    "graded_or_forbidden": (graded_or_forbidden, graded),
}


@st.composite
def batch_cases(draw, scores="moderate", edges=None, constrained=True, longest=6, most_labels=3):
    """A few short sequences as plain values, with patterns and constraints of all kinds."""
    n_labels = draw(st.integers(1, most_labels))
    labels = st.integers(0, n_labels - 1)
    patterns = draw(st.lists(st.lists(labels, min_size=1, max_size=4), max_size=6))
    lengths = draw(st.lists(st.integers(0, longest), min_size=1, max_size=5))
    every = list(range(n_labels))
    case = {
        "scores": scores,
        "n_labels": n_labels,
        "patterns": patterns,
        "seed": draw(st.integers(0, 2**32 - 1)),
        "edges": draw(st.booleans()) if edges is None else edges,
        "forbidden": [],
        "start": every,
        "end": every,
    }
    known = st.just(-1)
    if constrained and draw(st.booleans()):
        some = st.just(every) | st.lists(labels, min_size=1, unique=True)
        pairs = st.tuples(labels, labels).map(list)
        case["forbidden"] = draw(st.lists(pairs, min_size=1, max_size=3))
        case["start"], case["end"] = draw(some), draw(some)
        known = st.just(-1) | st.just(-1) | labels
    case["known"] = [draw(st.lists(known, min_size=n, max_size=n)) for n in lengths]
    return case


def make_batch(case, kind=None):
    """The sequences of a case; `kind` replaces the strategy of `SCORES`."""
    rng = np.random.default_rng(case["seed"])
    scores, finite = SCORES[case["scores"]] if kind is None else kind
    n_labels, patterns = case["n_labels"], list(map(tuple, case["patterns"]))
    weights = scores(rng, len(patterns))
    chains = [
        PatternChain(
            nodes=scores(rng, len(known), n_labels),
            patterns=patterns,
            weights=weights,
            edges=finite(rng, len(known), n_labels, n_labels) if case["edges"] else None,
            forbidden=frozenset(map(tuple, case["forbidden"])),
            start=frozenset(case["start"]),
            end=frozenset(case["end"]),
            known=tuple(known),
        )
        for known in case["known"]
    ]
    return Batch.of(chains, n_labels)
