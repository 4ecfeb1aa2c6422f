"""Reading labels: every form of y gives one column; what cannot be a label is named."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from hedgerow import LinearCRF
from hedgerow.encode import encode
from hedgerow.labels import read_labels
from hedgerow.labels.column import family_of_dtype

LISTED = encode([np.zeros((2, 1)), np.zeros((1, 1))])
FLAT = encode(np.zeros((3, 1)), groups=[0, 0, 1])


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
    assert read_labels(y, LISTED).values.tolist() == ["B", "O", "B"]


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
        pl.Series(["B", "O", "B"], dtype=pl.Enum(["O", "B"])),
        pd.Categorical(["B", "O", "B"]),
        pd.Series(["B", "O", "B"], dtype="string[pyarrow]"),
        pa.chunked_array([["B"], ["O", "B"]]),
        pa.array(["B", "O", "B"]).dictionary_encode(),
    ],
)
def test_all_forms_of_y_for_flat_input_agree(y):
    assert read_labels(y, FLAT).values.tolist() == ["B", "O", "B"]


def test_generators_are_labels():
    assert read_labels((list("BO"[:n]) for n in (2, 1)), LISTED).values.tolist() == ["B", "O", "B"]
    assert read_labels((iter("BO"[:n]) for n in (2, 1)), LISTED).values.tolist() == ["B", "O", "B"]
    assert read_labels(iter("BOB"), FLAT).values.tolist() == ["B", "O", "B"]


def test_a_matrix_of_labels_goes_with_a_stack():
    column = read_labels(np.array([[1, 2], [3, 4]]), encode(np.zeros((2, 2, 1))))
    assert column.values.tolist() == [1, 2, 3, 4]


class Holder:
    """Has an array inside, and nothing else."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_anything_with_an_array_inside_is_labels():
    assert read_labels(Holder(np.array([3, 1, 2])), FLAT).values.tolist() == [3, 1, 2]


SO_LISTED = "; X is a list of sequences, so NAME must be a list with one list"
SO_FLAT = "; X is flat, so NAME must be 1-D, one label for every row"
ODD = "Unknown label type: NAME"
DATES = np.array(["2020-01-01"] * 3, "M8[D]")


