"""Classes: labels become codes and come back; unknown labels are named."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.encode import encode
from hedgerow.labels import LabelColumn, Labels, read_labels

LISTED = encode([np.zeros((2, 1)), np.zeros((1, 1))])
FLAT = encode(np.zeros((3, 1)), groups=[0, 0, 1])


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


texts = st.text(st.characters(exclude_characters="\0"))
integers = st.integers(-(2**40), 2**40)


@given(st.lists(texts, min_size=1) | st.lists(integers, min_size=1))
def test_labels_survive_learn_and_decode(values):
    sequences = encode(np.zeros((len(values), 1)))
    labels, codes = Labels.learn(read_labels(values, sequences))
    assert labels.classes.tolist() == sorted(set(values))
    assert labels.classes.dtype.kind == ("U" if isinstance(values[0], str) else "i")
    assert codes.dtype == np.int32
    assert labels.decode(codes).tolist() == values
    for column in (values, np.array(values)):
        again = labels.encode(read_labels(column, sequences), sequences)
        assert again.tolist() == codes.tolist()


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
        labels.encode(LabelColumn(np.array([1, 2, 99])), FLAT)


def test_labels_that_numpy_cannot_tell_apart_are_an_error():
    with pytest.raises(ValueError, match="differ only by NUL characters at the end"):
        Labels.learn(LabelColumn(np.array(["a", "a\0"], dtype=np.object_)))


def test_missing_labels_have_the_code_minus_one():
    column = read_labels([["B", None], ["O"]], LISTED)
    labels, codes = Labels.learn(column)
    assert labels.classes.tolist() == ["B", "O"]
    assert codes.tolist() == labels.encode(column, LISTED).tolist() == [0, -1, 1]
    assert codes.dtype == np.int32


def test_the_label_for_unknown_is_no_class():
    column = read_labels(np.array([3, -1, 5]), FLAT, missing_label=-1)
    labels, codes = Labels.learn(column)
    assert labels.classes.tolist() == [3, 5]
    assert codes.tolist() == labels.encode(column, FLAT).tolist() == [0, -1, 1]


@pytest.mark.parametrize("classes", [["B", "O"], [0, 1], [False, True]])
def test_all_labels_may_be_missing_when_the_classes_are_known(classes):
    column = read_labels([None, None, None], FLAT)
    assert Labels(np.array(classes)).encode(column, FLAT).tolist() == [-1, -1, -1]


def test_classes_cannot_be_learned_from_nothing():
    message = "y has no label at any of its 3 positions: all are missing (None); training needs"
    with pytest.raises(ValueError, match=re.escape(message)):
        Labels.learn(read_labels([None, None, None], FLAT))


def test_unknown_labels_are_named_by_the_name_of_the_labels():
    column = read_labels([None, "B", "I"], FLAT)
    with pytest.raises(ValueError, match=re.escape("unknown label 'I' at known[2]; known labels")):
        Labels(np.array(["B", "O"])).encode(column, FLAT, "known")


@pytest.mark.parametrize("classes", [[3, 5], [False, True], ["a", "b"], ["B-NP", "O"]])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_decode(classes, n_threads):
    labels = Labels(np.array(classes))
    codes = np.random.default_rng(0).integers(0, 2, (2, 5_000)).astype(np.int32)
    found = labels.decode(codes.T, n_threads=n_threads)
    np.testing.assert_array_equal(found, labels.classes[codes.T])
    assert found.dtype == labels.classes.dtype
    with pytest.raises(ValueError, match="a code is out of range"):
        labels.decode(np.array([2]))
