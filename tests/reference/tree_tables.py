"""Trees walked by hand: from the table that users see, on X as users have it."""

import math

import numpy as np
import pandas as pd
import scipy.sparse

MISSING = object()


def frames(n_categories):
    """Numbers, of which some are missing, and text, of which some is."""

    def make(n, rng):
        names = [f"c{k}" for k in range(n_categories)]
        word = np.where(rng.random(n) < 0.1, None, rng.choice(names, n))
        speed = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1))
        return pd.DataFrame({"speed": speed, "few": rng.integers(0, 3, n), "word": word})

    return make


def items(n, rng):
    """Attributes that are there or not, and with values."""
    numbers = rng.choice([0.0, 1.0, 1.0, 2.5, -1.0], n)
    return [
        {"word": word, "len": number, "up": bool(flag)}
        for word, number, flag in zip(
            rng.choice(["a", "b", "c"], n), numbers, rng.random(n) < 0.5, strict=True
        )
    ]


def matrices(n, rng):
    """Sparse columns, of which some are missing."""
    values = rng.choice([0.0, 0.0, 1.0, 2.0, -1.5, np.nan], (n, 3))
    return scipy.sparse.csr_array(np.column_stack([values, rng.integers(0, 2, n)]))


KINDS = {"frames": frames(4), "large text": frames(400), "items": items, "sparse": matrices}


def make_sequences(kind, n_sequences, seed=0):
    """X of a kind, and labels p, q, r that have nothing to do with it."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, n_sequences)
    X = [KINDS[kind](n, rng) for n in lengths]
    return X, [rng.choice(["p", "q", "r"], n) for n in lengths]


def split_trees(table):
    """The rows of each tree, by round and label."""
    trees = {}
    for values in zip(*(column.tolist() for column in table.values()), strict=True):
        row = dict(zip(table, values, strict=True))
        trees.setdefault((row["round"], row["label"]), []).append(row)
    return trees


def look_up(x, t, feature):
    """The value of a feature at a position of X as it is; `MISSING` beyond its ends."""
    n = x.shape[0] if hasattr(x, "shape") else len(x)
    if not 0 <= t < n:
        return MISSING
    if isinstance(x, pd.DataFrame):
        column, _, category = feature.partition("=")
        value = x[column].iloc[t]
        if category:
            return float(value == category)
    elif isinstance(x, list):
        name, _, text = feature.partition(":")
        value = float(x[t].get(name) == text) if text else float(x[t].get(name, 0.0))
    else:
        row = x[[t]].toarray()[0] if scipy.sparse.issparse(x) else x[t]
        value = row[int(feature[1:])]
    return MISSING if value is None or value != value else value


def walk(tree, x, t, look_up=look_up):
    """The nodes that a position comes by, from the root to a leaf."""
    path = [tree[0]]
    while path[-1]["left"] >= 0:
        row = path[-1]
        value = look_up(x, t + row["offset"], row["feature"])
        goes_left = row["missing"] == "left" if value is MISSING else _says_yes(row, value)
        path.append(tree[row["left"] if goes_left else row["right"]])
    return path


def _says_yes(row, value):
    if not math.isnan(row["threshold"]):
        return value < row["threshold"]
    if row["categories"] is not None:
        return value in row["categories"]
    if row["question"].endswith("is missing") or row["question"].endswith("is not missing"):
        return row["question"].endswith("not missing")
    assert row["question"].startswith(f"has {row['feature']!r}")
    return value >= 0.5