@pytest.mark.parametrize(
    ("y", "sequences", "error", "message"),
    [
        *(
            (y, sequences, TypeError, f"NAME is of type {type(y).__name__}{expected}")
            for y in ("BOB", {"a": 1}, {1, 2}, 3)
            for sequences, expected in ((LISTED, SO_LISTED), (FLAT, SO_FLAT))
        ),
        (pd.DataFrame({"y": [1, 2, 3]}), FLAT, TypeError, "NAME is a DataFrame; pass the one colu"),
        (pl.DataFrame({"y": [1, 2, 3]}), FLAT, TypeError, "NAME is a DataFrame; pass the one colu"),
        (["B", "O", "B"], LISTED, ValueError, "NAME is flat (NAME[0] is 'B'), but X is not"),
        *(
            (y, LISTED, ValueError, f"but X is not{SO_LISTED}")
            for y in (["B", "O", "B"], [1, 2, 3], np.array([1, 2, 3]), pd.Series([1, 2]))
        ),
        ([["B"], ["O"], ["B"]], FLAT, ValueError, "NAME[0] is a list, not a label; X is flat"),
        (np.zeros((3, 2), int), FLAT, ValueError, f"NAME has shape (3, 2){SO_FLAT}"),
        (np.zeros((3, 2)), FLAT, ValueError, f"NAME has shape (3, 2){SO_FLAT}"),
        ([["B", "O"], "B"], LISTED, TypeError, "NAME[1] is of type str; expected a list of labels"),
        ([["B", "O"], 3], LISTED, TypeError, "NAME[1] is of type int; expected a list of labels"),
        ([["B", "O"], np.array([["B"]])], LISTED, ValueError, "NAME[1] has shape (1, 1); X is a l"),
        ([["B", "O"]], LISTED, ValueError, "NAME has 1 sequence but X has 2; pass one list"),
        ([], LISTED, ValueError, "NAME has 0 sequences but X has 2; pass one list"),
        ([["B", "O"], ["B"] * 2], LISTED, ValueError, "NAME[1] has 2 labels but X[1] has 1 positi"),
        (["B", "O"], FLAT, ValueError, "NAME has 2 labels but X has 3 rows; pass one label"),
        ([[0.5, 1.0], [2.0]], LISTED, ValueError, f"{ODD}[0][0] is the float 0.5; labels are stri"),
        (
            [np.array([0.5, 1.0]), np.array([2.0])],
            LISTED,
            ValueError,
            f"{ODD}[0][0] is the float 0.",
        ),
        *(
            (y, FLAT, ValueError, f"{ODD}[2] is the float {wrong}; labels are")
            for wrong in (0.5, np.inf, 2.0**53, 1e300)
            for y in (np.array([1.0, np.nan, wrong]), [1, None, wrong])  # beside a gap
        ),
        *(
            ([[label, label], [label]], LISTED, TypeError, f"{ODD}[0][0] is {label!r}")
            for label in (b"B", datetime.date(2020, 1, 1), 1j)
        ),
        (DATES, FLAT, TypeError, f"{ODD}[0] is "),
        (np.where(np.arange(3) > 0, DATES, np.datetime64("NaT")), FLAT, TypeError, f"{ODD}[1] is "),
        (np.array([b"B"] * 3), FLAT, TypeError, f"{ODD}[0] is "),
        *(
            (y, LISTED, ValueError, f"NAME mixes kinds of labels: NAME[0][0] is {kinds}")
            for y, kinds in (
                ([["B", "O"], [1]], "'B' and NAME[1][0] is 1"),
                ([[1, True], [1]], "1 and NAME[0][1] is True"),
                ([np.array([1, 2]), np.array(["B"])], "1 and NAME[1][0] is 'B'"),
            )
        ),
    ],
)
def test_what_cannot_be_labels_is_named(y, sequences, error, message):
    for name in ("y", "known"):
        with pytest.raises(error, match=re.escape(message.replace("NAME", name))):
            read_labels(y, sequences, name=name)


