"""Handmade forests."""

import numpy as np

from hedgerow.trees.forest import ARRAYS, OF_NODES, OF_SURROGATES, Forest

# Arrays with an entry for each node, and arrays that are empty if not used.
NODE_ARRAYS = {name: ARRAYS[name] for name in OF_NODES}
OPTIONAL = {name: ARRAYS[name] for name in ("fractions", "surrogate_starts", *OF_SURROGATES)}
NOTHING = {name: np.empty(0, dtype) for name, dtype in OPTIONAL.items()}


def make_leaves(n_nodes):
    """Arrays of nodes that are leaves of 0."""
    arrays = {name: np.zeros(n_nodes, dtype) for name, dtype in NODE_ARRAYS.items()}
    for name in ("columns", "sets", "lefts"):
        arrays[name][:] = -1
    return arrays


def make_tree(nodes, left_sets=(), n_outputs=1, **changes):
    """A forest of one tree of output 0, given by arrays of its nodes."""
    arrays = {
        "round_offsets": np.array([0, 1]),
        "tree_offsets": np.array([0, len(nodes["columns"])]),
        "outputs": np.zeros(1, np.int32),
        "tree_weights": np.ones(1),
        "left_sets": np.array(left_sets, np.uint8),
    }
    return Forest(NOTHING | arrays | nodes | changes, n_outputs)


def make_stump(**root):
    """A tree of one split: 1 on its left, 2 on its right."""
    nodes = make_leaves(3)
    nodes["columns"][0], nodes["lefts"][0] = 0, 1
    nodes["values"][1:] = 1, 2
    for name, value in root.items():
        nodes[name][0] = value
    return make_tree(nodes)


def _repeat(tree, left_sets, rng):
    """A tree with the same splits, sometimes except for one, and other values."""
    again = {name: array.copy() for name, array in tree.items()}
    again["values"][:] = rng.normal(size=len(again["values"]))
    splits = np.flatnonzero(again["columns"] >= 0)
    for node in splits[again["sets"][splits] >= 0]:
        left_sets.append(left_sets[again["sets"][node]].copy())
        again["sets"][node] = len(left_sets) - 1
    if len(splits) and rng.random() < 0.5:
        node = rng.choice(splits)
        if again["sets"][node] >= 0:
            left_sets[-1][:] = rng.integers(0, 256, 32)
        else:
            again["missing_left"][node] = 1
            again["cuts"][node] = rng.integers(0, again["cuts"][node] + 1)
    return again


def random_forest(table, window, n_outputs, n_rounds, rng, max_splits=7, plain=False):
    """Trees with arbitrary splits on the columns of a table.

    A round has a tree for each output, and all count alike, if it is `plain`; else a round has any
    number of trees of any outputs and weights, whose products with values are exact. Some trees
    have the splits of the one before, or all but one of them.
    """
    sizes = np.full(n_rounds, n_outputs) if plain else rng.integers(0, n_outputs + 3, n_rounds)
    n_trees = int(sizes.sum())
    trees, left_sets = [], []
    for _ in range(n_trees):
        if trees and rng.random() < 0.3:
            trees.append(_repeat(trees[-1], left_sets, rng))
            continue
        n_splits = int(rng.integers(0, max_splits + 1))
        tree = make_leaves(2 * n_splits + 1)
        tree["values"][:] = rng.normal(size=2 * n_splits + 1)
        leaves = [0]
        for split in range(n_splits):
            node, left = leaves.pop(rng.integers(len(leaves))), 2 * split + 1
            leaves += [left, left + 1]
            tree["columns"][node] = column = rng.integers(table.bins.shape[1])
            tree["offsets"][node] = rng.integers(-window[0], window[1] + 1)
            tree["lefts"][node] = left
            tree["gains"][node] = rng.random()
            tree["outside_left"][node] = rng.integers(2)
            if table.categorical[column]:
                tree["sets"][node] = len(left_sets)
                left_sets.append(rng.integers(0, 256, 32))
            else:
                tree["missing_left"][node] = rng.integers(2)
                least = 1 - tree["missing_left"][node]
                tree["cuts"][node] = rng.integers(least, table.n_bins[column] + 1)
        trees.append(tree)
    outputs = np.arange(n_trees) % n_outputs if plain else rng.integers(0, n_outputs, n_trees)
    weights = np.ones(n_trees) if plain else rng.normal(size=n_trees).astype(np.float32)
    arrays = {
        "round_offsets": np.cumsum([0, *sizes]),
        "tree_offsets": np.cumsum([0, *(len(tree["columns"]) for tree in trees)]),
        "outputs": outputs.astype(np.int32),
        "tree_weights": weights.astype(np.float64),
        "left_sets": np.array(left_sets, np.uint8).reshape(-1),
    }
    for name, dtype in NODE_ARRAYS.items():
        arrays[name] = np.concatenate([np.empty(0, dtype), *(tree[name] for tree in trees)])
    return Forest(NOTHING | arrays, n_outputs)
