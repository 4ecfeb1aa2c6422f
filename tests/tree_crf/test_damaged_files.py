"""Files of a TreeCRF that are damaged or make no sense are refused in words."""

import json
import re

import numpy as np
import pytest

import hedgerow
from hedgerow import ModelFileError, TreeCRF, persist
from reference.model_files import CHUNKS, changed, mutants, put, put_together, take_apart
from reference.model_files import FRAMES as PLAIN

WORDS = {"B-X": "begin", "I-X": "again", "O": "never"}
FRAMES = [
    frame.assign(word=[WORDS[label] for label in labels])
    for frame, labels in zip(PLAIN, CHUNKS, strict=True)
]


@pytest.fixture(scope="module")
def model():
    """It has everything that a file can hold."""
    return TreeCRF(
        n_rounds=3,
        max_depth=3,
        learning_rate=0.5,
        min_child_weight=0,
        min_split_gain=0,
        window=1,
        order=2,
        constraints="BIO",
    ).fit(FRAMES, CHUNKS)


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    model.save(path)
    return path.read_bytes()


def refuses(source, message):
    with pytest.raises(ModelFileError, match=re.escape(message)):
        hedgerow.load(source)


def first(data, condition):
    """A node that a condition on the arrays holds for."""
    _, state = take_apart(data)
    trees = {
        name.removeprefix("trees."): array
        for name, array in state.tensors.items()
        if name.startswith("trees.")
    }
    return int(np.flatnonzero(condition(trees))[0])


def is_split(trees):
    return trees["columns"] >= 0


def is_leaf(trees):
    return trees["columns"] < 0


NODE_TENSORS = [
    *("columns", "offsets", "cuts", "missing_left", "sets", "lefts", "values", "gains", "weights"),
]
TREE_TENSORS = ["round_offsets", "tree_offsets", "outputs", "tree_weights"]
ALL_TENSORS = [
    *(f"trees.{name}" for name in (*NODE_TENSORS, *TREE_TENSORS, "left_sets")),
    *("cuts.offsets", "cuts.values", "patterns.offsets", "patterns.labels", "patterns.weights"),
    *("constraints.start", "constraints.end", "names.text", "names.offsets"),
]


@pytest.mark.parametrize("name", ALL_TENSORS)
def test_arrays_that_are_missing_or_of_the_wrong_type(data, tmp_path, name):
    for change, message in (
        (None, f"{name} is missing"),
        (lambda array: array.astype(np.int16), f"{name} has the wrong type"),
        (lambda array: array[None], f"{name} has the wrong type"),
    ):
        kind, state = take_apart(data)
        if change is None:
            del state.tensors[name]
        else:
            state.tensors[name] = change(state.tensors[name])
        persist.write(tmp_path / "model", kind, state)
        refuses(tmp_path / "model", f"the file does not hold a valid model: {message}")


@pytest.mark.parametrize("name", NODE_TENSORS)
def test_a_node_too_few(data, tmp_path, name):
    kind, state = take_apart(data)
    changed(f"trees.{name}", lambda array: array[:-1])(state.tensors)
    persist.write(tmp_path / "model", kind, state)
    with pytest.raises(ModelFileError, match="arrays of trees must have an entry for each node"):
        hedgerow.load(tmp_path / "model")


# What to change: an array, the first node that a condition holds for, its value there; the message.
NODES = {
    "a column too many": ("columns", is_split, 5, "a column is out of range"),
    "a leaf with a column": ("columns", is_leaf, -2, "a column is below -1"),
    "a column that is huge": ("columns", is_split, 2**31 - 1, "a column is out of range"),
    "an offset too far": ("offsets", is_split, 256, "an offset is out of range"),
    "an offset too far back": ("offsets", is_split, -256, "an offset is out of range"),
    "a set too many": ("sets", lambda trees: trees["sets"] >= 0, 10**6, "a set of bins is out of"),
    "a set below all": ("sets", is_split, -2, "a set of bins is out of range"),
    "a child before its parent": ("lefts", is_split, -1, "children do not come after their"),
    "a child that is its parent": ("lefts", is_split, 0, "children do not come after their"),
    "a child too many": ("lefts", is_split, 10**6, "children do not come after their parent"),
    "a leaf that is split": (
        "columns",
        lambda trees: trees["columns"] < 0,
        0,
        "",  # whatever is noticed first
    ),
    "a split that is a leaf": ("columns", is_split, -1, "a node has no parent"),
    "a leaf that is not finite": (
        "values",
        lambda trees: trees["columns"] < 0,
        np.nan,
        "a value is not finite",
    ),
    "a split whose value is infinite": ("values", is_split, np.inf, "a value is not finite"),
    "a gain that is not finite": ("gains", is_split, np.nan, "a value is not finite"),
    "a weight that is not finite": ("weights", is_split, -np.inf, "a value is not finite"),
}


