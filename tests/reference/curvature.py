"""Curvature of one short chain, literally as Chen et al. (2015) write it."""

import itertools
from dataclasses import dataclass

import numpy as np

from reference.automata import PatternChain, enumerate_patterns


@dataclass
class Chain:
    """One sequence of first order: nodes (T, K), arcs (K, K), edges (T, K, K) or None."""

    nodes: np.ndarray
    arcs: np.ndarray
    edges: np.ndarray | None = None

    def enumerate(self):
        pairs = list(itertools.product(range(len(self.arcs)), repeat=2))
        return enumerate_patterns(
            PatternChain(self.nodes, pairs, self.arcs.ravel(), edges=self.edges)
        )


def probabilities(chain):
    """All labellings, (n, T), and their probabilities, (n,)."""
    exact = chain.enumerate()
    return exact.chain.labellings, exact.probs


def node_events(labellings, n_labels):
    """Which labelling has which label where, (n, T * K)."""
    events = labellings[:, :, None] == np.arange(n_labels)
    return events.reshape(len(labellings), -1).astype(float)


def pair_events(labellings, n_labels):
    """Which labelling has which pair of neighbours where, (n, (T - 1) * K * K)."""
    pairs = labellings[:, :-1] * n_labels + labellings[:, 1:]
    events = pairs[:, :, None] == np.arange(n_labels**2)
    return events.reshape(len(labellings), -1).astype(float)


def absolute_row_sums(events, probs):
    """sum_j |H_ij| and H_ii of all events i, H being their covariance matrix (Eq. 5)."""
    marginals = probs @ events
    hessian = (events.T * probs) @ events - np.outer(marginals, marginals)
    return np.abs(hessian).sum(axis=1), np.diag(hessian)


def exact_gammas(chain):
    """(T, K): sum_j |H_ij| / H_ii, and H_ii."""
    n_labels = chain.nodes.shape[1]
    labellings, probs = probabilities(chain)
    sums, diagonal = absolute_row_sums(node_events(labellings, n_labels), probs)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (sums / diagonal).reshape(chain.nodes.shape), diagonal.reshape(chain.nodes.shape)


def mixing_rate(conditionals):
    """1 - sum_j min_i P(j | i); the rows are possible i."""
    return np.clip(1 - conditionals.min(axis=0).sum(), 0, 1)


def to_next(chain):
    """(T - 1,) alpha_{t,t+1}, from the chain that begins at t, whatever comes before."""
    rates = []
    for t in range(len(chain.nodes) - 1):
        following = weights_after(chain, t + 1)
        table = np.exp(arcs_into(chain, t + 1)) * following
        rows = table[np.isfinite(chain.nodes[t]) & (table.sum(axis=1) > 0)]
        rates.append(mixing_rate(rows / rows.sum(axis=1, keepdims=True)))
    return np.array(rates)


def arcs_into(chain, t):
    """(K, K) scores of the label pairs that end at t."""
    return chain.arcs if chain.edges is None else chain.arcs + chain.edges[t]


def weights_after(chain, t):
    """(K,) sum over all labels after t of exp(score) of y_t and what follows."""
    n_positions, n_labels = chain.nodes.shape
    weights = np.zeros(n_labels)
    for labels in itertools.product(range(n_labels), repeat=n_positions - t):
        score = sum(chain.nodes[t + s, k] for s, k in enumerate(labels))
        pairs = enumerate(itertools.pairwise(labels), start=t + 1)
        score += sum(arcs_into(chain, s)[j, k] for s, (j, k) in pairs)
        weights[labels[0]] += np.exp(score)
    return weights


def mixing_gammas(chain):
    """Node gammas (T,) and edge gammas (T,), 0 at the first, as sums of products of rates."""
    n_positions = len(chain.nodes)
    ahead = to_next(chain)
    turned = None
    if chain.edges is not None:  # pair (t-1, t) of T positions becomes (T-1-t, T-t)
        turned = np.roll(chain.edges[::-1].transpose(0, 2, 1), 1, axis=0)
    mirrored = type(chain)(chain.nodes[::-1], chain.arcs.T, turned)
    behind = to_next(mirrored)[::-1]  # [t]: alpha_{t+1,t}

    def reach_ahead(t):
        return sum(np.prod(ahead[t:s]) for s in range(t + 1, n_positions))

    def reach_behind(t):
        return sum(np.prod(behind[s:t]) for s in range(t))

    nodes = [2 * (1 + reach_ahead(t) + reach_behind(t)) for t in range(n_positions)]
    edges = [
        min(2 * (n_positions - 1), 2 * (3 + reach_behind(t - 1) + reach_ahead(t)))
        for t in range(1, n_positions)
    ]
    return np.array(nodes), np.array([0.0, *edges])
