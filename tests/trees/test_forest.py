"""Forests: scores as if every tree were walked by hand; trees that are joined, split and copied."""

import copy
import gc
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abuse.threads import run_at_once
from hedgerow import _core
from hedgerow.trees.forest import (
    ARRAYS,
    Forest,
    goes_left,
    split_rounds,
    tree_rounds,
)
from hedgerow.trees.importances import importances
from reference.boosting import assert_same_forest
from reference.forests import (
    make_leaves,
    make_stump,
    make_tree,
    random_forest,
)
from reference.tables import ATTRIBUTES, COLUMNS, make_table, tables, windows
from reference.tree_walks import read_trees, walk
from reference.trees import OUTSIDE, Table


def add_scores(forest, table, scores=None, n_threads=1):
    scores = np.zeros((table.n_positions, forest.n_outputs)) if scores is None else scores
    out = np.full_like(scores, np.nan)
    forest.add_scores(table.to_kernel(), scores, out, n_threads)
    return out


def walk_all(forest, table, scores):
    """Scores, tree by tree."""
    out = scores.copy()
    for nodes, k, weight in zip(
        read_trees(forest.arrays()), forest.outputs, forest.tree_weights, strict=True
    ):
        for t in range(table.n_positions):
            out[t, k] += weight * float(nodes[walk(table, nodes, t)].value)
    return out


@st.composite
def forests(draw, max_rounds=6):
    table, window = draw(tables()), draw(windows)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_outputs, n_rounds = draw(st.integers(1, 4)), draw(st.integers(0, max_rounds))
    forest = random_forest(table, window, n_outputs, n_rounds, rng, plain=draw(st.booleans()))
    return forest, table, rng.normal(size=(table.n_positions, n_outputs))


@settings(deadline=None, derandomize=True)
@given(forests(), st.integers(1, 3))
def test_scores_are_those_of_a_walk_by_hand(made, n_threads):
    forest, table, scores = made
    expected = walk_all(forest, table, scores)
    np.testing.assert_array_equal(add_scores(forest, table, scores, n_threads), expected)
    forest.add_scores(table.to_kernel(), scores, scores, n_threads)
    np.testing.assert_array_equal(scores, expected)  # the same array in and out


def test_a_worked_example():
    # Left if bins 1 to 2 or missing; then, one position before, left if the category is 1 or 9.
    table = Table(
        np.array([[1, 1], [3, 9], [0, 2], [3, 1], [2, 0]]),
        np.array([3, 9]),
        np.array([False, True]),
        np.empty(0, np.int64),
        np.array([0, 3, 5]),
    )
    left_sets = np.zeros(32, np.uint8)
    left_sets[:2] = (1 << 1, 1 << (9 - 8))
    nodes = make_leaves(5) | {
        "columns": np.array([0, -1, 1, -1, -1], np.int32),
        "offsets": np.array([0, 0, -1, 0, 0], np.int32),
        "cuts": np.array([2, 0, 0, 0, 0], np.uint8),
        "missing_left": np.array([1, 0, 0, 0, 0], np.uint8),
        "sets": np.array([-1, -1, 0, -1, -1], np.int32),
        "lefts": np.array([1, -1, 3, -1, -1], np.int32),
        "values": np.array([9, 1, 9, 2, 4], np.float32),
    }
    forest = make_tree(nodes, left_sets)
    # Position 1 sees category 1 before it; position 3 begins a sequence and sees nothing.
    assert add_scores(forest, table)[:, 0].tolist() == [1, 2, 1, 4, 1]
    # The same tree for output 1 of 2, counting for half as much.
    other = {"outputs": np.array([1], np.int32), "tree_weights": np.array([0.5])}
    found = add_scores(make_tree(nodes, left_sets, 2, **other), table)
    assert found.T.tolist() == [[0] * 5, [0.5, 1, 0.5, 2, 0.5]]


@pytest.mark.parametrize("window", [(0, 0), (2, 1)])
@pytest.mark.parametrize("kinds", [(["few, some missing", "many"], []), (["few"], ["negative"])])
def test_few_rows_and_many_have_the_same_scores(kinds, window):
    rng = np.random.default_rng(0)
    lengths = np.concatenate([np.arange(1, 42), rng.integers(1, 90, 40)])
    table = make_table(*kinds, lengths, rng)
    forest = random_forest(table, window, 3, 10, rng)
    together = add_scores(forest, table)
    np.testing.assert_array_equal(add_scores(forest, table, n_threads=3), together)
    laid_out = np.zeros_like(together)
    forest.add_scores(_core.TreeData(table.to_kernel(), *window), laid_out, laid_out, 2)
    np.testing.assert_array_equal(laid_out, together)
    for begin, end in zip(table.offsets[:-1], table.offsets[1:], strict=True):
        alone = replace(table, bins=table.bins[begin:end], offsets=np.array([0, end - begin]))
        np.testing.assert_array_equal(add_scores(forest, alone), together[begin:end])


