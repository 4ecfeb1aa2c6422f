"""Grown trees, read from their arrays and walked node by node: slow and simple."""

import numpy as np

from reference.trees import MISSING, OUTSIDE, Node


def from_the_root(nodes, at=0):
    """All nodes, each before those below it, left before right; nodes are numbered in any order."""
    if nodes[at].column < 0:
        return [at]
    left = nodes[at].left
    return [at, *from_the_root(nodes, left), *from_the_root(nodes, left + 1)]


def walk(table, nodes, position):
    """Number of the leaf of a position; the first one if there are several."""
    return walk_all_ways(table, nodes, position)[0][0]


def walk_all_ways(table, nodes, position):
    """Numbers of the leaves of a position, from left to right, and its shares there."""
    leaves, branches = [], [(0, 1.0)]
    while branches:
        at, share = branches.pop()
        while (node := nodes[at]).column >= 0:
            seen = int(table.look(node.column, node.offset)[position])
            goes_left = seen in node.left_bins
            if seen == MISSING and node.fraction >= 0:
                if node.fraction < 1:
                    branches.append((node.left + 1, share * (1.0 - float(node.fraction))))
                share, goes_left = share * float(node.fraction), True
            elif seen == MISSING:
                looks = ((int(table.look(c, o)[position]), left) for c, o, left in node.surrogates)
                goes_left = next((bin in left for bin, left in looks if bin > 0), goes_left)
            at = node.left + (not goes_left)
        leaves.append((at, share))
    return leaves


def value_at(table, nodes, position):
    """What a tree adds at a position."""
    leaves = walk_all_ways(table, nodes, position)
    return sum((share * float(nodes[at].value) for at, share in leaves), 0.0)


def read_trees(arrays):
    """Nodes of all trees of a dict of arrays, without their examples."""
    return [
        [read_node(arrays, n) for n in range(begin, end)]
        for begin, end in zip(arrays["tree_offsets"][:-1], arrays["tree_offsets"][1:], strict=True)
    ]


def read_node(arrays, n):
    node = Node(arrays["values"][n], arrays["weights"][n], [], -1)
    node.column, node.offset = int(arrays["columns"][n]), int(arrays["offsets"][n])
    node.left, node.gain = int(arrays["lefts"][n]), arrays["gains"][n]
    if node.column >= 0 and arrays["sets"][n] >= 0:
        bits = np.unpackbits(arrays["left_sets"].reshape(-1, 32), axis=1, bitorder="little")
        node.left_bins = frozenset(np.flatnonzero(bits[arrays["sets"][n]]).tolist())
    elif node.column >= 0:
        first = 0 if arrays["missing_left"][n] else 1
        node.left_bins = frozenset(range(first, int(arrays["cuts"][n]) + 1))
    if node.column >= 0 and node.offset and arrays["outside_left"][n]:
        node.left_bins |= {OUTSIDE}
    if node.column >= 0 and len(arrays["fractions"]):
        node.fraction = arrays["fractions"][n]
    if len(arrays["surrogate_starts"]):
        numbers = range(*arrays["surrogate_starts"][n : n + 2])
        node.surrogates = [read_surrogate(arrays, number) for number in numbers]
    return node


def read_surrogate(arrays, n):
    cut = int(arrays["surrogate_cuts"][n])
    low, high = frozenset(range(1, cut + 1)), frozenset(range(cut + 1, 256))
    left_bins = high if arrays["surrogate_reversed"][n] else low
    if arrays["surrogate_sets"][n] >= 0:
        bits = np.unpackbits(arrays["left_sets"].reshape(-1, 32), axis=1, bitorder="little")
        left_bins = frozenset(np.flatnonzero(bits[arrays["surrogate_sets"][n]]).tolist())
    return (int(arrays["surrogate_columns"][n]), int(arrays["surrogate_offsets"][n]), left_bins)
