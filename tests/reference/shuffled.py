"""Small data for training that must not depend on the order or division of sequences."""

import numpy as np

LABELS = "abcd"


def make_sequences(seed=0, n_sequences=40):
    """Columns X, one with few values, and labels y that depend on them and on each other."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, n_sequences)
    lengths[:2] = 30, 1
    weights = random.normal(size=(5, len(LABELS)))
    X, y = [], []
    for length in lengths.tolist():
        x = np.round(random.normal(size=(length, 5)), 1)
        x[:, 4] = x[:, 4] > 0
        last, labels = 0, []
        for row in x:
            scores = row @ weights + 1.5 * (np.arange(len(LABELS)) == last)
            last = int((scores + random.gumbel(size=len(LABELS))).argmax())
            labels.append(LABELS[last])
        X.append(x)
        y.append(labels)
    return X, y


def to_items(X, *, values):
    """Attributes with or without values."""
    if values:
        return [[{f"x{j}": float(v) for j, v in enumerate(row)} for row in x] for x in X]
    return [[[f"x{j}={round(v)}" for j, v in enumerate(row)] for row in x] for x in X]


def to_facts(X):
    """Atoms: a constant for each of some columns."""
    return [[[(f"x{j}", round(v)) for j, v in enumerate(row[:3])] for row in x] for x in X]


def make_parents(X, seed=0):
    """A parent for each position, of a tree-shaped graph."""
    random = np.random.default_rng(seed)
    return [[-1, *(int(random.integers(0, t)) for t in range(1, len(x)))] for x in X]