@pytest.mark.parametrize("window", [(0, 0), (2, 1)])
@pytest.mark.parametrize("max_splits", [2, 63, 64, 255, 256])  # leaves of a mask, and of a byte
@pytest.mark.parametrize("kind", ["dense", "attributes"])
def test_blocks_of_rows_are_walked_as_by_hand(kind, max_splits, window):
    # Each kind of column has its own walk; a block has 128 rows, and the rest is walked separately.
    rng = np.random.default_rng(max_splits)
    dense, attributes = list(COLUMNS)[:5], [name for name in ATTRIBUTES if name != "categories"]
    columns = (dense, []) if kind == "dense" else ([], attributes)
    table = make_table(*columns, [0, 110, 1, 0, 2, 40, 0], rng)
    forest = random_forest(table, window, 2, 2, rng, max_splits=max_splits)
    scores = rng.normal(size=(table.n_positions, 2))
    expected = walk_all(forest, table, scores)
    np.testing.assert_array_equal(add_scores(forest, table, scores), expected)
    np.testing.assert_array_equal(add_scores(forest, table, scores, n_threads=2), expected)


def test_many_trees_on_attributes():
    # More than are walked together: as if some were walked after the others.
    rng = np.random.default_rng(0)
    table = make_table([], ["there or not", "with missing"], [9, 4], rng)
    parts = [random_forest(table, (1, 1), 3, 400, rng) for _ in range(3)]
    scores = np.zeros((13, 3))
    for part in parts:
        scores = add_scores(part, table, scores)
    together = Forest.join(3, parts)
    assert len(together.outputs) > 2048 > max(len(part.outputs) for part in parts)
    np.testing.assert_array_equal(add_scores(together, table), scores)


def test_attributes_with_other_defaults():
    # The same trees on bins of attributes whose defaults, or numbers of bins, are different.
    rng = np.random.default_rng(0)
    table = make_table([], ["there or not", "negative and positive"], [40, 20], rng)
    forest = random_forest(table, (1, 1), 2, 5, rng)
    expected = walk_all(forest, table, np.zeros((60, 2)))
    others = [replace(table, defaults=np.array(d)) for d in ([2, 3], [0, 0], [1, 6])]
    for same in (table, *others, replace(table, n_bins=np.array([3, 6])), table):
        np.testing.assert_array_equal(add_scores(forest, same), expected)


def test_every_bin_goes_its_way():
    bins = np.arange(256)[:, None]
    empty = np.empty(0, np.int64)
    table = Table(bins, np.array([255]), np.array([False]), empty, np.array([0, 256]))
    for cut in (0, 1, 7, 254, 255):
        for missing_left in (0, 1):
            if cut == 0 and not missing_left:
                continue
            forest = make_stump(cuts=cut, missing_left=missing_left)
            left = np.where(bins == 0, missing_left == 1, bins <= cut)
            np.testing.assert_array_equal(add_scores(forest, table), np.where(left, 1.0, 2.0))


@pytest.mark.parametrize("offset", [-255, -3, 3, 255])
def test_windows_that_reach_beyond_every_sequence(offset):
    table = make_table(["few"], ["there or not"], [1, 2, 3], np.random.default_rng(0))
    for column in (0, 1):
        forest = make_stump(columns=column, offsets=offset, cuts=1)
        assert (add_scores(forest, table) == 2.0).all()  # missing, to the right


def test_deep_trees():
    table = make_table(["many"], [], [100], np.random.default_rng(0))
    n_splits = 254  # bin 1, bin 2, ..., one below the other
    n = 2 * n_splits + 1
    arrays = make_leaves(n)
    nodes = np.concatenate([[0], 2 * np.arange(1, n_splits)])
    arrays["columns"][nodes] = 0
    arrays["cuts"][nodes] = np.arange(1, n_splits + 1)
    arrays["lefts"][nodes] = 2 * np.arange(n_splits) + 1
    leaves = np.append(2 * np.arange(n_splits) + 1, n - 1)
    arrays["values"][leaves] = np.arange(1, n_splits + 2)
    expected = np.where(table.bins == 0, 255, table.bins)  # missing values go right all the way
    np.testing.assert_array_equal(add_scores(make_tree(arrays), table), expected)


