"""Column rules: monotone columns and columns that may meet, as the naive learner has them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import _core
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
from reference.tables import windows
from reference.tree_walks import read_trees
from reference.trees import ColumnRules, Rules, grow_tree


@st.composite
def constrained(draw):
    """A table, the examples of some labels, and rules of the columns for each of them."""
    table, labels = draw(learned())
    n_columns = table.bins.shape[1]
    ways = [st.sampled_from([0, 2] if flag else [-1, 0, 1, 2]) for flag in table.categorical]
    directions = draw(st.one_of(st.just(()), st.tuples(*[st.tuples(*ways)] * len(labels))))
    group = st.frozensets(st.integers(0, n_columns - 1), max_size=n_columns)
    groups = tuple(draw(st.lists(group, max_size=3)))
    if groups:  # no column is left out
        groups += (frozenset(range(n_columns)) - frozenset().union(*groups),)
    limit = 0 if groups else draw(st.integers(0, 2))
    own = directions or [()] * len(labels)
    return table, labels, [ColumnRules(each, groups, limit) for each in own]


def to_kernel(column_rules, n_columns):
    """The rules of all labels, as the kernel wants them."""
    first, more = column_rules[0], {}
    if first.directions:
        more["directions"] = np.array([each.directions for each in column_rules], np.int8)
    if first.groups:
        sizes = [len(group) for group in first.groups]
        more["group_offsets"] = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        flat = [column for group in first.groups for column in sorted(group)]
        more["group_columns"] = np.array(flat, np.int32)
    return _core.ColumnRules(n_columns=n_columns, max_columns=first.max_columns, **more)


def grow_constrained(table, window, labels, rules, column_rules, **more):
    in_kernel = to_kernel(column_rules, table.bins.shape[1])
    return grow(table, window, labels, rules, column_rules=in_kernel, **more)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    constrained(), windows, rules, st.sampled_from([(1.0, 1.0), (0.5, 0.7)]), st.integers(0, 2**32)
)
def test_trees_keep_to_the_rules_as_those_of_the_naive_learner(
    constrained, window, rules, shares, seed
):
    # One test, since drawing takes longer than all that is checked.
    check_trees(*constrained, window, rules)
    check_ways_of_the_columns(*constrained, window, rules, seed)
    check_columns_of_branches(*constrained, window, rules, shares)
    check_rules_that_bind_nothing(*constrained[:2], window, rules)


def check_trees(table, labels, column_rules, window, rules):
    """They have the splits of the naive learner."""
    found = read_trees(grow_constrained(table, window, labels, rules, column_rules))
    for tree, label, own in zip(found, labels, column_rules, strict=True):
        assert splits(tree) == splits(grow_tree(table, window, *label, rules, own))


def check_ways_of_the_columns(table, labels, column_rules, window, rules, seed):
    """Scores go their way, exactly: rounding is monotone too, of leaves and of sums."""
    in_kernel = to_kernel(column_rules, table.bins.shape[1])
    data = _core.TreeData(table.to_kernel(), *window)
    forest = grow_forest(data, labels, rules, in_kernel)
    rng = np.random.default_rng(seed)
    there = table.bins > 0
    moves = rng.integers(0, 4, table.bins.shape) * (rng.random(table.bins.shape) < 0.5)
    scores = score(table, forest, len(labels))
    for k, own in enumerate(column_rules):
        ways = np.array(own.directions or [0] * table.bins.shape[1])
        signs = np.where(np.abs(ways) == 1, ways, 0)
        moved = np.clip(table.bins + signs * moves, 1, table.n_bins)
        raised = replace(table, bins=np.where(there, moved, table.bins))
        assert (score(raised, forest, len(labels))[:, k] >= scores[:, k]).all()


def grow_forest(data, labels, rules, column_rules, n_rounds=3):
    """Trees of some rounds, each scaled; the examples of the labels take turns."""
    rounds = []
    for number in range(n_rounds):
        turned = [labels[(k + number) % len(labels)] for k in range(len(labels))]
        kernel_rules = _core.GrowthRules(**vars(rules))
        trees = _core.grow_trees(data, list_examples(turned), kernel_rules, 0, 1, column_rules)
        rounds.append(trees.scaled(0.3**number))
    return _core.Forest.join(len(labels), rounds)


def score(table, forest, n_labels):
    out = np.zeros((table.n_positions, n_labels))
    forest.add_scores(table.to_kernel(), out, out, 1)
    return out


def check_columns_of_branches(table, labels, column_rules, window, rules, shares):
    """They may meet, for any number of threads and in samples of the columns."""
    more = {"key": 5, "bytree": shares[0], "bynode": shares[1]}
    arrays, again = (
        grow_constrained(table, window, labels, rules, column_rules, n_threads=n, **more)
        for n in (1, 3)
    )
    assert_equal_arrays(arrays, again)
    for tree, own in zip(read_trees(arrays), column_rules, strict=True):
        for branch in branches(tree):
            assert all(own.direction(column) != 2 for column in branch)
            assert not own.groups or any(branch <= group for group in own.groups)
            assert not own.max_columns or len(branch) <= own.max_columns


def branches(tree, at=0, above=frozenset()):
    """The columns on the way to each leaf."""
    if tree[at].column < 0:
        return [above]
    below, left = above | {tree[at].column}, tree[at].left
    return [*branches(tree, left, below), *branches(tree, left + 1, below)]


def check_rules_that_bind_nothing(table, labels, window, rules):
    """They change nothing."""
    n_columns = table.bins.shape[1]
    everything = frozenset(range(n_columns))
    loose = ColumnRules((0,) * n_columns, (everything,))
    free = grow(table, window, labels, rules)
    bound = grow_constrained(table, window, labels, rules, [loose] * len(labels))
    assert_equal_arrays(free, bound)


def grow_one(table, label, column_rules, **changes):
    (tree,) = read_trees(grow_constrained(table, (0, 0), [label], Rules(**changes), [column_rules]))
    return tree


def test_a_worked_example():
    # Bins 1 1 2 2 3 3; gradients 0 0 -6 -6 -3 -3; curvatures 1; lambda 0: steps 0, 6 and 3.
    # 1 | 2 3 gains 0 + 324/4 - 324/6 = 27, and its steps are 0 and 4.5, whose middle is 2.25.
    # Below, 2 | 3 has the steps 6 and 3 in the wrong order.
    table, label = small_table([[1, 1, 2, 2, 3, 3]]), all_of([0, 0, -6, -6, -3, -3])
    rising = grow_one(table, label, ColumnRules((1,)), reg_lambda=0.0)
    assert [(node.value, node.gain) for node in rising] == [(3, 27), (0, 0), (4.5, 0)]
    # Falling, only 1 2 | 3 would do, whose steps are both 3: it gains nothing.
    (leaf,) = grow_one(table, label, ColumnRules((-1,)), reg_lambda=0.0)
    assert leaf.value == 3


def test_leaves_stay_on_their_side_of_the_middle():
    # Column 0 parts steps of 0 and 10 first, whose middle is 5; then column 1 parts the lower side
    # into -6 and 6, which is 5 at most, and that gains 36 + (2 * 6 * 5 - 5 * 5) - 0 = 71.
    table = small_table([[1, 1, 2, 2], [1, 2, 1, 1]])
    label = all_of([6, -6, -10, -10])
    rules = {"reg_lambda": 0.0, "max_leaves": 3}
    free, tree = (
        grow_one(table, label, ColumnRules(directions), **rules) for directions in ((), (1, 0))
    )
    assert [node.column for node in tree] == [0, 1, -1, -1, -1]
    assert sorted(node.value for node in free if node.column < 0) == [-6, 6, 10]
    assert sorted(node.value for node in tree if node.column < 0) == [-6, 5, 10]
    assert [tree[0].gain, tree[1].gain] == [100, 71]


BAD = {
    "n_columns": 3,
    "directions": np.zeros((2, 3), np.int8),
    "group_offsets": np.array([0, 2]),
    "group_columns": np.array([0, 2], np.int32),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_columns": -1, "directions": None}, "a number of columns is negative"),
        ({"max_columns": -1}, "a number of columns is negative"),
        ({"n_columns": 4}, "directions must have an entry for each output and column"),
        ({"directions": np.full((2, 3), 3, np.int8)}, "a direction is out of range"),
        ({"directions": np.full((2, 3), -2, np.int8)}, "a direction is out of range"),
        ({"group_columns": None}, "groups need both offsets and columns"),
        ({"group_offsets": np.array([0, 3])}, "offsets must run from 0 to"),
        ({"group_columns": np.array([0, 3], np.int32)}, "a column of a group is out of range"),
        ({"group_columns": np.array([-1, 2], np.int32)}, "a column of a group is out of range"),
        ({"group_columns": np.array([2, 0], np.int32)}, "group must be in ascending order"),
        ({"group_columns": np.array([2, 2], np.int32)}, "group must be in ascending order"),
    ],
)
def test_rules_that_make_no_sense(changes, message):
    _core.ColumnRules(**BAD)
    with pytest.raises(ValueError, match=message):
        _core.ColumnRules(**(BAD | changes))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ([ColumnRules((0, 1, 0))], "for a different number of columns"),
        ([ColumnRules((0, 1))] * 2, "for a different number of outputs"),
        ([ColumnRules((1, 0))], "a column of categories must not have a direction"),
    ],
)
def test_rules_for_other_data(own, message):
    table = replace(small_table([[1, 2], [1, 2]]), categorical=np.array([True, False]))
    in_kernel = to_kernel(own, len(own[0].directions))
    with pytest.raises(ValueError, match=message):
        grow(table, (0, 0), [all_of([1, -1])], Rules(), column_rules=in_kernel)
