"""Trees walked slowly, from the public table, on the user's X."""

import math

import numpy as np
import pandas as pd
import scipy.sparse

MISSING, OUTSIDE = object(), object()


def frames(n_categories):
    """Numbers and text, both with missing values."""

    def make(n, rng):
        names = [f"c{k}" for k in range(n_categories)]
        word = np.where(rng.random(n) < 0.1, None, rng.choice(names, n))
        speed = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1))
        return pd.DataFrame({"speed": speed, "few": rng.integers(0, 3, n), "word": word})

    return make


def items(n, rng):
    """Attributes with and without values."""
    numbers = rng.choice([0.0, 1.0, 1.0, 2.5, -1.0], n)
    return [
        {"word": word, "len": number, "up": bool(flag)}
        for word, number, flag in zip(
            rng.choice(["a", "b", "c"], n), numbers, rng.random(n) < 0.5, strict=True
        )
    ]


def matrices(n, rng):
    """Sparse columns with missing values."""
    values = rng.choice([0.0, 0.0, 1.0, 2.0, -1.5, np.nan], (n, 3))
    return scipy.sparse.csr_array(np.column_stack([values, rng.integers(0, 2, n)]))


KINDS = {"frames": frames(4), "large text": frames(400), "items": items, "sparse": matrices}


def make_sequences(kind, seed=0):
    """X of some kind, and labels p, q, r that are independent of it."""
    rng = np.random.default_rng(seed)
    # A large text column has more words than there are categories.
    lengths = rng.integers(1, 7, 250 if kind == "large text" else 70)
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
    """The value of a feature at a position of X; `OUTSIDE` beyond its ends."""
    n = x.shape[0] if hasattr(x, "shape") else len(x)
    if not 0 <= t < n:
        return OUTSIDE
    if isinstance(x, pd.DataFrame):
        column, _, category = feature.partition("=")
        value = x[column].iloc[t]
        if category:
            return float(value == category)
    elif isinstance(x, list):
        name, _, text = feature.partition(":")
        value = float(x[t].get(name) == text) if text else float(x[t].get(name, 0.0))
        if text and feature in x[t]:
            value = x[t][feature]  # the name of a query
    else:
        row = x[[t]].toarray()[0] if scipy.sparse.issparse(x) else x[t]
        value = row[int(feature[1:])]
    return MISSING if value is None or value != value else value


def walk(tree, x, t, look_up=look_up):
    """The nodes on the path of a position from the root to a leaf."""
    ((path, _, _),) = walk_all_ways(tree, x, t, look_up)
    return path


def value_at(tree, x, t, look_up=look_up):
    """What a tree adds to a score."""
    return sum(share * path[-1]["value"] for path, _, share in walk_all_ways(tree, x, t, look_up))


def walk_all_ways(tree, x, t, look_up=look_up):
    """All paths to leaves: their nodes, features and offsets, and shares."""
    found, branches = [], [([tree[0]], [], 1.0)]
    while branches:
        path, asked, share = branches.pop()
        row = path[-1]
        if row["left"] < 0:
            found.append((path, asked, share))
            continue
        value, key = look_up(x, t + row["offset"], row["feature"]), (row["feature"], row["offset"])
        if value is MISSING and row["missing"] == "both":
            for side, part in (("left", row["left_share"]), ("right", 1 - row["left_share"])):
                if part:
                    branches.append(([*path, tree[row[side]]], [*asked, key], share * part))
            continue
        child = tree[row["left"] if _goes_left(row, value) else row["right"]]
        if value is MISSING:
            child, key = _ask_surrogates(tree, row, lambda f, o: look_up(x, t + o, f), child, key)
        branches.append(([*path, child], [*asked, key], share))
    return found


def _goes_left(row, value):
    if value is MISSING or value is OUTSIDE:
        return row["missing" if value is MISSING else "outside"] == "left"
    return _says_yes(row, value)


def _ask_surrogates(tree, row, look, child, key):
    """The child, and the split used, by the first surrogate whose value is known."""
    for surrogate in row.get("all_surrogates", ()):
        asked = surrogate["name"], surrogate["offset"]
        value = look(*asked)
        if value is not MISSING and value is not OUTSIDE:
            says = value < surrogate["below"] if "below" in surrogate else value in surrogate["in"]
            is_left = says == (surrogate["side"] == "left")
            children = sorted((row["left"], row["right"]))
            return tree[children[not is_left]], asked
    return child, key


def add_surrogates(trees, document):
    """Add the surrogates of a model as JSON to the rows of its table."""
    rows = [row for tree in trees.values() for row in tree]
    nodes = [node for tree in document["trees"] for node in tree["nodes"]]
    for row, node in zip(rows, nodes, strict=True):
        row["all_surrogates"] = [
            surrogate | {"name": document["features"][surrogate["feature"]]["name"]}
            for surrogate in node.get("surrogates", ())
        ]
        assert len(row["all_surrogates"]) == len(row["surrogates"])


def _says_yes(row, value):
    if not math.isnan(row["threshold"]):
        return value < row["threshold"]
    if row["categories"] is not None:
        return value in row["categories"]
    asked = row["question"].removeprefix(row["feature"])
    if asked.endswith((" missing", " outside", " known")):
        return asked.endswith(("not missing", "not outside", "is known"))
    assert row["question"].startswith(f"has {row['feature']!r}")
    return value >= 0.5
