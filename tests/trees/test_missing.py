"""Missing values: every way to treat them gives the trees of the naive learner, and its scores."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import _core
from hedgerow.trees.missing import METHODS, fill_missing, impute_bins
from reference.growing import (
    all_of,
    assert_equal_arrays,
    grow,
    learned,
    list_examples,
    rules,
    small_table,
    splits,
)
from reference.tables import make_table, windows
from reference.tree_walks import from_the_root, read_trees, value_at
from reference.trees import Rules, grow_tree


def with_method(rules, method, table, seed=0):
    """The rules, with a bin of each column that stands for missing values where one does."""
    fills = None
    if method in ("impute", "indicator"):
        fills = tuple((1 + np.random.default_rng(seed).integers(0, table.n_bins)).tolist())
    return replace(rules, missing=method, fills=fills)


def erase(table, share, seed):
    """The table with this share of its values missing."""
    gone = np.random.default_rng(seed).random(table.bins.shape) < share
    return replace(table, bins=np.where(gone, 0, table.bins))


def surrogates(nodes, table):
    """Those of each node, from the root: columns, offsets, and bins that go left."""
    return [
        [
            (column, offset, sorted(left_bins & set(range(1, table.n_bins[column] + 1))))
            for column, offset, left_bins in nodes[at].surrogates
        ]
        for at in from_the_root(nodes)
    ]


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    learned(),
    windows,
    rules,
    st.sampled_from(METHODS),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.integers(0, 2**32),
)
def test_trees_and_scores_are_those_of_the_naive_learner(
    learned, window, rules, method, share, seed
):
    table, labels = learned
    table = erase(table, share, seed)
    rules = with_method(replace(rules, max_leaves=min(rules.max_leaves, 8)), method, table, seed)
    arrays = grow(table, window, labels, rules)
    assert_equal_arrays(grow(table, window, labels, rules, 3), arrays)
    found = read_trees(arrays)
    for tree, label in zip(found, labels, strict=True):
        naive = grow_tree(table, window, *label, rules)
        assert splits(tree) == splits(naive)
        assert surrogates(tree, table) == surrogates(naive, table)
    forest = _core.Forest(arrays, len(labels))
    scores = np.zeros((table.n_positions, len(labels)))
    forest.add_scores(table.to_kernel(), scores, scores, 2)
    expected = [[value_at(table, tree, t) for tree in found] for t in range(table.n_positions)]
    assert_scores(scores, np.reshape(expected, scores.shape), method)


def assert_scores(scores, expected, method):
    # Mixtures may be rounded in another order than by hand.
    tolerance = 1e-14 if method == "fractional" else 0.0
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kinds", [(["few", "many"], []), (["few"], ["negative"])])
@pytest.mark.parametrize(
    ("method", "max_depth"), [("fractional", 5), ("fractional", 10), ("surrogate", 5)]
)
def test_blocks_of_positions_are_walked_as_by_hand(method, max_depth, kinds):
    # Bins are read row by row, or by column where these are laid out; there are several blocks.
    # Fractions are walked in another way if a tree has many leaves.
    rng = np.random.default_rng(0)
    window, lengths = (2, 1), [1, 300, 0, 2, 290, 40]
    table = erase(make_table(*kinds, lengths, rng), 0.2, 0)
    labels = [all_of(rng.normal(size=table.n_positions))]
    arrays = grow(table, window, labels, Rules(max_depth=max_depth, missing=method))
    (tree,) = read_trees(arrays)
    assert (len(tree) > 255) == (max_depth == 10)
    some = range(0, table.n_positions, 10)
    expected = [[value_at(table, tree, t)] for t in some]
    for bins in (table.to_kernel(), _core.TreeData(table.to_kernel(), *window)):
        scores = np.zeros((table.n_positions, 1))
        _core.Forest(arrays, 1).add_scores(bins, scores, scores, 2)
        assert_scores(scores[some], expected, method)


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("fractional", ""),
        ("fractional", "values"),
        ("fractional", "fractions"),
        ("surrogate", ""),
        ("surrogate", "values"),
        ("surrogate", "surrogate_cuts"),
        ("surrogate", "surrogate_starts"),
    ],
)
def test_trees_with_opposite_values_are_walked_as_by_hand(method, change):
    # Each tree is the opposite of the one before, unless something of the last one is changed.
    rng = np.random.default_rng(0)
    table = erase(make_table(["few", "many", "few"], [], [150], rng), 0.3, 0)
    gradients = rng.normal(size=table.n_positions)
    labels = [all_of(sign * gradients) for sign in (1, -1, 1)]
    arrays = grow(table, (0, 0), labels, Rules(max_depth=4, missing=method))
    before, last, end = arrays["tree_offsets"][1:]
    np.testing.assert_array_equal(arrays["values"][last:end], -arrays["values"][before:last])
    if change:
        changed = arrays[change] = arrays[change].copy()
        if change == "surrogate_starts":
            changed[last:end] = changed[last]  # all are those of the last node, a leaf
        else:
            first = arrays["surrogate_starts"][last] if change == "surrogate_cuts" else last
            changed[first:] = np.roll(changed[first:], 1)
    trees = read_trees(arrays)
    expected = [[value_at(table, tree, t) for tree in trees] for t in range(table.n_positions)]
    scores = np.zeros((table.n_positions, 3))
    _core.Forest(arrays, 3).add_scores(table.to_kernel(), scores, scores, 1)
    assert_scores(scores, expected, method)
    assert np.array_equal(scores[:, 2], -scores[:, 1]) == (not change)


@pytest.mark.parametrize("method", METHODS)
def test_many_examples_are_shared_by_threads(method):
    rng = np.random.default_rng(0)
    table = erase(make_table(["few", "many"], [], [20_000], rng), 0.2, 0)
    labels = [all_of(rng.normal(size=table.n_positions))]
    rules = with_method(Rules(max_depth=4), method, table)
    expected = grow(table, (0, 0), labels, rules)
    assert_equal_arrays(grow(table, (0, 0), labels, rules, 4), expected)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(learned(), windows, rules)
def test_without_missing_values_all_ways_grow_the_same_trees(learned, window, rules):
    table, labels = learned
    table = replace(table, bins=np.maximum(table.bins, 1))

    def known(tree):
        return [
            (*split[:2], [b for b in split[2] if b != 0], *split[3:-1]) for split in splits(tree)
        ]

    first, *others = (
        read_trees(grow(table, window, labels, with_method(rules, method, table)))
        for method in METHODS
    )
    for other in others:
        assert list(map(known, other)) == list(map(known, first))


def grow_root(bins, gradients, method, curvatures=None, **more):
    table = small_table(bins)
    rules = with_method(Rules(max_leaves=2, **more), method, table)
    (tree,) = read_trees(grow(table, (0, 0), [all_of(gradients, curvatures)], rules))
    return tree


def test_a_worked_example_of_fractions():
    # Three known values on the left and one on the right: three quarters of what is missing go
    # left. Gain of the known ones, with lambda 1: 9/4 + 1/2 - 4/5.
    bins, gradients = [[1, 1, 1, 2, 0, 0]], [1, 1, 1, -1, 4, -8]
    root, left, right = grow_root(bins, gradients, "fractional")
    assert root.fraction == 0.75
    assert root.gain == np.float32(9 / 4 + 1 / 2 - 4 / 5)
    assert [node.weight for node in (root, left, right)] == [6, 4.5, 1.5]
    assert left.value == np.float32(-(3 - 3) / 5.5)
    assert right.value == np.float32(-(-1 - 1) / 2.5)


def test_fractions_count_for_the_weight_of_children():
    bins, gradients = [[1, 2, 0, 0]], [1, -1, 0, 0]
    assert len(grow_root(bins, gradients, "fractional", min_child_weight=2.0)) == 3
    assert len(grow_root(bins, gradients, "fractional", min_child_weight=2.01)) == 1
    assert len(grow_root(bins, gradients, "surrogate", min_child_weight=1.01)) == 1


def test_small_fractions_go_to_the_heavier_side():
    # 1 of 100 known values on the right.
    bins, gradients = [[*[1] * 99, 2, 0]], [*[1] * 99, -9, 50]
    root, left, right = grow_root(bins, gradients, "fractional")
    assert root.fraction == np.float32(0.99)
    assert (left.weight, right.weight) == (100, 1)


def test_surrogates_in_order():
    # Column 1 repeats column 0, column 2 the other way round, column 3 with an error, column 4 says
    # nothing.
    first = [1, 1, 1, 2, 2, 2, 0, 0, 0]
    bins = [
        first,
        [1, 1, 1, 2, 2, 2, 2, 0, 0],
        [3, 3, 2, 1, 1, 1, 3, 2, 0],
        [1, 1, 2, 2, 2, 2, 1, 1, 0],
        [1, 2, 1, 1, 2, 1, 1, 1, 1],
    ]
    root, left, right = grow_root(bins, [2, 2, 2, -2, -2, -2, 0, 0, 0], "surrogate")
    assert (root.column, sorted(root.left_bins)) == (0, [1])
    found = [(column, sorted(left)[:2]) for column, _, left in root.surrogates]
    assert found == [(1, [1]), (2, [2, 3]), (3, [1])]
    # Of what is missing, the first goes right by column 1, the second left by column 2, and the
    # third, of which nothing is known, right: both sides weigh the same.
    assert (left.weight, right.weight) == (4, 5)


def test_the_question_whether_a_value_is_missing():
    bins, gradients = [[1, 1, 2, 2, 0, 0]], [-1, -1, -1, -1, 3, 3]
    assert sorted(grow_root(bins, gradients, "indicator")[0].left_bins) == [1, 2]
    # An imputed value is like any other.
    assert sorted(grow_root(bins, gradients, "impute")[0].left_bins) in ([0, 1], [1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"missing": "guess"}, "unknown method for missing values"),
        ({"missing": "impute"}, "fills are for impute and indicator"),
        ({"fills": (1, 1)}, "fills are for impute and indicator"),
    ],
)
def test_rules_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        Rules(**changes).to_kernel()


@pytest.mark.parametrize(
    ("fills", "message"),
    [
        ((1,), "fills are for a different number of columns"),
        ((1, 0), "a fill is not a bin of its column"),
        ((1, 3), "a fill is not a bin of its column"),
    ],
)
def test_fills_that_do_not_fit(fills, message):
    table = small_table([[1, 2], [1, 2]])
    data = _core.TreeData(table.to_kernel(), 0, 0)
    rules = Rules(missing="impute", fills=fills).to_kernel()
    with pytest.raises(ValueError, match=message):
        _core.grow_trees(data, list_examples([all_of([1, -1])]), rules, 0, 1)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 0), (1400, 3), (2, 5000)])
def test_missing_values_are_filled(shape):
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 4, shape).astype(np.uint8)
    fills = rng.integers(1, 4, shape[1]).astype(np.uint8)
    expected = np.where(bins == 0, fills, bins)
    fill_missing(bins, fills)
    np.testing.assert_array_equal(bins, expected)


def test_what_is_imputed():
    rng = np.random.default_rng(0)
    many = rng.integers(1, 101, 999).astype(np.uint8)  # as many values as bins, or more
    few = np.array([3, 3, 2, 0, 0, 0, 0, 0, 0], np.uint8).repeat(111)
    gone = np.zeros(999, np.uint8)
    table = np.stack([many, few, few, gone, gone, many], axis=1)
    table[::3, 0] = 0
    categorical = np.array([False, False, True, False, True, True])
    found = impute_bins(table, np.array([100, 3, 3, 1, 1, 100]), categorical, 255)
    known = np.sort(table[table[:, 0] > 0, 0])
    middle = known[(len(known) - 1) // 2]
    assert found.tolist() == [middle, 3, 3, 1, 1, np.bincount(many).argmax()]
    # With as many bins as allowed, values may share them: then it is the median.
    assert impute_bins(table[:, 1:2], np.array([3]), np.zeros(1, np.bool_), 3).tolist() == [3]


@pytest.mark.parametrize("max_bins", [2, 255])
def test_what_is_imputed_is_weighted(max_bins):
    rng = np.random.default_rng(0)
    table, times = rng.integers(0, 6, (40, 3)).astype(np.uint8), rng.integers(0, 4, 40)
    arguments = (np.array([5, 5, 5]), np.array([False, False, True]), max_bins)
    repeated = impute_bins(np.repeat(table, times, axis=0), *arguments)
    for factor in (1.0, 0.25, 3e-7):
        weighted = impute_bins(table, *arguments, weights=factor * times)
        assert weighted.tolist() == repeated.tolist()
    if max_bins == 255:
        assert repeated.tolist() != impute_bins(table, *arguments).tolist()
    assert impute_bins(table, *arguments, weights=np.zeros(40)).tolist() == [1, 1, 1]
