"""Model files with inconsistent arrays are refused with a clear error."""

import re

import numpy as np
import pytest

import hedgerow
from hedgerow import LinearCRF, ModelFileError, TreeCRF
from reference.estimators import ESTIMATORS
from reference.model_files import (
    CHUNKS,
    FRAMES,
    FULL,
    INVALID,
    alter,
    changed,
    file_of,
    put,
    refuses_file,
    take_apart,
)
from reference.trainings import saved

NODE_TENSORS = [
    *("columns", "offsets", "cuts", "missing_left", "outside_left", "sets"),
    *("lefts", "values", "gains", "weights"),
]
TENSORS = [
    *("patterns.offsets", "patterns.labels", "patterns.weights"),
    *("constraints.start", "constraints.end", "names.text", "names.offsets"),
]
OWN_TENSORS = {
    LinearCRF: [
        *("attributes.offsets", "attributes.labels", "attributes.weights", "labels.weights"),
        *("edges.pairs", "edges.weights"),
    ],
    TreeCRF: [
        *(f"trees.{name}" for name in (*NODE_TENSORS, "left_sets", "tree_offsets", "tree_weights")),
        *("trees.round_offsets", "trees.outputs", "cuts.offsets", "cuts.values"),
    ],
}
# Of these every estimator checks the numbers.
WEIGHTS = {
    LinearCRF: ["attributes.weights", "labels.weights", "edges.weights", "patterns.weights"],
    TreeCRF: ["trees.tree_weights", "patterns.weights"],
}
# Offsets that fall, though the differences of neighbours, as 64-bit integers, do not.
WRAPPING = [5 * 10**18, -5 * 10**18]


def keep(places):
    """Only some places of an array, or in another order."""
    return lambda array: array[places]


def convert(dtype):
    return lambda array: array.astype(dtype)


without_first, without_last, without_all = keep(slice(1, None)), keep(slice(-1)), keep(slice(0))
backwards, one_axis_more = keep(slice(None, None, -1)), keep(None)


# What to do with which array, and the message.
ARRAYS = [
    ("patterns.offsets", put(0, 1), "patterns.offsets does not begin at 0"),
    ("patterns.offsets", without_all, "patterns.offsets does not begin at 0"),
    ("patterns.offsets", put(-1, 1000), "patterns.offsets does not fit the patterns"),
    ("patterns.labels", without_last, "patterns.offsets does not fit the patterns"),
    *(
        ("patterns.offsets", put(at, value), "a pattern has fewer than two labels")
        for at, value in ((1, 1), (1, 0), (1, -1), (2, 1000), (slice(1, 3), WRAPPING))
    ),
    ("patterns.labels", put(0, -1), "patterns.labels is out of range"),
    ("patterns.labels", put(-1, 3), "patterns.labels is out of range"),
    ("patterns.labels", lambda array: array[[0, 1, 0, 1, *range(4, len(array))]], "a pattern occ"),
    ("constraints.allowed", keep(0), "constraints.allowed has the wrong type"),
    ("constraints.allowed", convert(np.uint8), "constraints.allowed has the wrong"),
    ("constraints.allowed", keep((slice(None), slice(2))), "the constraints have the wrong shape"),
    ("constraints.allowed", without_last, "the constraints have the wrong shape"),
    ("constraints.start", without_last, "the constraints have the wrong shape"),
    ("constraints.end", without_first, "the constraints have the wrong shape"),
]
OWN_ARRAYS = {
    LinearCRF: [
        (
            "names.offsets",
            put(0, 1),
            "its attribute names are not valid (name offsets must run from 0",
        ),
        (
            "names.offsets",
            put(-1, 5),
            "its attribute names are not valid (name offsets must run from 0",
        ),
        ("names.offsets", without_all, "its attribute names are not valid (name offsets must run"),
        (
            "names.offsets",
            put(1, 40),
            "its attribute names are not valid (name offsets must not decrease",
        ),
        (
            "names.offsets",
            put(1, -1),
            "its attribute names are not valid (name offsets must not decrease",
        ),
        (
            "names.text",
            put(0, 255),
            "its attribute names are not valid ('utf-8' codec can't decode",
        ),
        (
            "names.offsets",
            lambda array: array[[0, 0, 0, *range(3, len(array))]],
            "its attribute names are not valid (a name occurs twice",
        ),
        ("attributes.offsets", without_last, "attributes.offsets does not fit the attribute names"),
        ("edges.offsets", without_first, "edges.offsets does not fit the attribute names"),
        ("attributes.offsets", put(0, 1), "attributes.offsets does not run from 0 to"),
        ("attributes.offsets", put(-1, 1000), "attributes.offsets does not run from 0 to"),
        ("attributes.labels", without_last, "attributes.offsets does not run from 0 to"),
        ("edges.offsets", put(-1, -1), "edges.offsets does not run from 0 to"),
        ("attributes.offsets", put(1, 1000), "attributes.offsets decreases"),
        ("attributes.offsets", put(1, -1), "attributes.offsets decreases"),
        ("attributes.offsets", put(1, -(2**62)), "attributes.offsets decreases"),
        ("edges.offsets", put(2, 1000), "edges.offsets decreases"),
        ("attributes.offsets", put(slice(1, 3), WRAPPING), "attributes.offsets decreases"),
        ("edges.offsets", put(slice(1, 3), WRAPPING), "edges.offsets decreases"),
        ("attributes.labels", put(0, -1), "attributes.labels is out of range"),
        ("attributes.labels", put(2, 3), "attributes.labels is out of range"),
        ("edges.pairs", put(-1, 9), "edges.pairs is out of range"),
        ("attributes.labels", backwards, "attributes.labels is not in order"),
        ("attributes.labels", put(1, 0), "attributes.labels is not in order"),
        ("edges.pairs", backwards, "edges.pairs is not in order"),
    ],
    TreeCRF: [
        # What else is no forest or no column: trees/test_forest.py, trees/test_columns_state.py.
        ("trees.values", without_last, "arrays of trees must have an entry for each node"),
        ("trees.columns", put(0, 5), "tree 0: a column is out of range"),
        ("trees.tree_offsets", put(1, 0), "tree 0: it has no nodes"),
        ("trees.tree_offsets", without_last, "trees.tree_weights has the wrong shape"),
        ("trees.tree_offsets", without_all, "trees.tree_weights has the wrong shape"),
        ("trees.outputs", without_first, "every tree needs an output"),
        ("trees.outputs", put(1, 99), "tree 1: its output is out of range"),
        ("trees.round_offsets", without_last, "rounds do not begin at"),
        ("cuts.values", without_last, "cuts.offsets does not end at"),
    ],
}


