"""Random tree-shaped graphs, and explicit copies of columns of ancestors."""

import numpy as np


def random_parents(rng, n_positions, share_of_roots=0.2):
    """Parents of positions in random order, some of them roots; without cycles."""
    order = rng.permutation(n_positions)
    parents = np.full(n_positions, -1, np.int64)
    for place, t in enumerate(order):
        if place and rng.random() > share_of_roots:
            parents[t] = order[rng.integers(place)]
    return parents


def ancestors_of(parents, t, n):
    """The first n ancestors of a position, None beyond the root."""
    found = []
    for _ in range(n):
        t = parents[t] if t is not None and parents[t] >= 0 else None
        found.append(t)
    return found


def copy_features(x, parents, window, n_ancestors):
    """Columns of a position, its neighbours and its ancestors, NaN where there is none."""
    before, after = window
    parts = []
    for t in range(len(x)):
        near = [t + o if 0 <= t + o < len(x) else None for o in range(-before, after + 1)]
        rows = near + ancestors_of(parents, t, n_ancestors)
        parts.append([np.full(x.shape[1], np.nan) if row is None else x[row] for row in rows])
    # All copies of a column next to each other, since the first of equal splits is chosen.
    return np.array(parts).transpose(0, 2, 1).reshape(len(x), -1)
