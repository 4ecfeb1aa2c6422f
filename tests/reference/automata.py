"""Chains with label patterns of any length: by listing all labellings, and as the paper does it.

The paper is Ye, Lee, Chieu and Wu (2009), Conditional Random Fields with High-Order Features for
Sequence Labeling.
"""

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass
class PatternChain:
    """One sequence of T positions over K labels.

    nodes (T, K), patterns as P tuples of labels, weights (P,), edges (T, K, K) or None. Forbidden
    are some pairs; labels not in `start` and `end`, if given, at both ends; and, where `known` (T,)
    is not -1, all labels but the known one.
    """

    nodes: np.ndarray
    patterns: list
    weights: np.ndarray
    edges: np.ndarray | None = None
    forbidden: frozenset = frozenset()
    start: frozenset | None = None
    end: frozenset | None = None
    known: tuple | None = None

    @cached_property
    def labellings(self):
        """All of them, (K**T, T), in the order of their codes."""
        n_positions, n_labels = self.nodes.shape
        every = list(itertools.product(range(n_labels), repeat=n_positions))
        return np.array(every, dtype=np.int64).reshape(len(every), n_positions)

    @cached_property
    def occurrences(self):
        """Whether pattern p ends at position t of labelling i, (K**T, T, P)."""
        every = self.labellings
        found = np.zeros((*every.shape, len(self.patterns)), dtype=bool)
        for p, pattern in enumerate(self.patterns):
            for t in range(len(pattern) - 1, every.shape[1]):
                found[:, t, p] = (every[:, t + 1 - len(pattern) : t + 1] == pattern).all(axis=1)
        return found

    @cached_property
    def allowed(self):
        """Whether a labelling has nothing forbidden, (K**T,)."""
        return np.array([self._allows(labels) for labels in self.labellings.tolist()])

    def _allows(self, labels):
        return (
            not any(pair in self.forbidden for pair in itertools.pairwise(labels))
            and (self.start is None or not labels or labels[0] in self.start)
            and (self.end is None or not labels or labels[-1] in self.end)
            and (
                self.known is None
                or all(code in (-1, k) for code, k in zip(self.known, labels, strict=True))
            )
        )

    def scores(self):
        """Of all labellings, (K**T,)."""
        every = self.labellings
        positions = np.arange(len(self.nodes))
        total = self.nodes[positions, every].sum(axis=1)
        total += np.where(self.occurrences, self.weights, 0.0).sum(axis=(1, 2))
        if self.edges is not None:
            total += self.edges[positions[1:], every[:, :-1], every[:, 1:]].sum(axis=1)
        return np.where(self.allowed, total, -np.inf)


@dataclass
class Enumeration:
    """The exact answers for a chain that has a labelling."""

    log_z: float
    marginals: np.ndarray  # (T, K)
    pattern_marginals: np.ndarray  # (T, P) of the pattern that ends at t
    pairs: np.ndarray  # (T, K, K)
    log_probs: dict  # of every labelling
    best: list  # (score, labels) of all labellings that are allowed, best first


def enumerate_patterns(chain):
    """All there is to know, or None if everything is forbidden."""
    scores = chain.scores()
    highest = scores.max()
    if highest == -np.inf:
        return None
    masses = np.exp(scores - highest)
    log_z = highest + np.log(masses.sum())
    probs = masses / masses.sum()
    n_positions, n_labels = chain.nodes.shape
    marginals = np.zeros((n_positions, n_labels))
    pairs = np.zeros((n_positions, n_labels, n_labels))
    every = list(map(tuple, chain.labellings.tolist()))
    for labels, prob in zip(every, probs.tolist(), strict=True):
        for t, k in enumerate(labels):
            marginals[t, k] += prob
            if t > 0:
                pairs[t, labels[t - 1], k] += prob
    return Enumeration(
        log_z=log_z,
        marginals=marginals,
        pattern_marginals=np.einsum("i,itp->tp", probs, chain.occurrences),
        pairs=pairs,
        log_probs=dict(zip(every, scores - log_z, strict=True)),
        best=sorted(
            (pair for pair in zip(scores.tolist(), every, strict=True) if pair[0] > -np.inf),
            key=lambda pair: (-pair[0], pair[1]),
        ),
    )


def weighted_log_likelihood(chain, labels, weights):
    """sum_t w_t log P(y_t | y_0 .. y_{t-1}), each probability a sum over all labellings."""
    scores = chain.scores()
    agree = np.ones(len(scores), dtype=bool)
    before = np.logaddexp.reduce(scores)
    total = 0.0
    for t, (label, weight) in enumerate(zip(labels, weights, strict=True)):
        agree &= chain.labellings[:, t] == label
        now = np.logaddexp.reduce(scores[agree])
        total += weight * (now - before)
        before = now
    return total