@pytest.mark.parametrize("case", NODES)
def test_nodes_that_make_no_sense(data, tmp_path, case):
    name, condition, value, message = NODES[case]
    kind, state = take_apart(data)
    changed(f"trees.{name}", put(first(data, condition), value))(state.tensors)
    persist.write(tmp_path / "model", kind, state)
    with pytest.raises(ModelFileError, match=f"does not hold a valid model: .*{message}"):
        hedgerow.load(tmp_path / "model")


def falling(array):
    array[:2] = array[1], array[0] - 1
    return array


# What to change: an array, how; the message.
ARRAYS = {
    "a tree too few": ("trees.tree_offsets", lambda array: array[:-1], "tree_weights has the"),
    "no offsets": ("trees.tree_offsets", lambda array: array[:0], "tree_weights has the wrong"),
    "no trees": ("trees.tree_offsets", lambda array: array[:1], "tree_weights has the wrong"),
    "a tree without an output": ("trees.outputs", lambda array: array[1:], "needs an output"),
    "an output too many": ("trees.outputs", put(1, 99), "tree 1: its output is out of range"),
    "an output below all": ("trees.outputs", put(0, -1), "tree 0: its output is out of range"),
    "a tree without a weight": (
        "trees.tree_weights",
        lambda array: array[1:],
        "trees.tree_weights has the wrong shape",
    ),
    "a tree's weight that is infinite": (
        "trees.tree_weights",
        put(0, np.inf),
        "trees.tree_weights is not finite",
    ),
    "a tree's weight beyond all bounds": (
        "trees.tree_weights",
        put(0, -1e200),
        "trees.tree_weights is beyond all bounds",
    ),
    "a round too few": ("trees.round_offsets", lambda array: array[:-1], "rounds do not begin at"),
    "no rounds at all": ("trees.round_offsets", lambda array: array[:0], "rounds do not begin at"),
    "a round that falls": ("trees.round_offsets", put(1, -5), "a round ends before it begins"),
    "trees that begin late": ("trees.tree_offsets", put(0, 1), "trees do not begin at 0 and end"),
    "trees that end late": ("trees.tree_offsets", put(-1, 10**6), "trees do not begin at 0 and"),
    "a tree without nodes": ("trees.tree_offsets", put(1, 0), "tree 0: it has no nodes"),
    "a tree that ends before it begins": ("trees.tree_offsets", put(1, -5), "tree 0: it has no"),
    "a tree that ends beyond all": (
        "trees.tree_offsets",
        put(1, 10**12),
        "tree 0: it has no nodes",
    ),
    "offsets that wrap around": ("trees.tree_offsets", put(1, -(2**63)), "tree 0: it has no nodes"),
    "fewer sets": ("trees.left_sets", lambda array: array[:0], "a set of bins is out of range"),
    "cuts that fall": ("cuts.values", falling, "cuts.values does not rise within a column"),
    "cuts that are equal": ("cuts.values", lambda array: 0 * array, "cuts.values does not rise"),
    "a cut that is not finite": ("cuts.values", put(0, np.nan), "cuts.values is not finite"),
    "a cut too few": ("cuts.values", lambda array: array[:-1], "cuts.offsets does not end with"),
    "cuts that begin late": ("cuts.offsets", put(0, 1), "cuts.offsets does not begin at 0"),
    "cuts whose offsets fall": ("cuts.offsets", put(1, 10**6), "cuts.offsets falls"),
    "a column too few": ("cuts.offsets", lambda array: array[1:] * 0, "cuts.offsets does not end"),
    "a label out of range": ("patterns.labels", put(0, 3), "patterns.labels is out of range"),
    "patterns that are too short": ("patterns.offsets", put(1, 1), "a pattern has fewer than two"),
    "a weight that is not finite": ("patterns.weights", put(0, np.nan), "patterns.weights is not"),
    "a weight too few": ("patterns.weights", lambda array: array[:-1], "patterns.weights has the"),
    "constraints of too few": ("constraints.end", lambda array: array[1:], "the constraints have"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_make_no_sense(data, tmp_path, case):
    name, change, message = ARRAYS[case]
    kind, state = take_apart(data)
    changed(name, change)(state.tensors)
    persist.write(tmp_path / "model", kind, state)
    with pytest.raises(ModelFileError, match=f"does not hold a valid model: .*{message}"):
        hedgerow.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda array: array[:-1], "a round lacks a tree"),
        (lambda array: array[:0], "a round lacks a tree"),
        (lambda array: array[:1], "trees do not begin at 0 and end"),
    ],
)
def test_older_formats_have_a_tree_for_each_label_in_every_round(data, tmp_path, change, message):
    kind, state = take_apart(data)
    state.metadata["format"] = 4
    for name in ("round_offsets", "outputs", "tree_weights"):
        del state.tensors[f"trees.{name}"]
    persist.write(tmp_path / "model", kind, state)
    assert hedgerow.load(tmp_path / "model").trees().keys() == hedgerow.load(data).trees().keys()
    changed("trees.tree_offsets", change)(state.tensors)
    persist.write(tmp_path / "model", kind, state)
    with pytest.raises(ModelFileError, match=f"does not hold a valid model: .*{message}"):
        hedgerow.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": None}, "its loss"),
        ({"loss": "low"}, "its loss"),
        ({"best_round": "first"}, "its best round"),
        ({"best_round": [1]}, "its best round"),
        ({"best_round": np.inf}, "the number Infinity"),
        ({"best_round": 10**400}, "its best round"),
        ({"warm_rounds": "some"}, "its warm rounds"),
        ({"warm_rounds": -1}, "its warm rounds"),
        ({"warm_rounds": 10**9}, "its warm rounds"),
        ({"history": 5}, "its history"),
        ({"sparse": None}, "whether its columns are sparse"),
        ({"sparse": True}, "sparse columns and text columns"),
        ({"categories": None}, "its categories"),
        ({"categories": []}, "categories of its text columns"),
        ({"categories": [["minus", "plus"], ["begin", "again"]]}, "categories out of order"),
        ({"categories": [[1, 2]]}, "a category that is not text"),
        ({"categories": [[], [], []]}, "categories of its text columns"),
        ({"parameters": {"depth": 3}}, "unknown parameters"),
        ({"classes": {"dtype": "<U3", "labels": ["B-X", "I-X"]}}, ""),
        ({"schema": None}, "TypeError"),
    ],
    ids=repr,
)
def test_metadata_that_make_no_sense(data, changes, message):
    kind, state = take_apart(data)
    content = {"format": 3, "model": kind, **state.metadata, **changes}
    with pytest.raises(ModelFileError, match=f"does not hold a valid model: .*{message}"):
        hedgerow.load(put_together(state.tensors, content))