def test_no_trees_and_trees_of_one_leaf():
    table = make_table(["few"], [], [3], np.random.default_rng(0))
    scores = np.random.default_rng(0).normal(size=(3, 2))
    np.testing.assert_array_equal(add_scores(Forest.join(2, []), table, scores), scores)
    no_columns = make_table([], [], [3], np.random.default_rng(0))
    forest = make_tree(make_leaves(1) | {"values": np.array([0.5], np.float32)})
    assert add_scores(forest, no_columns).tolist() == [[0.5]] * 3
    assert add_scores(forest, table).tolist() == [[0.5]] * 3
    no_rows = make_table(["few"], [], [], np.random.default_rng(0))
    assert add_scores(forest, no_rows).shape == (0, 1)


def test_many_attributes_few_of_them_asked_for():
    # Attributes far apart and side by side, at several offsets: each has its own number.
    rng = np.random.default_rng(0)
    n_attributes = 3000
    bins = np.where(rng.random((40, n_attributes)) < 0.3, 2, 1)
    flags, ones = np.zeros(n_attributes, np.bool_), np.ones(n_attributes, np.int64)
    table = Table(bins, 2 * ones, flags, ones, np.array([0, 25, 40]))
    asked = np.concatenate([np.arange(200), rng.integers(0, n_attributes, 400)])
    stumps = [make_stump(columns=c, offsets=c % 3 - 1, cuts=1) for c in asked]
    expected = sum(np.where(table.look(c, c % 3 - 1) == 1, 1.0, 2.0) for c in asked)
    np.testing.assert_array_equal(add_scores(Forest.join(1, stumps), table)[:, 0], expected)


def test_bins_of_another_kind_of_columns():
    # What matters is the number of a column, be it dense or an attribute, in any order of calls.
    sparse = make_table(["few", "many"], ["there or not"], [30], np.random.default_rng(0))
    dense = replace(sparse, defaults=np.empty(0, np.int64))
    forest = random_forest(sparse, (1, 1), 2, 5, np.random.default_rng(0))
    expected = walk_all(forest, sparse, np.zeros((30, 2)))
    for table in (sparse, dense, sparse):
        np.testing.assert_array_equal(add_scores(forest, table), expected)


def make_forest(seed=0, n_outputs=2, n_rounds=3):
    rng = np.random.default_rng(seed)
    table = make_table(["few", "categories"], ["there or not"], [9, 30], np.random.default_rng(1))
    return random_forest(table, (1, 1), n_outputs, n_rounds, rng), table


@given(forests(), st.integers(0, 2**32))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_joining_adds_up_scores_in_order(made, seed):
    first, table, scores = made
    rng = np.random.default_rng(seed)
    parts = [first, *(random_forest(table, (1, 1), first.n_outputs, n, rng) for n in (0, 2, 1))]
    joined = Forest.join(first.n_outputs, parts)
    assert joined.n_trees == sum(part.n_trees for part in parts)
    assert joined.n_rounds == sum(part.n_rounds for part in parts)
    assert joined.n_columns == max(part.n_columns for part in parts)
    expected = scores
    for forest in parts:
        expected = add_scores(forest, table, expected)
    np.testing.assert_array_equal(add_scores(joined, table, scores), expected)
    sizes = [size for part in parts for size in np.diff(part.round_offsets)]
    assert np.diff(joined.round_offsets).tolist() == sizes
    assert_same_forest(Forest.join(first.n_outputs, [first]), first)
    assert_same_forest(Forest(joined.arrays(), first.n_outputs), joined)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(forests())
def test_rounds_that_are_split_can_be_joined_again(made):
    forest, table, scores = made
    rounds = split_rounds(forest)
    assert [each.n_rounds for each in rounds] == [1] * forest.n_rounds
    joined = Forest.join(forest.n_outputs, rounds)
    for name in set(ARRAYS) - {"sets", "left_sets"}:  # sets may be in another order
        np.testing.assert_array_equal(getattr(joined, name), getattr(forest, name))
    expected = add_scores(forest, table, scores)
    np.testing.assert_array_equal(add_scores(joined, table, scores), expected)


def test_forests_of_other_outputs_are_not_joined():
    forest, _ = make_forest()
    with pytest.raises(ValueError, match="forests with different numbers of outputs cannot"):
        Forest.join(3, [forest])