def draw_labels(chain, uniforms):
    """Each label the first whose cumulated probability, given those before, exceeds a number."""
    probs = np.exp(chain.scores() - chain.scores().max())
    agree = np.ones(len(probs), dtype=bool)
    labels = []
    for t, uniform in enumerate(uniforms):
        options = range(chain.nodes.shape[1])
        masses = [probs[agree & (chain.labellings[:, t] == k)].sum() for k in options]
        labels.append(int((np.cumsum(masses) / np.sum(masses) > uniform).argmax()))
        agree &= chain.labellings[:, t] == labels[-1]
    return labels


class NaiveAutomaton:
    """The automaton of some patterns, by its definition; strings are tuples of labels."""

    def __init__(self, n_labels, patterns):
        self.patterns = list(patterns)
        singles = {(k,) for k in range(n_labels)}
        prefixes = {z[:n] for z in self.patterns for n in range(1, len(z))}
        self.states = _number({(), *singles, *prefixes})
        self.arcs = _number({*singles, *prefixes, *self.patterns})

    def longest_state(self, string):
        """The longest suffix of a string that is a state."""
        return next(q for q in _suffixes(string) if q in self.states)

    def longest_arc(self, string):
        """The longest suffix of a string that is an arc, None if there is none."""
        return next((a for a in _suffixes(string) if a in self.arcs), None)

    def arc_scores(self, weights):
        """Of every arc the sum over all patterns that its string ends in."""
        by_pattern = defaultdict(float)
        for z, weight in zip(self.patterns, weights, strict=True):
            by_pattern[z] += weight
        return [sum(by_pattern.get(z, 0.0) for z in _suffixes(arc)) for arc in self.arcs]


def _number(strings):
    """Strings, the shorter ones first, and their numbers."""
    in_order = sorted(strings, key=lambda string: (len(string), string))
    return {string: number for number, string in enumerate(in_order)}


def _suffixes(string):
    """From the whole string to the empty one."""
    return (string[i:] for i in range(len(string) + 1))


class DenseChain:
    """A long sequence over all states and labels of an automaton, in log space.

    ``targets`` and ``scores`` (S, K) are the state reached and the score of the arc taken; rows are
    scaled, so that no digits are lost over thousands of positions.
    """

    def __init__(self, n_labels, patterns, weights, nodes):
        naive = NaiveAutomaton(n_labels, patterns)
        arc_scores = naive.arc_scores(weights)
        self.nodes = nodes
        self.targets = np.empty((len(naive.states), n_labels), dtype=np.int64)
        self.scores = np.empty(self.targets.shape)
        for (state, q), k in itertools.product(naive.states.items(), range(n_labels)):
            self.targets[q, k] = naive.states[naive.longest_state((*state, k))]
            self.scores[q, k] = arc_scores[naive.arcs[naive.longest_arc((*state, k))]]
        self.last_labels = np.array([state[-1] if state else -1 for state in naive.states])
        # Arcs by the state they lead to, for sums over them.
        self.order = np.argsort(self.targets, axis=None, kind="stable")
        self.reached, self.firsts = np.unique(self.targets.ravel()[self.order], return_index=True)

        self.alpha, self.log_z = self.forward(np.logaddexp)
        self.beta = self.backward()

    def forward(self, add):
        """alpha (T, S), each row less its maximum, and log Z; with np.maximum the best score."""
        alpha = np.full(len(self.targets), -np.inf)
        alpha[0] = 0.0
        rows, shifts = [], []
        for node in self.nodes:
            steps = (alpha[:, None] + self.scores + node).ravel()[self.order]
            alpha = np.full(len(self.targets), -np.inf)
            alpha[self.reached] = add.reduceat(steps, self.firsts)
            shifts.append(alpha.max())
            alpha -= shifts[-1]
            rows.append(alpha)
        return np.array(rows), math.fsum(shifts) + add.reduce(alpha)

    def backward(self):
        """beta (T, S), each row less its maximum."""
        beta = np.zeros(len(self.targets))
        rows = [beta]
        for node in self.nodes[:0:-1]:
            beta = np.logaddexp.reduce(self.scores + node + beta[self.targets], axis=1)
            beta -= beta.max()
            rows.append(beta)
        return np.array(rows[::-1])

    def marginals(self):
        """(T, K)"""
        joint = self.alpha + self.beta
        probs = np.exp(joint - joint.max(axis=1, keepdims=True))
        probs /= probs.sum(axis=1, keepdims=True)
        labels = range(self.nodes.shape[1])
        return np.stack([probs[:, self.last_labels == k].sum(axis=1) for k in labels], axis=1)

    def sample(self, uniforms):
        """Each label the first whose cumulated probability exceeds a uniform number."""
        state, labels = 0, []
        for t, uniform in enumerate(uniforms):
            scores = self.scores[state] + self.nodes[t] + self.beta[t, self.targets[state]]
            probs = np.exp(scores - scores.max())
            labels.append(int((np.cumsum(probs / probs.sum()) > uniform).argmax()))
            state = self.targets[state, labels[-1]]
        return labels