@pytest.mark.parametrize(
    "name", ["loss", "best_round", "warm_rounds", "history", "sparse", "categories"]
)
def test_metadata_that_are_missing(data, name):
    kind, state = take_apart(data)
    content = {"format": 3, "model": kind, **state.metadata}
    del content[name]
    refuses(put_together(state.tensors, content), "the file does not hold a valid model: ")


def test_a_file_of_another_kind_of_model(data):
    _, state = take_apart(data)
    content = {"format": 3, "model": "LinearCRF", **state.metadata}
    refuses(put_together(state.tensors, content), "the file does not hold a valid model: ")


def signed_mutants(data, count):
    """Copies with a right checksum, some numbers or bytes of which are others."""
    rng = np.random.default_rng(1)
    kind, state = take_apart(data)
    names = sorted(state.tensors)
    odd = [-1, 0, 1, 2, 255, 256, -(2**31), 2**31 - 1, 2**62, -(2**62)]
    for number in range(count):
        tensors = dict(state.tensors)
        metadata = json.loads(json.dumps(state.metadata))
        for _ in range(int(rng.integers(1, 4))):
            name = names[int(rng.integers(len(names)))]
            array = tensors[name].copy()
            if not array.size:
                continue
            at = int(rng.integers(array.size))
            match number % 5:
                case 0:
                    array.view(np.uint8).ravel()[int(rng.integers(array.nbytes))] ^= 1 << int(
                        rng.integers(8)
                    )
                case 1:
                    value = odd[int(rng.integers(len(odd)))]
                    array.ravel()[at] = np.array(value).astype(array.dtype)
                case 2:
                    array = np.delete(array, at % len(array), axis=0)
                case 3:
                    array = np.repeat(array, rng.integers(1, 3, len(array)), axis=0)
                case 4:
                    array = rng.permuted(array, axis=0)
            tensors[name] = array
        yield put_together(tensors, {"format": 3, "model": kind, **metadata})


def test_damaged_files_are_refused_or_do_no_harm(model, data):
    expected = model.predict_proba(FRAMES)
    n_refused = 0
    for mutant in mutants(data, 1000):
        try:
            loaded = hedgerow.load(mutant)
        except ModelFileError:
            n_refused += 1
        else:
            np.testing.assert_array_equal(loaded.predict_proba(FRAMES), expected)
    assert n_refused > 950


def test_files_that_pass_the_checksum_are_refused_or_can_be_used(data):
    n_refused = 0
    for mutant in signed_mutants(data, 1000):
        try:
            loaded = hedgerow.load(mutant)
        except ModelFileError:
            n_refused += 1
            continue
        try:
            marginals = loaded.predict_proba(FRAMES)
        except ValueError:  # constraints that leave no labelling
            continue
        assert np.isfinite(marginals).all()
        assert loaded.importances()["gain"].ndim == 1
    assert 300 < n_refused < 1000
