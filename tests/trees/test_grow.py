"""Growing: the same trees as the naive learner, split by split and bit by bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.growing import (
    all_of,
    assert_equal_arrays,
    grow,
    learned,
    make_examples,
    rules,
    small_table,
    splits,
)
from reference.tables import make_table, windows
from reference.tree_walks import from_the_root, read_trees, walk
from reference.trees import Rules, Table, grow_tree


@settings(max_examples=80, deadline=None, derandomize=True)
@given(learned(), windows, rules)
def test_trees_are_those_of_the_naive_learner_however_the_data_are_kept(learned, window, rules):
    # One test, since drawing takes longer than all that is checked.
    table, labels = learned
    arrays = grow(table, window, labels, rules)
    check_trees(arrays, table, window, labels, rules)
    check_copies_for_a_window(arrays, table, window, labels, rules)
    check_positions_without_examples(arrays, table, window, labels, rules)
    check_dense_and_sparse(arrays, table, window, labels, rules)


def check_trees(arrays, table, window, labels, rules):
    """They have the splits of the naive learner, and in their leaves the same examples."""
    found = read_trees(arrays)
    assert arrays["outputs"].tolist() == list(range(len(labels)))
    assert arrays["round_offsets"].tolist() == [0, len(labels)]
    assert arrays["tree_weights"].tolist() == [1.0] * len(labels)
    for tree, label in zip(found, labels, strict=True):
        naive = grow_tree(table, window, *label, rules)
        assert splits(tree) == splits(naive)
        leaves = [walk(table, tree, position) for position in label[0]]
        for at, node in zip(from_the_root(tree), from_the_root(naive), strict=True):
            if tree[at].column < 0:
                assert naive[node].examples == [i for i, leaf in enumerate(leaves) if leaf == at]
            else:
                assert tree[at].left > at


def check_copies_for_a_window(seen, table, window, labels, rules):
    """A window equals copies of its columns, unless values are missing in the window too."""
    if not table.bins.all():
        return
    copied = grow(table.unfold(*window), (0, 0), labels, rules)
    assert_equal_arrays(seen, copied, but=["columns", "offsets"])
    reach = sum(window) + 1
    is_split = seen["columns"] >= 0
    numbers = seen["columns"] * reach + seen["offsets"] + window[0]
    np.testing.assert_array_equal(numbers[is_split], copied["columns"][is_split])
    assert not copied["offsets"].any()


def check_positions_without_examples(seen, table, window, labels, rules):
    """They only change how columns are kept."""
    n = table.n_positions
    usual = np.concatenate([np.ones(table.n_dense, np.int64), table.defaults])
    padded = replace(
        table,
        bins=np.concatenate([table.bins, np.tile(usual, (2 * n, 1))]),
        offsets=np.append(table.offsets, 3 * n),
    )
    assert_equal_arrays(seen, grow(padded, window, labels, rules))


def check_dense_and_sparse(seen, table, window, labels, rules):
    """Attributes equal dense columns."""
    for defaults in (np.empty(0, np.int64), np.minimum(2, table.n_bins)):
        kept = grow(replace(table, defaults=defaults), window, labels, rules)
        assert_equal_arrays(seen, kept)


@pytest.mark.parametrize(("n_columns", "window"), [(4, (5, 5)), (1, (0, 19)), (5, (9, 8))])
def test_wide_windows_of_columns_with_two_values(n_columns, window):
    # Their slots are bits, in one word or two, as far as windows do not end early.
    rng = np.random.default_rng(0)
    columns = rng.integers(1, 3, (n_columns, 90))
    table = replace(small_table(columns), offsets=np.array([0, 1, 60, 90]))
    label = all_of(rng.normal(size=90))
    settings = Rules(max_leaves=12)
    check_trees(grow(table, window, [label], settings), table, window, [label], settings)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(learned(), windows, rules, st.sampled_from([(1.0, 1.0), (0.5, 1.0), (0.7, 0.7)]))
def test_threads_change_nothing(learned, window, rules, shares):
    table, labels = learned
    one, two, three = (
        grow(table, window, labels, rules, n_threads, 7, *shares) for n_threads in (1, 2, 3)
    )
    assert_equal_arrays(one, two)
    assert_equal_arrays(one, three)


def grow_one(table, label, window=(0, 0), key=0, bytree=1.0, bynode=1.0, **changes):
    arrays = grow(table, window, [label], Rules(**changes), 1, key, bytree, bynode)
    (tree,) = read_trees(arrays)
    return tree


def test_a_worked_example():
    # Four positions; bins 1 1 2 3; gradients 1 1 -1 -3; curvatures 1; lambda 1.
    #   1 | 2 3: 4/3 + 16/3 - 4/5 = 5.8667      1 2 | 3: 1/4 + 9/2 - 4/5 = 3.95
    # and below, of 2 | 3 with -1 and -3: 1/2 + 9/2 - 16/3 < 0.
    tree = grow_one(small_table([[1, 1, 2, 3]]), all_of([1, 1, -1, -3]))
    assert [node.column for node in tree] == [0, -1, -1]
    assert tree[0].left == 1
    assert tree[0].left_bins == {1}  # both sides weigh the same: missing values go right
    assert tree[0].gain == np.float32(4 / 3 + 16 / 3 - 4 / 5)
    values = [np.float32(x) for x in (2 / 5, -2 / 3, 4 / 3)]
    assert [node.value for node in tree] == values
    assert [node.weight for node in tree] == [4, 2, 2]


@pytest.mark.parametrize(
    ("bins", "gradients", "left_bins"),
    [
        ([1, 1, 2], [1, 1, -1], {0, 1}),  # nothing is missing: with the heavier side
        ([1, 2, 2], [1, -1, -1], {1}),
        ([1, 2, 0], [1, -1, -1], {1}),  # with what it resembles
        ([1, 2, 0], [1, -1, 1], {0, 1}),
        ([0, 1, 1], [1, -1, -1], {1}),  # against all that is not
        ([1, 3, 4], [1, -1, -1], {1}),
        ([1, 3, 4], [1, 1, -1], {0, 1, 2, 3}),  # bin 2 does not occur and lies between
    ],
)
def test_missing_values(bins, gradients, left_bins):
    assert grow_one(small_table([bins]), all_of(gradients))[0].left_bins == left_bins


@pytest.mark.parametrize(
    ("bins", "gradients", "left_bins"),
    [
        ([1, 2, 3], [-1, 2, -1], {0, 1, 3, 4, 5}),  # unseen ones go with the heavier side
        ([1, 2, 3, 3], [-1, 2, 2, 2], {1}),
        ([1, 2, 3, 0], [-1, 2, -1, 2], {1, 3}),  # or with missing values
        ([1, 2, 2, 0], [-1, 2, 2, -1], {0, 1, 3, 4, 5}),
    ],
)
def test_categories(bins, gradients, left_bins):
    table = small_table([bins], n_bins=5, categorical=True)
    root = grow_one(table, all_of(gradients))[0]
    assert root.left_bins == left_bins


def test_254_categories():
    gradients = np.where(np.arange(254) % 3 == 0, -1.0, 1.0)
    table = small_table([np.arange(1, 255)], categorical=True)
    root, *rest = grow_one(table, all_of(gradients), max_leaves=2)
    expected = set((np.flatnonzero(gradients < 0) + 1).tolist())
    assert root.left_bins == expected
    assert [node.weight for node in rest] == [len(expected), 254 - len(expected)]


def test_the_first_of_equal_splits_is_taken():
    column = [1, 1, 2, 2]
    gradients = all_of([1, 1, -1, -1])
    assert grow_one(small_table([[1] * 4, column, column]), gradients)[0].column == 1
    mirrored = small_table([[2, 2, 1, 1], column])
    assert grow_one(mirrored, gradients)[0].column == 0
    # A window of the same bin everywhere but at the ends: the first offset at which an end is seen.
    flat = small_table([[1] * 4, [1] * 4], lengths=[2, 2])
    root = grow_one(flat, all_of([1, -1, 1, -1]), window=(1, 1))[0]
    assert (root.column, root.offset, root.left_bins) == (0, -1, {1})


def test_the_oldest_of_equal_nodes_is_split_first():
    # Both children of the root would gain 9 + 1 - 8.
    table = small_table([[1, 1, 2, 2], [1, 2, 1, 2]])
    tree = grow_one(table, all_of([3, 1, -1, -3]), max_leaves=3, reg_lambda=0.0)
    assert [node.column for node in tree] == [0, 1, -1, -1, -1]
    assert tree[1].gain == 2


def test_ends_are_seen_through_any_column():
    # Column 0 misses a value that position 1 sees before it: what is missing is not outside.
    first = [0, 1, 1, 1, 1, 1, 1, 1]
    table = small_table([first, [1] * 8], lengths=[2] * 4)
    root = grow_one(table, all_of([1, -1] * 4), window=(1, 0))[0]
    assert (root.column, root.offset, root.left_bins) == (0, -1, {0, 1})
    assert root.gain == np.float32(16 / 5 + 16 / 5)


def test_one_row_one_bin_and_no_columns():
    assert len(grow_one(small_table([[1]]), all_of([1.0]), window=(2, 2))) == 1
    (leaf,) = grow_one(small_table([[1, 1, 1]]), all_of([1, -1, 3]))
    assert leaf.value == np.float32(-3 / 4)
    empty = Table(
        np.empty((3, 0), np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.bool_),
        np.empty(0, np.int64),
        np.array([0, 3]),
    )
    for share in (1.0, 0.5):
        (leaf,) = grow_one(empty, all_of([1, -1, 3]), (1, 1), bytree=share, bynode=share)
        assert leaf.value == np.float32(-3 / 4)


def test_no_positions_at_all():
    table = small_table([[]], n_bins=2)
    (leaf,) = grow_one(table, all_of([]), window=(1, 1))
    assert (leaf.value, leaf.weight, leaf.column) == (0, 0, -1)


@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
def test_a_label_without_examples_has_a_leaf_of_nothing(reg_lambda):
    table = small_table([[1, 2, 1, 2]])
    labels = [all_of([]), all_of([1, -1, 1, -1]), all_of([])]
    trees = read_trees(grow(table, (0, 0), labels, Rules(reg_lambda=reg_lambda)))
    assert [len(tree) for tree in trees] == [1, 3, 1]
    assert [(t[0].value, t[0].weight, t[0].column) for t in trees[::2]] == [(0, 0, -1)] * 2


def big_table(n=400):
    kinds = ["few, some missing", "many", "mostly middle", "categories"]
    return make_table(kinds, ["there or not", "negative"], [n // 4] * 4, np.random.default_rng(0))


def test_300_labels():
    table, rng = big_table(80), np.random.default_rng(1)
    labels = [make_examples(table, rng, share=rng.random()) for _ in range(300)]
    together = grow(table, (1, 1), labels, Rules(max_leaves=6), 2)
    one, three = (grow(table, (1, 1), labels, Rules(max_leaves=6), n) for n in (1, 3))
    assert_equal_arrays(together, one)
    assert_equal_arrays(together, three)
    trees = read_trees(together)
    assert len(trees) == 300
    for label in (0, 137, 299):
        alone = grow_one(table, labels[label], (1, 1), max_leaves=6)
        assert splits(trees[label]) == splits(alone)


BIG = big_table()
MANY = make_examples(BIG, np.random.default_rng(2), share=1.0)


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 10, 64])
def test_max_leaves(max_leaves):
    tree = grow_one(BIG, MANY, max_leaves=max_leaves)
    assert sum(node.column < 0 for node in tree) == max_leaves
    # Best first: a tree of fewer leaves is the beginning of a larger one.
    larger = grow_one(BIG, MANY, max_leaves=max_leaves + 1)
    assert [n.value for n in tree] == [n.value for n in larger[: len(tree)]]
    assert len(larger) == len(tree) + 2


def test_min_child_weight():
    tree = grow_one(BIG, MANY, min_child_weight=10.0)
    assert len(tree) > 10
    assert min(node.weight for node in tree) >= 10
    column = small_table([[1, 2]])
    assert len(grow_one(column, all_of([1, -1]), min_child_weight=1.0)) == 3
    assert len(grow_one(column, all_of([1, -1]), min_child_weight=1.0 + 1e-9)) == 1


def test_min_split_gain():
    least = 2.0
    tree = grow_one(BIG, MANY, min_split_gain=least)
    assert len(tree) > 10
    assert min(node.gain for node in tree if node.column >= 0) > least
    column = small_table([[1, 2]])  # a gain of 1/2 + 1/2
    assert len(grow_one(column, all_of([1, -1]), min_split_gain=1.0)) == 1
    assert len(grow_one(column, all_of([1, -1]), min_split_gain=0.999)) == 3


def test_gains_that_are_only_rounding_make_no_split():
    column = small_table([[1, 2, 3]])
    assert len(grow_one(column, all_of([1e-4, -1e-4, 1e-4]))) == 1
    assert len(grow_one(column, all_of([1e-2, -1e-2, 1e-2]))) == 5


def test_max_step_and_learning_rate():
    plain, clipped = grow_one(BIG, MANY), grow_one(BIG, MANY, max_step=0.3, learning_rate=0.5)
    values = np.array([node.value for node in plain])
    assert (np.abs(values) > 0.3).any()
    assert (np.abs(values) < 0.3).any()
    expected = np.clip(values, -0.3, 0.3) * 0.5
    np.testing.assert_allclose([node.value for node in clipped], expected, rtol=1e-6)
    assert [node.gain for node in clipped] == [node.gain for node in plain]


def test_leaves_without_curvature_move_a_score_no_further_than_max_step():
    tree = grow_one(small_table([[1, 2]]), all_of([1, -1], [0, 0]), reg_lambda=0.0, max_step=5.0)
    assert [node.value for node in tree[1:]] == [-5, 5]


def test_derivatives_of_any_size():
    table = small_table([[1, 2, 3, 4]])
    positions, gradients, curvatures = all_of([1, -1, 1, 0.5], [0.5, 0.25, 0.5, 1])
    expected = grow_one(table, (positions, gradients, curvatures), reg_lambda=0.0)
    assert len(expected) == 7
    for power in (-9, 60, 100):
        scale = np.float32(2.0**power)
        tree = grow_one(table, (positions, gradients * scale, curvatures * scale), reg_lambda=0.0)
        assert [node.value for node in tree] == [node.value for node in expected]
        assert [node.gain for node in tree] == [node.gain * scale for node in expected]
    label = (positions, gradients * np.float32(1e-38), curvatures * np.float32(1e-44))
    (leaf,) = grow_one(table, label, reg_lambda=0.0, max_step=9.0)
    assert leaf.value == -9


def noise_table(n_columns, n_positions=60):
    return make_table(["few"] * n_columns, [], [n_positions], np.random.default_rng(3))


@pytest.mark.parametrize("share", [0.01, 0.1, 0.25, 0.5, 0.9])
def test_a_tree_uses_no_more_than_its_share_of_features(share):
    table = noise_table(5)
    label = make_examples(table, np.random.default_rng(4), share=1.0)
    allowed = max(1, round(share * 15))
    used = [
        {(node.column, node.offset) for node in tree if node.column >= 0}
        for tree in (grow_one(table, label, (1, 1), key, bytree=share) for key in range(20))
    ]
    assert max(map(len, used)) <= allowed
    assert set.union(*used) == {(c, o) for c in range(5) for o in (-1, 0, 1)} or share < 0.1
    assert len({frozenset(features) for features in used}) > 1


@pytest.mark.parametrize("level", ["bytree", "bynode"])
def test_every_feature_is_chosen_equally_often(level):
    n_columns, n_keys = 8, 400
    table = noise_table(n_columns)
    label = make_examples(table, np.random.default_rng(4), share=1.0)
    for share in (1 / n_columns, 0.5):
        roots = [
            grow_one(table, label, (0, 0), key, max_leaves=2, reg_lambda=0.0, **{level: share})[0]
            for key in range(n_keys)
        ]
        counts = np.bincount([root.column for root in roots], minlength=n_columns)
        best = grow_one(table, label, max_leaves=2, reg_lambda=0.0)[0].column
        sd = np.sqrt(n_keys * share * (1 - share))
        assert abs(counts[best] - n_keys * share) < 4 * sd
        if share < 0.5:
            assert (np.abs(counts - n_keys * share) < 4 * sd).all()


def test_features_of_nodes_are_chosen_anew():
    table = noise_table(8, 200)
    label = make_examples(table, np.random.default_rng(4), share=1.0)
    used = {node.column for node in grow_one(table, label, bynode=1 / 8, reg_lambda=0.0)}
    assert len(used) > 4


def test_choices_come_from_the_key_and_the_label():
    table = noise_table(8)
    label = make_examples(table, np.random.default_rng(4), share=1.0)

    def roots(key, level):
        arrays = grow(table, (0, 0), [label] * 20, Rules(max_leaves=2), 2, key, **level)
        return [tree[0].column for tree in read_trees(arrays)]

    for level in ({"bytree": 0.2}, {"bynode": 0.2}):
        assert roots(5, level) == roots(5, level)
        assert roots(5, level) != roots(6, level)
        assert len(set(roots(5, level))) > 2
    assert roots(5, {"bytree": 0.2}) != roots(5, {"bynode": 0.2})
    assert len(set(roots(2**64 - 1, {}))) == 1


def test_branches_that_grow_side_by_side_make_the_same_tree():
    # Large enough that some nodes are left to single threads, with all that is below them.
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 9, (16, 40_000))
    steps = np.where(bins[0] * bins[1] > 20, 1.0, -1.0) + rng.normal(size=40_000)
    table, labels = small_table(bins, 8), [all_of(steps), all_of(-(steps**3))]
    alone = grow(table, (0, 0), labels, Rules(max_depth=5, max_leaves=32))
    for n_threads in (2, 7):
        shared = grow(table, (0, 0), labels, Rules(max_depth=5, max_leaves=32), n_threads)
        assert_equal_arrays(shared, alone)
