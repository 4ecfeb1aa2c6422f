"""A linear CRF the slow way: from its tables of weights, by listing all labellings.

Here a position is a dict of numbers by attribute name; a row of an array has the attributes ``x0``,
``x1`` and so on.
"""

import numpy as np

from reference.chains import Chain, enumerate_chain, weighted_log_likelihood


def make_data(n_sequences=8, n_features=3, labels=("a", "b", "c"), longest=5, seed=0):
    """Random arrays, some of their numbers zero, and labels that follow them loosely."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n_sequences)
    lengths[:2] = longest, 1
    X = [rng.normal(size=(length, n_features)).round(2) for length in lengths]
    for x in X:
        x[rng.random(x.shape) < 0.2] = 0.0
    directions = rng.normal(size=(n_features, len(labels)))
    codes = [(2 * x @ directions + rng.gumbel(size=(len(x), len(labels)))).argmax(1) for x in X]
    return X, [[labels[code] for code in sequence] for sequence in codes]


def to_dicts(X):
    """Arrays as dicts of numbers."""
    return [[{f"x{j}": value for j, value in enumerate(row)} for row in x.tolist()] for x in X]


class NaiveModel:
    """Scores by looking up every weight by its name."""

    def __init__(self, crf):
        self.classes = crf.classes_.tolist()
        self.node_weights = _by_key(crf.weights(), "attribute", "label")
        transitions = crf.transitions()
        self.has_edges = "attribute" in transitions
        if not self.has_edges:
            transitions["attribute"] = np.full(len(transitions["from"]), "")
        self.pair_weights = _by_key(transitions, "attribute", "from", "to")

    def chain(self, positions):
        n_labels = len(self.classes)
        nodes = np.zeros((len(positions), n_labels))
        edges = np.zeros((len(positions), n_labels, n_labels))
        arcs = np.zeros((n_labels, n_labels))
        for k, label in enumerate(self.classes):
            for t, position in enumerate(positions):
                values = {"(bias)": 1.0, **position}
                nodes[t, k] = self._sum(self.node_weights, values, label)
            for j, before in enumerate(self.classes):
                arcs[j, k] = self.pair_weights["", before, label]
                for t, position in enumerate(positions):
                    edges[t, j, k] = self._sum(self.pair_weights, position, before, label)
        return Chain(nodes, arcs, edges if self.has_edges else None)

    def marginals(self, positions):
        return enumerate_chain(self.chain(positions)).marginals

    def log_likelihood(self, positions, labels, weights=None):
        """Log probability of the labels; with weights (T,) that of `weighted_log_likelihood`."""
        codes = tuple(map(self.classes.index, labels))
        chain = self.chain(positions)
        if weights is not None:
            return weighted_log_likelihood(chain, codes, weights)
        return enumerate_chain(chain).log_probs[codes]

    def penalty(self, reg_lambda, reg_alpha):
        weights = np.array([*self.node_weights.values(), *self.pair_weights.values()])
        return reg_lambda / 2 * (weights**2).sum() + reg_alpha * np.abs(weights).sum()

    @staticmethod
    def _sum(weights, values, *outputs):
        return sum(
            value * weights.get((name, *outputs), 0.0) for name, value in values.items() if name
        )


def _by_key(table, *names):
    keys = zip(*(table[name].tolist() for name in names), strict=True)
    return dict(zip(keys, table["weight"].tolist(), strict=True))
