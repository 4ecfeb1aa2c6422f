"""Everything about a short chain, by listing all its labellings."""

import itertools
from dataclasses import dataclass

import numpy as np


@dataclass
class Chain:
    """One sequence: nodes (T, K), arcs (K, K), edges (T, K, K) or None."""

    nodes: np.ndarray
    arcs: np.ndarray
    edges: np.ndarray | None = None

    def arc(self, t, before, label):
        extra = 0.0 if self.edges is None else self.edges[t, before, label]
        return self.arcs[before, label] + extra

    def score(self, labels):
        total = sum(self.nodes[t, k] for t, k in enumerate(labels))
        pairs = itertools.pairwise(labels)
        return total + sum(self.arc(t, j, k) for t, (j, k) in enumerate(pairs, start=1))

    def labellings(self):
        n_positions, n_labels = self.nodes.shape
        return list(itertools.product(range(n_labels), repeat=n_positions))


@dataclass
class Enumeration:
    """The exact answers for a chain."""

    log_z: float
    marginals: np.ndarray
    pairs: np.ndarray
    log_probs: dict
    best_score: float


def enumerate_chain(chain):
    labellings = chain.labellings()
    scores = np.array([chain.score(y) for y in labellings])
    highest = scores.max()
    log_z = highest + np.log(np.exp(scores - highest).sum())
    probs = np.exp(scores - highest)
    probs /= probs.sum()
    n_positions, n_labels = chain.nodes.shape
    marginals = np.zeros((n_positions, n_labels))
    pairs = np.zeros((n_positions, n_labels, n_labels))
    for labels, prob in zip(labellings, probs, strict=True):
        for t, k in enumerate(labels):
            marginals[t, k] += prob
            if t > 0:
                pairs[t, labels[t - 1], k] += prob
    log_probs = dict(zip(labellings, scores - log_z, strict=True))
    return Enumeration(log_z, marginals, pairs, log_probs, highest)
