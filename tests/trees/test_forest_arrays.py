"""Arrays that are not a valid forest are refused."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow.trees.forest import ARRAYS, Forest
from reference.forests import NODE_ARRAYS, NOTHING, make_leaves, make_tree
from reference.tables import make_table


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


# Two trees of outputs 0 and 1: a split, of which the right child is split by categories; a leaf.
GOOD = {
    "round_offsets": np.array([0, 2]),
    "tree_offsets": np.array([0, 5, 6]),
    "outputs": np.array([0, 1], np.int32),
    "tree_weights": np.ones(2),
    "columns": np.array([0, -1, 1, -1, -1, -1], np.int32),
    "offsets": np.array([1, 0, -1, 0, 0, 0], np.int32),
    "cuts": np.array([2, 0, 0, 0, 0, 0], np.uint8),
    "missing_left": np.zeros(6, np.uint8),
    "outside_left": np.zeros(6, np.uint8),
    "sets": np.array([-1, -1, 0, -1, -1, -1], np.int32),
    "lefts": np.array([1, -1, 3, -1, -1, -1], np.int32),
    "values": np.array([0, 1, 0, 2, 4, 8], np.float32),
    "gains": np.zeros(6, np.float32),
    "weights": np.zeros(6, np.float32),
    "left_sets": np.arange(32, dtype=np.uint8),
    **NOTHING,
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
        (put("columns", 1, -2), "tree 0: a column is below -1"),
        (put("offsets", 0, 511), "tree 0: an offset is out of range"),
        (put("offsets", 2, -256), "tree 0: an offset is out of range"),
        (put("offsets", 2, -(2**31)), "tree 0: an offset is out of range"),
        (put("sets", 2, 1), "tree 0: a set of bins is out of range"),
        (put("sets", 2, -2), "tree 0: a set of bins is out of range"),
        ({"left_sets": np.empty(0, np.uint8)}, "tree 0: a set of bins is out of range"),
        ({"left_sets": np.zeros(33, np.uint8)}, "a set of bins must have 32 bytes"),
        (put("cuts", 0, 0), "tree 0: a split has nothing on its left"),
        (put("sets", 2, -1), "tree 0: a split has nothing on its left"),
        (put("values", 5, np.nan), "tree 1: a value is not finite"),
        (put("values", 0, np.inf), "tree 0: a value is not finite"),
        (put("gains", 0, np.nan), "tree 0: a value is not finite"),
        (put("weights", 4, -np.inf), "tree 0: a value is not finite"),
        (put("outputs", 1, 2), "tree 1: its output is out of range"),
        (put("outputs", 0, -1), "tree 0: its output is out of range"),
        (put("tree_weights", 0, np.nan), "the weight of a tree is not finite"),
        (put("tree_weights", 1, -np.inf), "the weight of a tree is not finite"),
        ({"tree_weights": np.ones(3)}, "every tree needs a weight"),
        *(
            ({"round_offsets": np.array(rounds, np.int64)}, "rounds do not begin at 0 and end at")
            for rounds in ([], [0], [1, 2], [0, 1], [0, 3])
        ),
        ({"round_offsets": np.array([0, 2, 1, 2])}, "a round ends before it begins"),
        ({"round_offsets": np.array([0, -FAR, 2])}, "a round ends before it begins"),
        (put("tree_offsets", 0, 1), "trees do not begin at 0 and end at the number of nodes"),
        (put("tree_offsets", 2, 5), "trees do not begin at 0 and end at the number of nodes"),
        (put("tree_offsets", 2, FAR), "trees do not begin at 0 and end at the number of nodes"),
        (put("tree_offsets", 1, 0), "tree 0: it has no nodes"),
        (put("tree_offsets", 1, 6), "tree 0: a node has no parent"),
        (put("tree_offsets", 1, -1), "tree 0: it has no nodes"),
        (put("tree_offsets", 1, -FAR), "tree 0: it has no nodes"),
        (put("tree_offsets", 1, 7), "tree 0: it has no nodes"),
        (put("tree_offsets", 1, FAR), "tree 0: it has no nodes"),
        ({"tree_offsets": np.array([0, 6])}, "every tree needs an output"),
        ({"tree_offsets": np.empty(0, np.int64)}, "every tree needs an output"),
        ({"outputs": np.zeros(1, np.int32)}, "every tree needs an output"),
        *(
            ({name: GOOD[name][:-1]}, "arrays of trees must have an entry for each node")
            for name in NODE_ARRAYS
        ),
    ],
)
def test_what_is_no_tree_is_refused(changes, message):
    assert Forest(GOOD, 2, 2).n_columns == 2
    with pytest.raises(ValueError, match=message):
        Forest(GOOD | changes, 2, 2)


SURROGATES = {
    "surrogate_starts": np.array([0, 2, 2, 2, 2, 2, 2]),
    "surrogate_columns": np.array([1, 0], np.int32),
    "surrogate_offsets": np.array([0, 1], np.int32),
    "surrogate_cuts": np.array([0, 1], np.uint8),
    "surrogate_reversed": np.array([0, 1], np.uint8),
    "surrogate_sets": np.array([0, -1], np.int32),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fractions": np.full(5, 0.5, np.float32)}, "fractions must have an entry for each node"),
        *(
            ({"fractions": np.full(6, f, np.float32)}, "tree 0: a fraction is not between 0 and 1")
            for f in (-0.1, 1.1, np.nan)
        ),
        *(
            ({name: SURROGATES[name][:-1]}, "of surrogates must have an entry for each surrogate")
            for name in list(SURROGATES)[1:]
        ),
        ({"surrogate_starts": np.empty(0, np.int64)}, "are surrogates, but no surrogate_starts"),
        *(
            ({"surrogate_starts": np.array(starts)}, "surrogates do not belong to the nodes one")
            for starts in ([0, 2], [1, 2, 2, 2, 2, 2, 2], [0, 2, 1, 2, 2, 2, 2], [0] * 7)
        ),
        ({"surrogate_columns": np.array([1, 2], np.int32)}, "the column of a surrogate is out"),
        ({"surrogate_columns": np.array([1, -1], np.int32)}, "the column of a surrogate is out"),
        ({"surrogate_offsets": np.array([0, 511], np.int32)}, "the offset of a surrogate is out"),
        ({"surrogate_sets": np.array([1, -1], np.int32)}, "the set of a surrogate is out of range"),
    ],
)
def test_fractions_and_surrogates_that_make_no_sense_are_refused(changes, message):
    Forest(GOOD | SURROGATES, 2, 2)
    with pytest.raises(ValueError, match=message):
        Forest(GOOD | SURROGATES | changes, 2, 2)


@pytest.mark.parametrize(
    ("n_outputs", "n_columns", "message"),
    [
        (1, 2, "tree 1: its output is out of range"),
        (-1, 2, "tree 0: its output is out of range"),
        (2, 1, "tree 0: a column is out of range"),
        (2, -1, "tree 0: a column is out of range"),
    ],
)
def test_trees_that_need_more_outputs_or_columns_are_refused(n_outputs, n_columns, message):
    with pytest.raises(ValueError, match=message):
        Forest(GOOD, n_outputs, n_columns)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_missing_or_of_another_type(name):
    with pytest.raises(ValueError, match=f"the arrays of a forest lack {name}"):
        Forest({key: array for key, array in GOOD.items() if key != name}, 2)
    for wrong in (GOOD[name].astype(np.float16), GOOD[name][:, None], None):
        with pytest.raises(ValueError, match=f"{name} has the wrong type"):
            Forest(GOOD | {name: wrong}, 2)


@pytest.mark.parametrize(("n_nodes", "fits"), [(65_535, True), (65_537, False)])
def test_trees_have_at_most_65536_nodes(n_nodes, fits):
    columns = np.full(n_nodes, -1, np.int32)
    columns[: n_nodes // 2] = 0
    lefts = np.where(columns < 0, -1, 2 * np.arange(n_nodes) + 1).astype(np.int32)
    changes = {
        "columns": columns,
        "lefts": lefts,
        "cuts": np.ones(n_nodes, np.uint8),
        "values": np.arange(n_nodes, dtype=np.float32),
    }
    nodes = make_leaves(n_nodes) | changes
    if not fits:
        with pytest.raises(ValueError, match="tree 0: it has too many nodes"):
            make_tree(nodes)
        return
    forest = make_tree(nodes)
    table = make_table(["few", "few"], [], [1], np.random.default_rng(0))
    bins = replace(table, bins=np.array([[2, 1]])).to_kernel()
    out = np.zeros((1, 1))
    forest.add_scores(bins, out, out, 1)
    assert out[0, 0] == 65_534  # right, right, right, ...
