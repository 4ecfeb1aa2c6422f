"""Derivatives of marginals along a direction: by listing all labellings, and as a paper does it."""

import numpy as np


def covariances(probs, gains):
    """Of an event and V, as a sum over the labellings of the event; and the size of what is summed.

    Of all labellings ``probs`` (M,) and ``gains`` (M, T), what each of them gains along the
    direction at each position; (M,) both.
    """
    totals, sizes = gains.sum(axis=1), np.abs(gains).sum(axis=1)
    return probs * (totals - probs @ totals), probs * (sizes + probs @ sizes)


def node_gains(labellings, nodes):
    """(M, T)"""
    return nodes[np.arange(len(nodes)), labellings]


class GrossGradient:
    """Gross, Russakovsky, Do and Batzoglou (2006), Section 3.2.2, with their letters.

    The features of ``f(i', i, x, j)`` are here one for each node, label i at position j, and one
    for each arc, i' before i; ``weights`` are the Q'_k. Positions count from 0, not from 1.
    """

    def __init__(self, nodes, arcs):
        self.nodes, self.arcs = nodes, arcs
        n_positions = len(nodes)
        # exp(w^T f(i', i, x, j)); the first position has no label before.
        self.psi = np.exp(arcs[None] + nodes[:, None, :])
        self.alpha, self.beta = np.empty_like(nodes), np.ones_like(nodes)
        self.alpha[0] = np.exp(nodes[0])
        for j in range(1, n_positions):
            self.alpha[j] = self.alpha[j - 1] @ self.psi[j]
        for j in range(n_positions - 2, -1, -1):
            self.beta[j] = self.psi[j + 1] @ self.beta[j + 1]
        self.Z = self.alpha[-1].sum()

    def difficult_term(self, star, weights):
        """Eq. 15 for y* = star: (T, K) for the features of nodes, (K, K) for those of arcs."""
        n_positions, n_labels = self.nodes.shape
        hit = np.equal.outer(star, np.arange(n_labels)) * np.array(weights)[:, None]
        alpha_star, beta_star = np.zeros((2, n_positions, n_labels))
        alpha_star[0] = hit[0] * self.alpha[0]
        for j in range(1, n_positions):  # Eq. 18
            before = alpha_star[j - 1][:, None] + hit[j] * self.alpha[j - 1][:, None]
            alpha_star[j] = (before * self.psi[j]).sum(axis=0)
        for j in range(n_positions - 2, -1, -1):  # Eq. 19
            beta_star[j] = self.psi[j + 1] @ (beta_star[j + 1] + hit[j + 1] * self.beta[j + 1])
        by_node, by_arc = np.empty_like(self.nodes), np.zeros_like(self.arcs)
        by_node[0] = alpha_star[0] * self.beta[0] + self.alpha[0] * beta_star[0]
        for j in range(1, n_positions):  # Eqs. 20 to 22
            A = np.outer(alpha_star[j - 1], self.beta[j]) + np.outer(
                self.alpha[j - 1], beta_star[j]
            )
            B = np.outer(self.alpha[j - 1], hit[j] * self.beta[j])
            terms = self.psi[j] * (A + B)
            by_node[j] = terms.sum(axis=0)
            by_arc += terms
        return by_node, by_arc

    def gradient(self, star, other, weights):
        """Of sum_k Q'_k (P(y_k = star_k) - P(y_k = other_k)), by the quotient rule on Eq. 12."""
        positions = np.arange(len(self.nodes))
        marginals = self.alpha * self.beta / self.Z
        expected_pairs = np.zeros_like(self.arcs)
        for j in positions[1:]:
            expected_pairs += np.outer(self.alpha[j - 1], self.beta[j]) * self.psi[j] / self.Z
        value = np.dot(weights, marginals[positions, star] - marginals[positions, other])
        by_node, by_arc = (
            (plus - minus) / self.Z
            for plus, minus in zip(
                self.difficult_term(star, weights),
                self.difficult_term(other, weights),
                strict=True,
            )
        )
        return by_node - value * marginals, by_arc - value * expected_pairs
