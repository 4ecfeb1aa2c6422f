"""Roots, leaves and parents of chains and tree-shaped graphs; constraints between them."""

import itertools

import numpy as np
import pytest

from hedgerow.graph import find_leaves, find_roots, leaves_first, positions_before
from hedgerow.labels import Constraints, Labels
from hedgerow.sequences import Schema, Sequences
from reference.graphs import random_parents

OFFSETS = np.array([0, 3, 3, 7])
PARENTS = np.array([1, -1, 1, -1, 2, 0, -1], np.int32)  # two sequences, the second a forest


def test_chains_are_trees_in_which_the_parent_is_the_position_before():
    chain = np.array([-1, 0, 1, -1, 0, 1, 2], np.int32)
    for find in (find_roots, find_leaves, positions_before):
        assert find(OFFSETS, None).tolist() == find(OFFSETS, chain).tolist()
    assert find_roots(OFFSETS, None).tolist() == [0, 3]
    assert find_leaves(OFFSETS, None).tolist() == [2, 6]


def test_a_forest():
    assert find_roots(OFFSETS, PARENTS).tolist() == [1, 3, 6]
    assert find_leaves(OFFSETS, PARENTS).tolist() == [0, 2, 4, 6]
    before = positions_before(OFFSETS, PARENTS)
    assert before.tolist() == [1, -1, 1, -1, 5, 3, -1]
    ranks = np.argsort(leaves_first(before))
    children = np.flatnonzero(before >= 0)
    assert (ranks[children] < ranks[before[children]]).all()


def test_a_long_path_is_ordered_without_recursion():
    before = np.arange(-1, 10**5 - 1)
    assert leaves_first(before).tolist() == list(range(10**5 - 1, -1, -1))


def can_label(rules, parents, known):
    """Whether some labelling keeps to the rules and the known labels, by trying all."""
    leaves = set(range(len(parents))) - set(parents)
    return any(
        all(code in (-1, label) for code, label in zip(known, labels, strict=True))
        and all(rules.start[labels[t]] for t, p in enumerate(parents) if p < 0)
        and all(rules.end[labels[t]] for t in leaves)
        and all(rules.allowed[labels[p], labels[t]] for t, p in enumerate(parents) if p >= 0)
        for labels in itertools.product(range(len(rules.start)), repeat=len(parents))
    )


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(("n_labels", "length"), [(3, 5), (2, 7)])
def test_dead_ends_are_those_of_an_enumeration(n_labels, length, seed):
    rng = np.random.default_rng(seed)
    rules = Constraints(
        rng.random((n_labels, n_labels)) < 1.5 / n_labels,
        rng.random(n_labels) < 0.6,
        rng.random(n_labels) < 0.6,
    )
    parents = random_parents(rng, length)
    known = np.where(rng.random(length) < 0.3, rng.integers(0, n_labels, length), -1)
    offsets = np.array([0, length])
    found = rules.find_dead_end(known.astype(np.int32), offsets, parents)
    assert (found is None) == can_label(rules, parents.tolist(), known.tolist())
    nodes = np.zeros((length, n_labels))
    rules.restrict(nodes, offsets, parents)
    forbidden = np.zeros((length, n_labels), bool)
    forbidden[parents < 0] |= ~rules.start
    forbidden[find_leaves(offsets, parents)] |= ~rules.end
    np.testing.assert_array_equal(np.isinf(nodes), forbidden)


def make_sequences():
    schema = Schema("columns", 1, None, (True,))
    dense = np.zeros((7, 1))
    return Sequences(OFFSETS, schema, dense, None, (), flat=False, parents=PARENTS)


def test_broken_rules_name_the_parents_label():
    labels, sequences = Labels(np.array(["a", "b"])), make_sequences()
    allowed = np.array([[True, False], [True, True]])
    rules = Constraints(allowed, np.ones(2, bool), np.ones(2, bool))
    codes = np.array([0, 0, 1, 0, 0, 0, 1], np.int32)
    with pytest.raises(ValueError, match=r"y\[0\]\[2\] is 'b' below a parent with the label 'a'"):
        rules.check(codes, sequences, labels)
    starts = Constraints(np.ones((2, 2), bool), np.array([True, False]), np.ones(2, bool))
    with pytest.raises(ValueError, match=r"y\[2\]\[3\] is 'b' at a root"):
        starts.check(codes, sequences, labels)
    ends = Constraints(np.ones((2, 2), bool), np.ones(2, bool), np.array([True, False]))
    with pytest.raises(ValueError, match=r"y\[0\]\[2\] is 'b' at a leaf"):
        ends.check(codes, sequences, labels)


def test_labels_that_cannot_be_completed_name_the_subtree():
    labels, sequences = Labels(np.array(["a", "b"])), make_sequences()
    allowed = np.array([[True, False], [False, True]])  # all labels of a tree are the same
    rules = Constraints(allowed, np.ones(2, bool), np.ones(2, bool))
    codes = np.array([0, -1, 1, -1, -1, -1, -1], np.int32)
    with pytest.raises(
        ValueError, match=r"the subtree at y\[0\]\[1\] cannot be labelled: no labels"
    ):
        rules.check(codes, sequences, labels)
