"""Labels: every form of y gives one array; what cannot be a label is named."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.encode import encode
from hedgerow.labels import Labels, read_labels

LISTED = encode([np.zeros((2, 1)), np.zeros((1, 1))])
FLAT = encode(np.zeros((3, 1)), groups=[0, 0, 1])


def refuses(error, message, y, sequences=LISTED):
    with pytest.raises(error, match=re.escape(message)):
        read_labels(y, sequences)


@pytest.mark.parametrize(
    "y",
    [
        [["B", "O"], ["B"]],
        (("B", "O"), ("B",)),
        [np.array(["B", "O"]), np.array(["B"])],
        [np.array(["B", "O"], object), ["B"]],
        [pd.Series(["B", "O"]), pd.Series(["B"])],
        [pd.Series(["B", "O"], dtype="category"), pd.Series(["B"], dtype="category")],
        [pl.Series(["B", "O"]), pl.Series(["B"])],
        pd.Series([["B", "O"], ["B"]]),
        pl.Series([["B", "O"], ["B"]]),
        np.array([["B", "O"], ["B"]], object),
    ],
)
def test_all_forms_of_y_for_a_list_agree(y):
    assert read_labels(y, LISTED).tolist() == ["B", "O", "B"]


@pytest.mark.parametrize(
    "y",
    [
        ["B", "O", "B"],
        ("B", "O", "B"),
        np.array(["B", "O", "B"]),
        np.array(["B", "O", "B"], object),
        pd.Series(["B", "O", "B"], index=[7, 8, 9]),
        pl.Series(["B", "O", "B"]),
        pl.Series(["B", "O", "B"], dtype=pl.Categorical),
    ],
)
def test_all_forms_of_y_for_flat_input_agree(y):
    assert read_labels(y, FLAT).tolist() == ["B", "O", "B"]


def test_generators_are_labels():
    assert read_labels((list("BO"[:n]) for n in (2, 1)), LISTED).tolist() == ["B", "O", "B"]
    assert read_labels((iter("BO"[:n]) for n in (2, 1)), LISTED).tolist() == ["B", "O", "B"]
    assert read_labels(iter("BOB"), FLAT).tolist() == ["B", "O", "B"]


def test_a_matrix_of_labels_goes_with_a_stack():
    values = read_labels(np.array([[1, 2], [3, 4]]), encode(np.zeros((2, 2, 1))))
    assert values.tolist() == [1, 2, 3, 4]


class Holder:
    """Has an array inside, and nothing else."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_anything_with_an_array_inside_is_labels():
    assert read_labels(Holder(np.array([3, 1, 2])), FLAT).tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        ([[1, 2], [3]], "i"),
        ([[1, np.int8(2)], [3]], "i"),
        ([np.array([1, 2], np.uint8), np.array([3], np.int8)], "i"),
        ([[True, False], [True]], "b"),
        ([np.array([True, False]), [np.True_]], "b"),
    ],
)
def test_integers_and_bools_keep_their_kind(y, kind):
    labels, codes = Labels.learn(read_labels(y, LISTED))
    assert labels.classes.dtype.kind == kind
    assert labels.decode(codes).tolist() == [value for part in y for value in part]


@given(st.lists(st.text(st.characters(exclude_characters="\0")), min_size=1, max_size=30))
def test_strings_survive_learn_and_decode(values):
    sequences = encode(np.zeros((len(values), 1)))
    labels, codes = Labels.learn(read_labels(values, sequences))
    assert labels.classes.tolist() == sorted(set(values))
    assert labels.classes.dtype.kind == "U"
    assert codes.dtype == np.int32
    assert labels.decode(codes).tolist() == values
    array = read_labels(np.array(values), sequences)
    assert labels.encode(array, sequences).tolist() == codes.tolist()


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=30))
def test_integers_survive_learn_and_decode(values):
    sequences = encode(np.zeros((len(values), 1)))
    flat = read_labels(values, sequences)
    labels, codes = Labels.learn(flat)
    assert labels.classes.tolist() == sorted(set(values))
    assert labels.decode(codes).tolist() == values
    assert labels.encode(flat, sequences).tolist() == codes.tolist()


def test_codes_keep_the_shape_in_decode():
    labels = Labels(np.array(["B", "O"]))
    assert labels.decode(np.array([[1, 0], [0, 0]])).tolist() == [["O", "B"], ["B", "B"]]