class PaperInference:
    """Section 3.1 of the paper, with its letters and with positions from 1 to T.

    Some slips are put right: S holds proper suffixes, to which labels are prepended; Psi takes all
    suffixes and prefixes, not the longest; W holds what lies strictly within z; of [p, z, s] the
    last part begins at the label |z| of s; and O counts what covers z at its own place.
    """

    def __init__(self, chain):
        self.n_positions, n_labels = chain.nodes.shape
        self.labels = [(k,) for k in range(n_labels)]
        # lambda * g(x, t) of each pattern z, for t = 1 .. T; t = 0 is not used.
        self.features = defaultdict(lambda: np.zeros(self.n_positions + 1))
        for (k,) in self.labels:
            self.features[k,][1:] += chain.nodes[:, k]
        if chain.edges is not None:
            for j, k in itertools.product(range(n_labels), repeat=2):
                self.features[j, k][1:] += chain.edges[:, j, k]
        for z, weight in zip(chain.patterns, chain.weights, strict=True):
            self.features[z][1:] += weight
        self.P = {(), *self.labels, *(z[:n] for z in self.features for n in range(len(z)))}
        self.S = {(), *self.labels, *(z[n:] for z in self.features for n in range(1, len(z)))}
        self.alpha, self.beta = self._forward(), self._backward()
        self.Z = sum(self.alpha[self.n_positions].values())

    def _forward(self):
        """alpha(t, p) = sum of Psi(t, p' y) alpha(t-1, p'); p is the longest suffix of p' y."""
        alpha = {0: {(): 1.0}}
        for t in range(1, self.n_positions + 1):
            alpha[t] = defaultdict(float)
            for p, value in alpha[t - 1].items():
                for y in self.labels:
                    longest = next(q for q in _suffixes(p + y) if q in self.P)
                    alpha[t][longest] += self._psi_p(t, p + y) * value
        return alpha

    def _backward(self):
        """beta(t, s) = sum of Psi(t, y s') beta(t+1, s'); s is the longest prefix of y s'."""
        beta = {self.n_positions + 1: {(): 1.0}}
        for t in range(self.n_positions, 0, -1):
            beta[t] = defaultdict(float)
            for s, value in beta[t + 1].items():
                for y in self.labels:
                    whole = y + s
                    longest = max((q for q in self.S if whole[: len(q)] == q), key=len)
                    beta[t][longest] += self._psi_s(t, whole) * value
        return beta

    def _psi_p(self, t, p):
        return np.exp(sum(g[t] for z, g in self.features.items() if p[-len(z) :] == z))

    def _psi_s(self, t, s):
        found = (z for z in self.features if s[: len(z)] == z)
        return np.exp(sum(self.features[z][t + len(z) - 1] for z in found))

    def _occurrences(self, string):
        """Patterns in a string: (pattern, place j of its last label, counted from 1)."""
        return [
            (z, j)
            for z in self.features
            for j in range(len(z), len(string) + 1)
            if string[j - len(z) : j] == z
        ]

    def _w(self, t, z):
        """W: patterns strictly within z, which alpha and beta both count."""
        inner = self._occurrences(z[1:-1])
        return np.exp(sum(self.features[part][t - len(z) + j + 1] for part, j in inner))

    def _o(self, t, p, s, z):
        """O: patterns that cover z in [p, z, s], which neither alpha nor beta counts."""
        first = len(p) - (len(z) - 1)
        whole = p[:first] + z + s[len(z) - 1 :]
        return np.exp(
            sum(
                self.features[part][t - len(p) + j - 1]
                for part, j in self._occurrences(whole)
                if j - len(part) <= first and j >= first + len(z)
            )
        )

    def marginal(self, t, z):
        """P(y_{t-|z|+1:t} = z)"""
        if t < len(z):
            return 0.0
        total = sum(
            forward * backward * self._o(t, p, s, z)
            for p, forward in self.alpha[t - 1].items()
            for s, backward in self.beta[t - len(z) + 2].items()
            if p[len(p) - (len(z) - 1) :] == z[:-1] and s[: len(z) - 1] == z[1:]
        )
        return total / (self.Z * self._w(t, z))


def free_chain(nodes, patterns, weights):
    """One sequence in which nothing is forbidden."""
    every = frozenset(range(nodes.shape[1]))
    known = (-1,) * len(nodes)
    return PatternChain(nodes, patterns, np.array(weights), start=every, end=every, known=known)


def arc_marginals(automaton, chain, exact):
    """Probability of each arc at each position, (T, A), over all labellings."""
    every = chain.labellings
    offsets = np.arange(len(every) + 1) * every.shape[1]
    taken = automaton.arcs_taken(every.ravel().astype(np.int32), offsets).reshape(every.shape)
    probs = np.exp(list(exact.log_probs.values()))
    found = np.zeros((every.shape[1], automaton.n_arcs))
    for t in range(every.shape[1]):
        np.add.at(found[t], taken[:, t], probs)
    return found