@pytest.mark.parametrize(
    ("name", "sequences", "message"),
    [
        ("y", FLAT, "requires y to be passed, but the target y is None"),
        ("known", FLAT, "known is None; X is flat, so known must be 1-D, one label for every row"),
        ("known", LISTED, "known is None; X is a list of sequences, so known must be a list with"),
    ],
)
def test_no_labels(name, sequences, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_labels(None, sequences, name=name)


def test_a_column_vector_will_do_for_flat_input():
    message = r"A column-vector y was passed when a 1d array was expected.* \(3, 1\), to \(3,\)"
    with pytest.warns(DataConversionWarning, match=message):
        column = read_labels(np.array([["B"], ["O"], ["B"]]), FLAT)
    assert column.values.tolist() == ["B", "O", "B"]


@pytest.mark.parametrize(
    ("y", "place"),
    [
        ([["B", None], ["B"]], "y[0][1] is missing (None)"),
        ([["B", "O"], [float("nan")]], "y[1][0] is missing (nan)"),
        ([[1, 2], [pd.NA]], "y[1][0] is missing (<NA>)"),
        ([np.array([1.0, np.nan]), np.array([1.0])], "y[0][1] is missing (nan)"),
        ([pl.Series([1, None]), pl.Series([1])], "y[0][1] is missing (None)"),
        ([pd.Series(["B", np.nan], dtype=object), pd.Series(["B"])], "y[0][1] is missing (nan)"),
    ],
)
def test_missing_labels_are_named(y, place):
    with pytest.raises(
        ValueError, match=re.escape(f"max_margin needs all labels, but {place}; fill it in")
    ):
        read_labels(y, LISTED).require_all(LISTED, "max_margin")


def test_missing_labels_are_named_as_they_were_given():
    column = read_labels(["?", "B", "?"], FLAT, missing_label="?")
    with pytest.raises(ValueError, match=re.escape("y[0] is missing (?)")):
        column.require_all(FLAT, "max_margin")


def test_columns_without_gaps_have_all_labels():
    column = read_labels(["B", "O", "B"], FLAT, missing_label="?")
    assert column.missing is None
    column.require_all(FLAT, "max_margin")


def known(y, sequences=FLAT, **options):
    """Read labels, with None at the missing places, and their kind."""
    column = read_labels(y, sequences, **options)
    missing = np.zeros(len(column.values), bool) if column.missing is None else column.missing
    labels = zip(column.values.tolist(), missing.tolist(), strict=True)
    return [None if gap else label for label, gap in labels], family_of_dtype(
        column.values.dtype
    ).name


BIG = 2**53 + 1


@pytest.mark.parametrize(
    ("y", "labels", "family"),
    [
        (["B", None, "O"], ["B", None, "O"], "TEXT"),
        ([None, "B", float("nan")], [None, "B", None], "TEXT"),
        (["B", pd.NaT, np.datetime64("NaT", "ns")], ["B", None, None], "TEXT"),
        (np.array(["B", np.nan, "O"], object), ["B", None, "O"], "TEXT"),
        (pd.Series(["B", None, "O"]), ["B", None, "O"], "TEXT"),
        (pd.Series(["B", None, "O"], dtype="string"), ["B", None, "O"], "TEXT"),
        (pd.Series(["B", None, "O"], dtype="category"), ["B", None, "O"], "TEXT"),
        (pl.Series(["B", None, "O"]), ["B", None, "O"], "TEXT"),
        (pl.Series(["B", None, "O"], dtype=pl.Categorical), ["B", None, "O"], "TEXT"),
        (np.ma.array(["B", "?", "O"], mask=[0, 1, 0]), ["B", None, "O"], "TEXT"),
        ([1, pd.NA, -2], [1, None, -2], "INTEGER"),
        ([np.int8(1), None, 2], [1, None, 2], "INTEGER"),
        (pd.Series([1, None, BIG], dtype="Int64"), [1, None, BIG], "INTEGER"),
        (pl.Series([1, None, BIG]), [1, None, BIG], "INTEGER"),
        (np.ma.array([1, 0, BIG], mask=[0, 1, 0]), [1, None, BIG], "INTEGER"),
        ([True, None, np.False_], [True, None, False], "BOOL"),
        (pd.Series([True, None, False], dtype="boolean"), [True, None, False], "BOOL"),
        (pd.Series([True, None, False]), [True, None, False], "BOOL"),
        (pl.Series([True, None, False]), [True, None, False], "BOOL"),
    ],
)
def test_all_forms_of_missing_labels_agree(y, labels, family):
    assert known(y) == (labels, family)


@pytest.mark.parametrize(
    "y",
    [
        [["B", None], ["B"]],
        [np.array(["B", None]), np.array(["B"])],
        [pd.Series(["B", None]), pd.Series(["B"])],
        [pl.Series(["B", None]), pl.Series(["B"])],
        pl.Series([["B", None], ["B"]]),
        np.array([["B", None], ["B"]], object),
    ],
)
def test_all_forms_of_missing_labels_in_a_list_agree(y):
    assert known(y, LISTED) == (["B", None, "B"], "TEXT")


def test_a_sequence_may_have_no_label_at_all():
    assert known([[None, None], ["B"]], LISTED) == ([None, None, "B"], "TEXT")
    assert known([np.full(2, np.nan), np.array(["B"])], LISTED) == ([None, None, "B"], "TEXT")
    assert known([None, pd.NA, np.nan])[0] == [None] * 3
    assert known(np.full(3, "NaT", "M8[D]"))[0] == [None] * 3


@pytest.mark.parametrize(
    "y",
    [
        np.array([1.0, np.nan, -3.0]),
        np.array([1.0, np.nan, -3.0], np.float32),
        pd.Series([1, None, -3]),
        pd.Series([1, None, -3], dtype="Float64"),
        pl.Series([1.0, None, -3.0]),
        [1.0, float("nan"), -3.0],
        [1, None, -3.0],
        np.ma.masked_invalid([1.0, np.nan, -3.0]),
    ],
)
def test_integers_that_a_gap_turned_into_floats_are_integers_again(y):
    assert known(y) == ([1, None, -3], "INTEGER")


@pytest.mark.parametrize("y", [np.array([1.0, 2.0, -3.0], np.float32), [1.0, 2, -3.0]])
def test_whole_floats_are_integers(y):
    assert known(y) == ([1, 2, -3], "INTEGER")


def test_integers_and_floats_with_gaps_in_different_sequences():
    assert known([np.array([1.0, np.nan]), np.array([2])], LISTED) == ([1, None, 2], "INTEGER")
    assert known([np.array([1.0, np.nan]), np.array([2.0])], LISTED) == ([1, None, 2], "INTEGER")


@pytest.mark.parametrize(
    ("y", "missing_label", "labels", "family"),
    [
        (["B", "?", None], "?", ["B", None, None], "TEXT"),
        (np.array(["B", "?", "O"]), "?", ["B", None, "O"], "TEXT"),
        (pl.Series(["B", "?", "O"]), "?", ["B", None, "O"], "TEXT"),
        ([1, -1, 2], -1, [1, None, 2], "INTEGER"),
        ([1, -1, 2], np.int8(-1), [1, None, 2], "INTEGER"),
        (np.array([1, 255, 2], np.uint8), 255, [1, None, 2], "INTEGER"),
        (np.array([1, 255, 2], np.uint8), -1, [1, 255, 2], "INTEGER"),
        (np.array([1, -1, np.nan]), -1, [1, None, None], "INTEGER"),
        ([True, False, True], False, [True, None, True], "BOOL"),
        (["?", "?", "?"], "?", [None, None, None], "INTEGER"),
        # A label of another kind is another label.
        (["B", "-1", "O"], -1, ["B", "-1", "O"], "TEXT"),
        ([0, 1, 2], True, [0, 1, 2], "INTEGER"),
        (np.array([True, False, True]), 1, [True, False, True], "BOOL"),
        # What stands for "unknown" may be of another kind than the labels.
        (["B", -1, "O"], -1, ["B", None, "O"], "TEXT"),
        ([1, "?", 2], "?", [1, None, 2], "INTEGER"),
    ],
)
def test_one_label_may_stand_for_unknown(y, missing_label, labels, family):
    assert known(y, missing_label=missing_label) == (labels, family)


def test_a_label_for_unknown_may_be_a_whole_float():
    assert known([1.0, -1.0, 2.0], missing_label=-1) == ([1, None, 2], "INTEGER")


@pytest.mark.parametrize("missing_label", [-1.0, np.nan, pd.NA, ["?"], b"?"])
def test_missing_label_of_a_wrong_type(missing_label):
    message = f"missing_label is {missing_label!r}; expected a string, an integer or a bool"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_labels(["B", "O", "B"], FLAT, missing_label=missing_label)


@settings(max_examples=30)
@given(
    st.one_of(
        st.lists(st.one_of(st.none(), st.text("ab é\0", max_size=2)), min_size=1),
        st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=1),
        st.lists(st.one_of(st.none(), st.booleans()), min_size=1),
    ),
    st.sampled_from([None, float("nan"), pd.NA, pd.NaT, np.float32("nan")]),
)
def test_gaps_of_any_kind_are_where_they_were(labels, gap):
    y = [gap if label is None else label for label in labels]
    assert known(y, encode(np.zeros((len(y), 1))))[0] == labels


def test_a_single_number_for_a_list_of_sequences():
    message = r"y has shape \(\); X is a list of sequences, so y must be a list"
    with pytest.raises(ValueError, match=message):
        LinearCRF().fit([[[1.0]]], np.array(1.0))