@pytest.mark.parametrize(
    ("classes", "y", "message"),
    [
        (["B", "O"], [["B", "I"], ["O"]], "unknown label 'I' at y[0][1]; known labels: 'B', 'O'"),
        ([1, 5], [[1, 5], [3]], "unknown label 3 at y[1][0]; known labels: 1, 5"),
        ([1, 5], [[1, 9], [5]], "unknown label 9 at y[0][1]; known labels: 1, 5"),
        (["1", "5"], [[1, 5], [5]], "unknown label 1 at y[0][0]; known labels: '1', '5'"),
        ([0, 1], [[True, False], [True]], "unknown label True at y[0][0]; known labels: 0, 1"),
    ],
)
def test_unknown_labels_are_named(classes, y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Labels(np.array(classes)).encode(read_labels(y, LISTED), LISTED)


def test_many_known_labels_are_shortened():
    labels = Labels(np.arange(50))
    with pytest.raises(ValueError, match=r"at y\[2\]; known labels: 0, .* 9, \.\.\. \(50 in all\)"):
        labels.encode(np.array([1, 2, 99]), FLAT)


def test_no_labels():
    refuses(ValueError, "requires y to be passed, but the target y is None", None)


@pytest.mark.parametrize("y", ["BOB", {"a": 1}, {1, 2}, 3])
def test_y_of_a_wrong_type(y):
    refuses(TypeError, f"y is of type {type(y).__name__}; X is a list of sequences", y)
    refuses(TypeError, f"y is of type {type(y).__name__}; X is flat", y, FLAT)


@pytest.mark.parametrize("frame", [pd.DataFrame({"y": [1, 2, 3]}), pl.DataFrame({"y": [1, 2, 3]})])
def test_y_a_frame(frame):
    refuses(TypeError, "y is a DataFrame; pass the one column", frame, FLAT)


@pytest.mark.parametrize("y", [["B", "O", "B"], [1, 2, 3], np.array([1, 2, 3]), pd.Series([1, 2])])
def test_flat_labels_for_a_list(y):
    refuses(ValueError, "but X is not; X is a list of sequences, so y is a list with one list", y)


def test_nested_labels_for_flat_input():
    refuses(ValueError, "y[0] is a list, not a label; X is flat", [["B"], ["O"], ["B"]], FLAT)
    refuses(ValueError, "y has shape (3, 1); X is flat, so y is 1-D", np.zeros((3, 1), int), FLAT)


def test_part_of_y_of_a_wrong_type():
    refuses(TypeError, "y[1] is of type str; expected a list of labels", [["B", "O"], "B"])
    refuses(TypeError, "y[1] is of type int; expected a list of labels", [["B", "O"], 3])
    refuses(ValueError, "y[1] has shape (1, 1); X is a list", [["B", "O"], np.array([["B"]])])


def test_lengths_differ():
    refuses(ValueError, "y has 1 sequences but X has 2; pass one list", [["B", "O"]])
    refuses(ValueError, "y has 0 sequences but X has 2; pass one list", [])
    refuses(ValueError, "y[1] has 2 labels but X[1] has 1 positions", [["B", "O"], ["B", "B"]])
    refuses(ValueError, "y has 2 labels but X has 3 rows; pass one label", ["B", "O"], FLAT)


@pytest.mark.parametrize("y", [[[0.5, 1.0], [2.0]], [np.array([0.5, 1.0]), np.array([2.0])]])
def test_floats_are_no_labels(y):
    refuses(ValueError, "Unknown label type: y[0][0] is the float 0.5; labels are strings or", y)


@pytest.mark.parametrize(
    ("y", "place"),
    [
        ([["B", None], ["B"]], "y[0][1] is missing (None)"),
        ([["B", "O"], [float("nan")]], "y[1][0] is missing (nan)"),
        ([[1, 2], [pd.NA]], "y[1][0] is missing (<NA>)"),
        ([np.array([1.0, np.nan]), np.array([1.0])], "y[0][1] is missing (nan)"),
        ([pl.Series([1, None]), pl.Series([1])], "y[0][1] is missing (nan)"),
        ([pd.Series(["B", np.nan], dtype=object), pd.Series(["B"])], "y[0][1] is missing (nan)"),
    ],
)
def test_missing_labels_are_named(y, place):
    refuses(ValueError, f"{place}; every position needs a label", y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["B", "O"], [1]], "y[0][0] is 'B' and y[1][0] is 1"),
        ([[1, True], [1]], "y[0][0] is 1 and y[0][1] is True"),
        ([np.array([1, 2]), np.array(["B"])], "y[0][0] is 1 and y[1][0] is 'B'"),
    ],
)
def test_mixed_labels_are_named(y, message):
    refuses(ValueError, f"y mixes kinds of labels: {message}", y)


@pytest.mark.parametrize("label", [b"B", datetime.date(2020, 1, 1), 1j])
def test_other_objects_are_no_labels(label):
    refuses(TypeError, f"Unknown label type: y[0][0] is {label!r}", [[label, label], [label]])


def test_dates_and_bytes_in_arrays_are_no_labels():
    dates = np.array(["2020-01-01"] * 3, "M8[D]")
    refuses(TypeError, "Unknown label type: y[0] is ", dates, FLAT)
    refuses(TypeError, "Unknown label type: y[0] is ", np.array([b"B"] * 3), FLAT)
    dates[1] = "NaT"
    refuses(ValueError, "y[1] is missing (NaT)", dates, FLAT)


def test_labels_that_numpy_cannot_tell_apart_are_an_error():
    with pytest.raises(ValueError, match="differ only by NUL characters at the end"):
        Labels.learn(np.array(["a", "a\0"], dtype=np.object_))