def test_scaling():
    forest, table = make_forest()
    half = forest.scaled(0.5)
    np.testing.assert_array_equal(add_scores(half, table), add_scores(forest, table) * 0.5)
    np.testing.assert_array_equal(half.scaled(4.0).tree_weights, 2.0 * forest.tree_weights)
    assert half.values.ctypes.data == forest.values.ctypes.data  # shared
    assert_same_forest(forest, make_forest()[0])  # left as it was
    assert_same_forest(Forest.join(2, [forest, half]).scaled(2.0), scale_by_hand(forest))


def scale_by_hand(forest):
    arrays = Forest.join(2, [forest, forest]).arrays()
    weights = np.concatenate([2.0 * forest.tree_weights, forest.tree_weights])
    return Forest(arrays | {"tree_weights": weights}, 2)


def test_arrays_are_views_that_cannot_be_written_and_outlive_the_forest():
    forest, _ = make_forest()
    arrays = forest.arrays()
    assert arrays.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        assert array.dtype == ARRAYS[name]
        assert not array.flags.writeable or not len(array)
        assert getattr(forest, name).ctypes.data == array.ctypes.data or not len(array)
    copies = {name: array.copy() for name, array in arrays.items()}
    del forest
    gc.collect()
    make_forest(1)  # would take the place of what is gone
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, copies[name])


def test_a_forest_is_independent_of_the_arrays_it_was_made_from():
    forest, _ = make_forest()
    arrays = {name: array.copy() for name, array in forest.arrays().items()}
    again = Forest(arrays, 2)
    for array in arrays.values():
        array[:] = 0
    assert_same_forest(again, forest)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda forest: pickle.loads(pickle.dumps(forest))]
)
def test_pickles_and_copies(duplicate):
    forest, table = make_forest()
    again = duplicate(forest.scaled(0.5))
    assert_same_forest(again, forest.scaled(0.5))
    assert again.n_outputs == 2
    np.testing.assert_array_equal(add_scores(again, table), add_scores(forest, table) * 0.5)


def test_threads_walk_scale_and_pickle_a_forest_at_once():
    forest, table = make_forest(n_rounds=20)
    fresh = Forest(forest.arrays(), 2)  # has not been walked yet
    expected = add_scores(forest, table)

    def work():
        again = (pickle.loads(pickle.dumps(fresh.scaled(1.0))) for _ in range(5))
        return [add_scores(each, table) for twin in again for each in (fresh, twin)]

    for found in run_at_once([work] * 4):
        for scores in found:
            np.testing.assert_array_equal(scores, expected)


def test_rounds_of_trees():
    forest, _ = make_forest()
    expected = [r for r in range(3) for _ in range(*forest.round_offsets[r : r + 2])]
    assert tree_rounds(forest).tolist() == expected


def test_which_way_bins_go():
    forest, table = make_forest(n_rounds=10)
    splits = np.flatnonzero(forest.columns >= 0)
    nodes = [node for tree in read_trees(forest.arrays()) for node in tree]
    for seed in range(5):
        draws = np.random.default_rng(seed).integers(0, 256, len(splits)).astype(np.uint8)
        bins = np.minimum(draws, table.n_bins[forest.columns[splits]]).astype(np.uint8)
        outside = (draws % 5 == 0) & (forest.offsets[splits] != 0)
        seen = np.where(outside, OUTSIDE, bins.astype(np.int64)).tolist()
        expected = [b in nodes[n].left_bins for n, b in zip(splits, seen, strict=True)]
        assert goes_left(forest, splits, bins, outside).tolist() == expected


def test_importances():
    forest, _ = make_forest(n_rounds=20)
    offsets, gains = importances(forest, 3)
    assert offsets.tolist() == [-1, 0, 1]
    expected = np.zeros((3, 3))
    for n in np.flatnonzero(forest.columns >= 0):
        expected[forest.offsets[n] + 1, forest.columns[n]] += forest.gains[n]
    np.testing.assert_allclose(gains, expected)
    offsets, gains = importances(Forest.join(2, []), 4)
    assert (offsets.tolist(), gains.tolist()) == ([0], [[0.0] * 4])


def test_bins_and_scores_must_fit_the_forest():
    forest, table = make_forest()
    bins = table.to_kernel()
    good = np.zeros((table.n_positions, 2))
    other = make_table(["few"], ["there or not"], [9, 30], np.random.default_rng(1))
    with pytest.raises(ValueError, match="the trees split on columns that do not exist"):
        forest.add_scores(other.to_kernel(), good, good, 1)
    for wrong in (good[:, :1].copy(), good[:-1]):
        with pytest.raises(ValueError, match="scores must have a row for each position and a col"):
            forest.add_scores(bins, wrong, good, 1)
        with pytest.raises(ValueError, match="out must have the shape of scores"):
            forest.add_scores(bins, good, wrong, 1)