@pytest.mark.parametrize(
    ("estimator", "names"),
    [(LinearCRF, [*TENSORS, *OWN_TENSORS[LinearCRF]]), (TreeCRF, OWN_TENSORS[TreeCRF])],
)
def test_arrays_that_are_missing_or_of_the_wrong_type(estimator, names):
    data = file_of(estimator)
    for name in names:
        refuses_file(alter(data, lambda t, name=name: t.pop(name)), f"{INVALID}{name} is missing")
        for change in (convert(np.int16), one_axis_more):
            refuses_file(alter(data, changed(name, change)), f"{INVALID}{name} has the wrong type")


@pytest.mark.parametrize(
    ("estimator", "name"),
    [(estimator, name) for estimator in ESTIMATORS for name in WEIGHTS[estimator]],
)
def test_weights_that_make_no_sense(estimator, name):
    for change, message in (
        (without_last, "has the wrong shape"),
        (put(0, np.nan), "is not finite"),
        (put(-1, -np.inf), "is not finite"),
        (put(0, -1e200), "is out of range"),
    ):
        refuses_file(alter(file_of(estimator), changed(name, change)), f"{INVALID}{name} {message}")


@pytest.mark.parametrize(
    ("estimator", "name", "change", "message"),
    [
        *((LinearCRF, *case) for case in (*ARRAYS, *OWN_ARRAYS[LinearCRF])),
        *((TreeCRF, *case) for case in OWN_ARRAYS[TreeCRF]),
    ],
)
def test_arrays_that_make_no_sense(estimator, name, change, message):
    message = rf"{INVALID}(ValueError\(')?{re.escape(message)}"
    with pytest.raises(ModelFileError, match=message):
        hedgerow.load(alter(file_of(estimator), changed(name, change)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_last, "a round lacks a tree"),
        (without_all, "a round lacks a tree"),
        (keep(slice(1)), "trees do not begin at 0 and end"),
    ],
)
def test_older_formats_have_a_tree_for_each_label_in_every_round(change, message):
    def make_old(tensors):
        for name in ("round_offsets", "outputs", "tree_weights", "outside_left"):
            del tensors[f"trees.{name}"]

    data = file_of(TreeCRF)
    old = alter(data, make_old, format=4)
    assert hedgerow.load(old).trees().keys() == hedgerow.load(data).trees().keys()
    with pytest.raises(ModelFileError, match=f"{INVALID}.*{message}"):
        hedgerow.load(alter(old, changed("trees.tree_offsets", change), format=4))


def test_labels_and_arrays_of_different_number():
    def free(tensors):
        for name in ("allowed", "start", "end"):
            del tensors[f"constraints.{name}"]

    four = {"classes": {"dtype": "<U1", "labels": list("abcd")}}
    refuses_file(alter(file_of(LinearCRF), **four), "the constraints have the wrong shape")
    refuses_file(alter(file_of(LinearCRF), free, **four), "labels.weights has the wrong shape")


def test_offsets_that_wrap_around_where_labels_are_in_order(tmp_path):
    crf = LinearCRF().fit([[{"p": 1}, {"q": 1}], [{"r": 1}]], [["a", "b"], ["c"]])
    change = changed("attributes.offsets", put(slice(1, 3), WRAPPING))
    refuses_file(alter(saved(crf, tmp_path), change), f"{INVALID}attributes.offsets decreases")


def test_surrogates_that_do_not_fit_their_columns(tmp_path):
    crf = TreeCRF(missing="surrogate", transitions="trees", n_rounds=3, max_depth=2)
    data = saved(crf.fit(FRAMES, CHUNKS), tmp_path)
    sets = take_apart(data)[1].tensors["trees.surrogate_sets"]
    text, number = np.flatnonzero(sets >= 0)[0], np.flatnonzero(sets < 0)[0]
    damages = [
        ("surrogate_cuts", number, 0, "a surrogate does not fit its column"),
        ("surrogate_cuts", number, 255, "a surrogate does not fit its column"),
        ("surrogate_sets", number, 0, "a surrogate does not fit its column"),
        ("surrogate_sets", text, -1, "a surrogate does not fit its column"),
        ("surrogate_columns", text, 4, "a surrogate is not a column of the input"),  # a label
    ]
    for name, place, value, message in damages:
        refuses_file(alter(data, changed(f"trees.{name}", put(place, value))), message)


def test_constraints_that_leave_nothing_are_an_error_when_used(estimator):
    loaded = hedgerow.load(
        alter(file_of(estimator), changed("constraints.start", put(slice(None), False)))
    )
    with pytest.raises(ValueError, match=r"X\[0\], of length \d+, cannot be labelled"):
        loaded.predict(FULL[estimator][1])
