"""Chains with label patterns of any length: by enumeration, or state by state."""

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np


@dataclass
class PatternChain:
    """One sequence of T positions over K labels.

    nodes (T, K), patterns as P tuples of labels, weights (P,) or by the position where a pattern
    ends (T, P), edges (T, K, K) or None. Forbidden are some pairs; labels not in `start` and `end`,
    if given, at both ends; and, where `known` (T,) is not -1, all labels but the known one.
    """

    nodes: np.ndarray
    patterns: list
    weights: np.ndarray
    edges: np.ndarray | None = None
    forbidden: frozenset = frozenset()
    start: frozenset | None = None
    end: frozenset | None = None
    known: tuple | None = None
    more: np.ndarray | None = None  # (K**T,) additional scores of labellings

    @property
    def labellings(self):
        """All of them, (K**T, T), in the order of their codes."""
        return list_labellings(*self.nodes.shape)

    def windows(self, t, length):
        """The last labels up to t, as a number in base K, for each labelling: (K**T,)"""
        digits = self.nodes.shape[1] ** np.arange(length)[::-1]
        return self.labellings[:, t + 1 - length : t + 1] @ digits

    def weights_at(self, t):
        """Weights of the patterns that end at t, (P,)."""
        return self.weights if np.ndim(self.weights) == 1 else self.weights[t]

    @cached_property
    def pattern_windows(self):
        """For each pattern its length, and the value of `windows` where it ends: (P, 2)."""
        n_labels = self.nodes.shape[1]
        numbers = [sum(k * n_labels**n for n, k in enumerate(z[::-1])) for z in self.patterns]
        return np.array([*zip(map(len, self.patterns), numbers, strict=True)]).reshape(-1, 2)

    @cached_property
    def allowed(self):
        """Whether each labelling is allowed, (K**T,)."""
        every, n_labels = self.labellings, self.nodes.shape[1]
        found = np.ones(len(every), dtype=bool)
        if not every.shape[1]:
            return found
        for place, labels in ((0, self.start), (-1, self.end)):
            if labels is not None:
                found &= np.isin(every[:, place], list(labels))
        pairs = np.array([j * n_labels + k for j, k in self.forbidden])
        for t in range(1, every.shape[1]):
            found &= ~np.isin(self.windows(t, 2), pairs)
        for t, code in enumerate(() if self.known is None else self.known):
            found &= (code == -1) | (every[:, t] == code)
        return found

    def scores(self):
        """Scores of all labellings, (K**T,)."""
        every = self.labellings
        n_positions, n_labels = self.nodes.shape
        positions = np.arange(n_positions)
        total = self.nodes[positions, every].sum(axis=1)
        for length in set(map(len, self.patterns)):
            lengths, windows = self.pattern_windows.T
            own = lengths == length
            for t in range(length - 1, n_positions):
                by_window = np.bincount(windows[own], self.weights_at(t)[own], n_labels**length)
                total += by_window[self.windows(t, length)]
        if self.edges is not None:
            total += self.edges[positions[1:], every[:, :-1], every[:, 1:]].sum(axis=1)
        if self.more is not None:
            total += self.more
        return np.where(self.allowed, total, -np.inf)


@cache
def list_labellings(length, n_labels):
    """All labellings of a length, (K**T, T), in the order of their codes; read-only."""
    every = list(itertools.product(range(n_labels), repeat=length))
    labellings = np.array(every, dtype=np.int64).reshape(len(every), length)
    labellings.flags.writeable = False
    return labellings


class Enumeration:
    """Exact results for a chain that has a labelling, computed on demand."""

    def __init__(self, chain, scores):
        self.chain = chain
        self.scores = scores  # (K**T,)
        masses = np.exp(scores - scores.max())
        self.log_z = scores.max() + np.log(masses.sum())
        self.probs = masses / masses.sum()  # (K**T,)

    def _sum_windows(self, t, length):
        """Probability of each window of labels up to t, (K**length,)."""
        n_windows = self.chain.nodes.shape[1] ** length
        return np.bincount(self.chain.windows(t, length), self.probs, n_windows)

    @cached_property
    def marginals(self):
        """(T, K)"""
        rows = [self._sum_windows(t, 1) for t in range(len(self.chain.nodes))]
        return np.array(rows).reshape(self.chain.nodes.shape)

    @cached_property
    def pairs(self):
        """(T, K, K)"""
        n_positions, n_labels = self.chain.nodes.shape
        found = np.zeros((n_positions, n_labels, n_labels))
        for t in range(1, n_positions):
            found[t] = self._sum_windows(t, 2).reshape(n_labels, n_labels)
        return found

    @cached_property
    def pattern_marginals(self):
        """(T, P) of the pattern that ends at t"""
        lengths, windows = self.chain.pattern_windows.T
        found = np.zeros((len(self.chain.nodes), len(lengths)))
        for length in set(lengths.tolist()):
            for t in range(length - 1, len(found)):
                sums = self._sum_windows(t, length)
                found[t, lengths == length] = sums[windows[lengths == length]]
        return found

    @cached_property
    def log_probs(self):
        """Log probability of every labelling, by its codes."""
        every = map(tuple, self.chain.labellings.tolist())
        return dict(zip(every, self.scores - self.log_z, strict=True))

    @cached_property
    def best(self):
        """(score, labels) of all allowed labellings, best first."""
        order = np.argsort(-self.scores, kind="stable")
        order = order[self.scores[order] > -np.inf]
        every = map(tuple, self.chain.labellings[order].tolist())
        return list(zip(self.scores[order].tolist(), every, strict=True))


def enumerate_patterns(chain):
    """The enumeration, or None if everything is forbidden."""
    scores = chain.scores()
    return None if scores.max() == -np.inf else Enumeration(chain, scores)


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
    """Draw labels: the first whose cumulated probability, given those before, exceeds a number."""
    scores = chain.scores()
    agree, labels = scores > -np.inf, []
    for t, uniform in enumerate(uniforms):
        options = [agree & (chain.labellings[:, t] == k) for k in range(chain.nodes.shape[1])]
        masses = [np.logaddexp.reduce(scores[some], initial=-np.inf) for some in options]
        shares = np.exp(masses - np.logaddexp.reduce(masses))
        labels.append(int((np.cumsum(shares) > uniform).argmax()))
        agree = options[labels[-1]]
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
        """Score of every arc: the sum over all patterns that its string ends in."""
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
    scaled, so that precision is not lost over thousands of positions.
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
