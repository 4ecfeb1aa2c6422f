"""Forests: scores as if every tree were walked by hand, and trees that are none refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import _core
from hedgerow.trees.forest import NODE_ARRAYS, Forest
from reference.columns import learn
from reference.tables import COLUMNS, make_table, tables, windows
from reference.trees import Table, read_trees, walk

WALKED = ("columns", "offsets", "cuts", "missing_left", "sets", "lefts", "values", "left_sets")


def random_forest(table, window, n_labels, n_rounds, rng, max_splits=7):
    """Trees that ask anything of the columns of a table."""
    arrays = {name: [] for name in NODE_ARRAYS}
    tree_offsets, left_sets = [0], []
    for _ in range(n_labels * n_rounds):
        n_splits = int(rng.integers(0, max_splits + 1))
        n_nodes = 2 * n_splits + 1
        tree = {name: np.zeros(n_nodes, dtype) for name, dtype in NODE_ARRAYS.items()}
        tree["columns"][:] = tree["sets"][:] = tree["lefts"][:] = -1
        tree["values"][:] = rng.normal(size=n_nodes)
        leaves = [0]
        for split in range(n_splits):
            node, left = leaves.pop(rng.integers(len(leaves))), 2 * split + 1
            leaves += [left, left + 1]
            tree["columns"][node] = column = rng.integers(table.bins.shape[1])
            tree["offsets"][node] = rng.integers(-window[0], window[1] + 1)
            tree["lefts"][node] = left
            tree["gains"][node] = rng.random()
            if table.categorical[column]:
                tree["sets"][node] = len(left_sets)
                left_sets.append(rng.integers(0, 256, 32))
            else:
                tree["missing_left"][node] = rng.integers(2)
                least = 1 - tree["missing_left"][node]
                tree["cuts"][node] = rng.integers(least, table.n_bins[column] + 1)
        for name, array in tree.items():
            arrays[name].append(array)
        tree_offsets.append(tree_offsets[-1] + n_nodes)
    return Forest(
        n_labels,
        np.array(tree_offsets),
        left_sets=np.array(left_sets, np.uint8).reshape(-1),
        **{
            name: np.concatenate([np.empty(0, NODE_ARRAYS[name]), *a]) for name, a in arrays.items()
        },
    )


def kernel_of(forest, table, **changes):
    arguments = {
        "tree_offsets": forest.tree_offsets,
        "tree_labels": np.arange(forest.n_trees, dtype=np.int32) % np.int32(forest.n_labels),
        **{name: getattr(forest, name) for name in WALKED},
        "n_dense": table.n_dense,
        "n_attributes": len(table.defaults),
        "n_labels": forest.n_labels,
    }
    return _core.Forest(**(arguments | changes))


def add_scores(forest, table, scores=None, n_threads=1):
    scores = np.zeros((table.n_positions, forest.n_labels)) if scores is None else scores
    out = np.full_like(scores, np.nan)
    kernel_of(forest, table).add_scores(table.to_kernel(), scores, out, n_threads)
    return out


def walk_all(forest, table, scores):
    """Scores, tree by tree."""
    out = scores.copy()
    for number, nodes in enumerate(read_trees(vars(forest))):
        for t in range(table.n_positions):
            out[t, number % forest.n_labels] += float(nodes[walk(table, nodes, t)].value)
    return out


@st.composite
def forests(draw, max_rounds=6):
    table, window = draw(tables()), draw(windows)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_labels, n_rounds = draw(st.integers(1, 4)), draw(st.integers(0, max_rounds))
    forest = random_forest(table, window, n_labels, n_rounds, rng)
    return forest, table, rng.normal(size=(table.n_positions, n_labels))


@settings(deadline=None, derandomize=True)
@given(forests(), st.integers(1, 3))
def test_scores_are_those_of_a_walk_by_hand(made, n_threads):
    forest, table, scores = made
    expected = walk_all(forest, table, scores)
    np.testing.assert_array_equal(add_scores(forest, table, scores, n_threads), expected)
    kernel_of(forest, table).add_scores(table.to_kernel(), scores, scores, n_threads)
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
    forest = Forest(
        1,
        np.array([0, 5]),
        columns=np.array([0, -1, 1, -1, -1], np.int32),
        offsets=np.array([0, 0, -1, 0, 0], np.int32),
        cuts=np.array([2, 0, 0, 0, 0], np.uint8),
        missing_left=np.array([1, 0, 0, 0, 0], np.uint8),
        sets=np.array([-1, -1, 0, -1, -1], np.int32),
        lefts=np.array([1, -1, 3, -1, -1], np.int32),
        values=np.array([9, 1, 9, 2, 4], np.float32),
        gains=np.zeros(5, np.float32),
        weights=np.zeros(5, np.float32),
        left_sets=left_sets,
    )
    # Position 1 sees category 1 before it; position 3 begins a sequence and sees nothing.
    assert add_scores(forest, table)[:, 0].tolist() == [1, 2, 1, 4, 1]


@pytest.mark.parametrize("window", [(0, 0), (2, 1)])
@pytest.mark.parametrize("kinds", [(["few, some missing", "many"], []), (["few"], ["negative"])])
def test_few_rows_and_many_have_the_same_scores(kinds, window):
    rng = np.random.default_rng(0)
    lengths = np.concatenate([np.arange(1, 42), rng.integers(1, 90, 40)])
    table = make_table(*kinds, lengths, rng)
    forest = random_forest(table, window, 3, 10, rng)
    together = add_scores(forest, table)
    np.testing.assert_array_equal(add_scores(forest, table, n_threads=3), together)
    for begin, end in zip(table.offsets[:-1], table.offsets[1:], strict=True):
        alone = replace(table, bins=table.bins[begin:end], offsets=np.array([0, end - begin]))
        np.testing.assert_array_equal(add_scores(forest, alone), together[begin:end])


def test_every_bin_goes_its_way():
    bins = np.arange(256)[:, None]
    empty = np.empty(0, np.int64)
    table = Table(bins, np.array([255]), np.array([False]), empty, np.array([0, 256]))
    for cut in (0, 1, 7, 254, 255):
        for missing_left in (0, 1):
            if cut == 0 and not missing_left:
                continue
            forest = stump(table, cuts=cut, missing_left=missing_left)
            left = np.where(bins == 0, missing_left == 1, bins <= cut)
            np.testing.assert_array_equal(add_scores(forest, table), np.where(left, 1.0, 2.0))


def stump(table, **root):
    """A tree of one split: 1 on its left, 2 on its right."""
    arrays = {name: np.zeros(3, dtype) for name, dtype in NODE_ARRAYS.items()}
    arrays["columns"][1:] = arrays["sets"][:] = arrays["lefts"][1:] = -1
    arrays["lefts"][0] = 1
    arrays["values"][1:] = [1, 2]
    for name, value in root.items():
        arrays[name][0] = value
    return Forest(1, np.array([0, 3]), left_sets=np.empty(0, np.uint8), **arrays)


@pytest.mark.parametrize("offset", [-255, -3, 3, 255])
def test_windows_that_reach_beyond_every_sequence(offset):
    table = make_table(["few"], ["there or not"], [1, 2, 3], np.random.default_rng(0))
    for column in (0, 1):
        forest = stump(table, columns=column, offsets=offset, cuts=1)
        assert (add_scores(forest, table) == 2.0).all()  # missing, to the right


def test_deep_trees():
    table = make_table(["many"], [], [100], np.random.default_rng(0))
    n_splits = 254  # bin 1, bin 2, ..., one below the other
    n = 2 * n_splits + 1
    arrays = {name: np.zeros(n, dtype) for name, dtype in NODE_ARRAYS.items()}
    arrays["columns"][:] = arrays["sets"][:] = arrays["lefts"][:] = -1
    nodes = np.concatenate([[0], 2 * np.arange(1, n_splits)])
    arrays["columns"][nodes] = 0
    arrays["cuts"][nodes] = np.arange(1, n_splits + 1)
    arrays["lefts"][nodes] = 2 * np.arange(n_splits) + 1
    arrays["values"][nodes + 1] = 0
    leaves = np.append(2 * np.arange(n_splits) + 1, n - 1)
    arrays["values"][leaves] = np.arange(1, n_splits + 2)
    forest = Forest(1, np.array([0, n]), left_sets=np.empty(0, np.uint8), **arrays)
    expected = np.where(table.bins == 0, 255, table.bins)  # missing values go right all the way
    np.testing.assert_array_equal(add_scores(forest, table), expected)


def test_no_trees_and_trees_of_one_leaf():
    table = make_table(["few"], [], [3], np.random.default_rng(0))
    scores = np.random.default_rng(0).normal(size=(3, 2))
    nothing = Forest.join(2, [])
    np.testing.assert_array_equal(add_scores(nothing, table, scores), scores)
    no_columns = make_table([], [], [3], np.random.default_rng(0))
    leaf = {name: np.zeros(1, dtype) for name, dtype in NODE_ARRAYS.items()}
    leaf |= {"columns": np.array([-1], np.int32), "values": np.array([0.5], np.float32)}
    forest = Forest(1, np.array([0, 1]), left_sets=np.empty(0, np.uint8), **leaf)
    assert add_scores(forest, no_columns).tolist() == [[0.5]] * 3
    assert add_scores(forest, table).tolist() == [[0.5]] * 3
    no_rows = make_table(["few"], [], [], np.random.default_rng(0))
    assert add_scores(forest, no_rows).shape == (0, 1)


def make_forest(seed=0, n_labels=2, n_rounds=3):
    rng = np.random.default_rng(seed)
    table = make_table(["few", "categories"], ["there or not"], [9, 30], np.random.default_rng(1))
    return random_forest(table, (1, 1), n_labels, n_rounds, rng), table


def test_joining_adds_up_scores_in_order():
    (first, table), (second, _), (third, _) = (make_forest(s, n_rounds=s + 1) for s in range(3))
    joined = Forest.join(2, [first, second, third])
    assert (joined.n_trees, joined.n_rounds) == (12, 6)
    scores = np.random.default_rng(0).normal(size=(table.n_positions, 2))
    expected = scores
    for forest in (first, second, third):
        expected = add_scores(forest, table, expected)
    np.testing.assert_array_equal(add_scores(joined, table, scores), expected)
    for name, dtype in NODE_ARRAYS.items():
        assert getattr(joined, name).dtype == dtype
    assert joined.tree_offsets.dtype == np.int64
    alone = Forest.join(2, [first])
    for name in vars(alone):
        np.testing.assert_array_equal(getattr(alone, name), getattr(first, name))


def test_scaling():
    forest, table = make_forest()
    np.testing.assert_array_equal(
        add_scores(forest.scale(0.5), table), add_scores(forest, table) * 0.5
    )
    assert forest.scale(0.1).values.dtype == np.float32
    np.testing.assert_array_equal(forest.values, make_forest()[0].values)  # left as it was


def test_importances():
    forest, _ = make_forest(n_rounds=20)
    offsets, gains = forest.importances(3)
    assert offsets.tolist() == [-1, 0, 1]
    expected = np.zeros((3, 3))
    for n in np.flatnonzero(forest.columns >= 0):
        expected[forest.offsets[n] + 1, forest.columns[n]] += forest.gains[n]
    np.testing.assert_allclose(gains, expected)
    offsets, gains = Forest.join(2, []).importances(4)
    assert (offsets.tolist(), gains.tolist()) == ([0], [[0.0] * 4])


def test_the_walker_of_a_forest_knows_its_columns():
    X = np.random.default_rng(0).normal(size=(20, 2))
    columns, sequences = learn(X, 3)
    table = Table(
        columns.bin(sequences, 1).dense.astype(np.int64),
        columns.n_bins,
        columns.categorical,
        np.empty(0, np.int64),
        sequences.offsets,
    )
    forest = random_forest(table, (1, 0), 2, 3, np.random.default_rng(0))
    out = np.zeros((20, 2))
    forest.walker(columns).add_scores(columns.bins(sequences, 1), out, out, 1)
    np.testing.assert_array_equal(out, add_scores(forest, table))


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


# Two trees of labels 0 and 1: a split, of which the right child is split by categories; a leaf.
GOOD = {
    "tree_offsets": np.array([0, 5, 6]),
    "tree_labels": np.array([0, 1], np.int32),
    "columns": np.array([0, -1, 1, -1, -1, -1], np.int32),
    "offsets": np.array([1, 0, -1, 0, 0, 0], np.int32),
    "cuts": np.array([2, 0, 0, 0, 0, 0], np.uint8),
    "missing_left": np.zeros(6, np.uint8),
    "sets": np.array([-1, -1, 0, -1, -1, -1], np.int32),
    "lefts": np.array([1, -1, 3, -1, -1, -1], np.int32),
    "values": np.array([0, 1, 0, 2, 4, 8], np.float32),
    "left_sets": np.arange(32, dtype=np.uint8),
    "n_dense": 2,
    "n_attributes": 0,
    "n_labels": 2,
}
FAR = 2**62


def put(name, place, value):
    return {name: changed(GOOD[name], place, value)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (put("lefts", 0, 0), "tree 0: children do not come after their parent"),
        (put("lefts", 2, 1), "tree 0: children do not come after their parent"),
        (put("lefts", 2, 4), "tree 0: children do not come after their parent"),
        (put("lefts", 0, -1), "tree 0: children do not come after their parent"),
        (put("lefts", 0, 2**31 - 1), "tree 0: children do not come after their parent"),
        (put("lefts", 0, -(2**31)), "tree 0: children do not come after their parent"),
        (
            {
                "columns": changed(GOOD["columns"], 1, 0),
                "lefts": changed(GOOD["lefts"], 1, 3),
                "cuts": changed(GOOD["cuts"], 1, 1),
            },
            "tree 0: a node has two parents",
        ),
        (put("lefts", 0, 2), "tree 0: a node has no parent"),
        (put("columns", 2, -1), "tree 0: a node has no parent"),
        (put("columns", 0, 2), "tree 0: a column is out of range"),
        (put("columns", 2, 2**31 - 1), "tree 0: a column is out of range"),
        ({"n_dense": 0, "n_attributes": 1}, "tree 0: a column is out of range"),
        ({"n_dense": -1, "n_attributes": 3}, "there are fewer than no columns"),
        ({"n_dense": 3, "n_attributes": -1}, "there are fewer than no columns"),
        (put("offsets", 0, 256), "tree 0: an offset is out of range"),
        (put("offsets", 2, -256), "tree 0: an offset is out of range"),
        (put("offsets", 2, -(2**31)), "tree 0: an offset is out of range"),
        (put("sets", 2, 1), "tree 0: a set of bins is out of range"),
        (put("sets", 2, -2), "tree 0: a set of bins is out of range"),
        ({"left_sets": np.empty(0, np.uint8)}, "tree 0: a set of bins is out of range"),
        ({"left_sets": np.zeros(33, np.uint8)}, "a set of bins has 32 bytes"),
        (put("cuts", 0, 0), "tree 0: a split has nothing on its left"),
        (put("sets", 2, -1), "tree 0: a split has nothing on its left"),
        (put("values", 5, np.nan), "tree 1: a value is not finite"),
        (put("values", 0, np.inf), "tree 0: a value is not finite"),
        (put("tree_labels", 1, 2), "tree 1: its label is out of range"),
        (put("tree_labels", 0, -1), "tree 0: its label is out of range"),
        ({"n_labels": 1}, "tree 1: its label is out of range"),
        ({"n_labels": -1}, "tree 0: its label is out of range"),
        (put("tree_offsets", 0, 1), "trees do not begin at 0 and end at the number of nodes"),
        (put("tree_offsets", 2, 5), "trees do not begin at 0 and end at the number of nodes"),
        (put("tree_offsets", 2, FAR), "trees do not begin at 0 and end at the number of nodes"),
        (put("tree_offsets", 1, 0), "tree 0: it has no nodes"),
        (put("tree_offsets", 1, 6), "tree 0: a node has no parent"),
        (put("tree_offsets", 1, -1), "tree 0: it has no nodes"),
        (put("tree_offsets", 1, -FAR), "tree 0: it has no nodes"),
        (put("tree_offsets", 1, 7), "tree 0: it has no nodes"),
        (put("tree_offsets", 1, FAR), "tree 0: it has no nodes"),
        ({"tree_offsets": np.array([0, 6])}, "every tree needs a label"),
        ({"tree_offsets": np.empty(0, np.int64)}, "every tree needs a label"),
        ({"tree_labels": np.zeros(1, np.int32)}, "every tree needs a label"),
        *(
            ({name: GOOD[name][:-1]}, "arrays of trees must have an entry for each node")
            for name in WALKED[:-1]
        ),
    ],
)
def test_what_is_no_tree_is_refused(changes, message):
    _core.Forest(**GOOD)
    with pytest.raises(ValueError, match=message):
        _core.Forest(**(GOOD | changes))


@pytest.mark.parametrize(("n_nodes", "fits"), [(65_535, True), (65_537, False)])
def test_trees_have_at_most_65536_nodes(n_nodes, fits):
    columns = np.full(n_nodes, -1, np.int32)
    columns[: n_nodes // 2] = 0
    lefts = np.where(columns < 0, -1, 2 * np.arange(n_nodes) + 1).astype(np.int32)
    changes = {
        "tree_offsets": np.array([0, n_nodes]),
        "tree_labels": np.zeros(1, np.int32),
        "columns": columns,
        "lefts": lefts,
        "cuts": np.ones(n_nodes, np.uint8),
        "values": np.arange(n_nodes, dtype=np.float32),
        **{name: np.zeros(n_nodes, np.int32) for name in ("offsets", "sets")},
        "missing_left": np.zeros(n_nodes, np.uint8),
        "n_labels": 1,
    }
    changes["sets"] -= 1
    if not fits:
        with pytest.raises(ValueError, match="tree 0: it has too many nodes"):
            _core.Forest(**(GOOD | changes))
        return
    forest = _core.Forest(**(GOOD | changes))
    table = make_table(["few", "few"], [], [1], np.random.default_rng(0))
    bins = replace(table, bins=np.array([[2, 1]])).to_kernel()
    out = np.zeros((1, 1))
    forest.add_scores(bins, out, out, 1)
    assert out[0, 0] == 65_534  # right, right, right, ...


def test_bins_and_scores_must_fit_the_forest():
    forest, table = make_forest()
    kernel, bins = kernel_of(forest, table), table.to_kernel()
    good = np.zeros((table.n_positions, 2))
    other = make_table(["few"], ["there or not"], [9, 30], np.random.default_rng(1))
    with pytest.raises(ValueError, match="the bins have other columns than the trees"):
        kernel.add_scores(other.to_kernel(), good, good, 1)
    for wrong in (good[:, :1].copy(), good[:-1]):
        with pytest.raises(ValueError, match="tables of positions and labels must have the same"):
            kernel.add_scores(bins, wrong, good, 1)
        with pytest.raises(ValueError, match="out must have the shape of scores"):
            kernel.add_scores(bins, good, wrong, 1)


def test_damaged_arrays_are_refused_or_harmless():
    rng = np.random.default_rng(0)
    table = make_table(list(COLUMNS)[:3], ["there or not", "negative"], [5, 9], rng)
    good = random_forest(table, (1, 1), 2, 4, rng)
    bins, scores = table.to_kernel(), np.zeros((14, 2))
    n_refused = 0
    for _ in range(400):
        arrays = {name: getattr(good, name).copy() for name in (*WALKED, "tree_offsets")}
        for _ in range(rng.integers(1, 4)):
            array = arrays[rng.choice(list(arrays))]
            if not len(array):
                continue
            kind = array.dtype
            place = rng.integers(len(array))
            if rng.random() < 0.5 or kind.kind == "f":
                raw = array.view(np.uint8)
                raw[place * kind.itemsize + rng.integers(kind.itemsize)] ^= 1 << rng.integers(8)
            else:
                array[place] = np.clip(int(array[place]) + rng.integers(-3, 4), 0, 255)
        out = np.zeros((14, 2))
        try:
            kernel_of(replace(good, **arrays), table).add_scores(bins, scores, out, 1)
        except ValueError:
            n_refused += 1
        else:
            assert np.isfinite(out).all()
    assert 100 < n_refused < 350
