"""Frames: numbers are dense, the rest categorical, the same for every library."""

import datetime
import decimal
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hedgerow.encode import encode

LIBRARIES = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


def refuses(error, message, X):
    with pytest.raises(error, match=re.escape(message)):
        encode(X)


@LIBRARIES
def test_columns_by_kind(library):
    frame = library.DataFrame(
        {
            "count": [1, 2, 3],
            "word": ["the", None, "cat"],
            "speed": [0.5, 1.5, 2.5],
            "upper": [True, False, True],
        }
    )
    sequences = encode(frame)
    assert sequences.schema.names == ("count", "word", "speed", "upper")
    assert sequences.schema.numeric == (True, False, True, True)
    assert sequences.dense.dtype == np.float64
    assert sequences.dense.tolist() == [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]]
    (word,) = sequences.categorical
    assert (word.name, word.categories) == ("word", ["cat", "the"])
    assert word.codes.tolist() == [1, -1, 0]
    assert word.codes.dtype == np.int32


@LIBRARIES
def test_categories_are_merged_over_sequences(library):
    frames = [library.DataFrame({"w": words}) for words in (["b", "c"], ["a"], [None, "c"])]
    sequences = encode(frames)
    (column,) = sequences.categorical
    assert column.categories == ["a", "b", "c"]
    assert column.codes.tolist() == [1, 2, 0, -1, 2]
    assert sequences.dense is None
    assert sequences.offsets.tolist() == [0, 2, 3, 5]


@pytest.mark.parametrize(
    "frames",
    [
        [pd.DataFrame({"w": pd.Categorical([w])}) for w in "ba"],
        [pd.DataFrame({"w": pd.Series([w], dtype=object)}) for w in "ba"],
        [pd.DataFrame({"w": [w]}).astype({"w": t}) for w, t in (("b", "category"), ("a", object))],
        [pl.DataFrame({"w": [w]}, schema={"w": pl.Categorical}) for w in "ba"],
        [pl.DataFrame({"w": [w]}, schema={"w": pl.Enum(["b", "a"])}) for w in "ba"],
        [pl.DataFrame({"w": [w]}, schema={"w": pl.Enum([w, "z"])}) for w in "ba"],
    ],
)
def test_kinds_of_text(frames):
    (column,) = encode(frames).categorical
    assert column.categories == ["a", "b"]
    assert column.codes.tolist() == [1, 0]


def test_categories_that_are_not_strings_become_strings():
    frame = pd.DataFrame(
        {"c": pd.Categorical([3, 1, 3]), "o": pd.Series([1, "x", None], dtype=object)}
    )
    codes, objects = encode(frame).categorical
    assert (codes.categories, codes.codes.tolist()) == (["1", "3"], [1, 0, 1])
    assert (objects.categories, objects.codes.tolist()) == (["1", "x"], [0, 1, -1])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, None], dtype="Int64"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([1, None], dtype="Float32"),
        pl.Series([1, None]),
        pl.Series([True, None]),
        pl.Series([decimal.Decimal(1), None]),
    ],
)
def test_nulls_among_numbers_become_nan(column):
    library = pd if isinstance(column, pd.Series) else pl
    dense = encode(library.DataFrame({"a": column})).dense
    np.testing.assert_array_equal(dense, [[1], [np.nan]])


@LIBRARIES
def test_columns_without_any_value_fit_numbers_and_text(library):
    frames = [
        library.DataFrame({"n": [None], "w": [None], "e": [None]}),
        library.DataFrame({"n": [2], "w": ["a"], "e": [None]}),
    ]
    sequences = encode(frames)
    np.testing.assert_array_equal(sequences.dense[:, 0], [np.nan, 2])
    assert sequences.categorical[0].codes.tolist() == [-1, 0]


@LIBRARIES
def test_dtypes_may_differ_between_sequences(library):
    sequences = encode([library.DataFrame({"a": [1]}), library.DataFrame({"a": [0.5]})])
    assert sequences.dense.tolist() == [[1.0], [0.5]]


def test_bools_are_uint8_and_single_precision_stays():
    assert encode(pd.DataFrame({"a": [True]})).dense.dtype == np.uint8
    assert encode(pl.DataFrame({"a": [1.0]}, schema={"a": pl.Float32})).dense.dtype == np.float32


def test_tall_frames_are_laid_out_right():
    array = np.arange(300_000.0).reshape(-1, 3)
    for frame in (pd.DataFrame(array), pl.DataFrame(array)):
        dense = encode(frame).dense
        np.testing.assert_array_equal(dense, array)
        assert dense.flags.c_contiguous


def test_column_labels_that_are_not_strings_are_no_names():
    sequences = encode(pd.DataFrame({0: [1.0], 1: ["a"]}))
    assert sequences.schema.names is None
    assert sequences.categorical[0].name == "1"


@LIBRARIES
def test_different_columns_between_sequences(library):
    first = library.DataFrame({"a": [1], "b": [2]})
    start = "X[1] has different columns from X[0]: "
    missing = "column 'b' of X[0] is missing in X[1]"
    refuses(ValueError, start + missing, [first, library.DataFrame({"a": [1], "c": [2]})])
    extra = "column 'c' of X[1] is not in X[0]"
    refuses(ValueError, start + extra, [first, library.DataFrame({"a": [1], "b": [2], "c": [3]})])
    order = "the order differs, column 0 is 'b' but 'a' in X[0]"
    refuses(ValueError, start + order, [first, library.DataFrame({"b": [1], "a": [2]})])


@LIBRARIES
def test_numeric_here_and_text_there(library):
    message = "column 'a' is numeric in X[0] but text in X[1]; convert it to one kind"
    refuses(ValueError, message, [library.DataFrame({"a": [1]}), library.DataFrame({"a": ["x"]})])


@LIBRARIES
def test_dates_are_refused(library):
    frame = library.DataFrame({"when": [datetime.datetime(2020, 1, 1)]})
    with pytest.raises(TypeError, match=r"column 'when' of X has dtype .*[dD]atetime.* convert it"):
        encode(frame)


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2020, 1, 1),
        datetime.time(12),
        pd.Timedelta(1),
        np.datetime64("2020-01-01"),
        1j,
        b"word",
    ],
)
def test_objects_that_are_refused_in_columns_of_their_own(value):
    frame = pd.DataFrame({"a": pd.Series([None, "x", value], dtype=object)})
    with pytest.raises(TypeError, match=r"column 'a' of X holds .*; expected numbers, bools, str"):
        encode(frame)


@pytest.mark.parametrize("value", [2.5, decimal.Decimal("2.5"), np.float32(2.5), np.inf])
def test_numbers_as_objects_are_no_categories(value):
    frame = pd.DataFrame({"a": pd.Series([1, None, value], dtype=object)})
    message = f"column 'a' of X holds numbers such as {value!r} as Python objects, which would be"
    refuses(TypeError, message, frame)
    parts = [frame[:2].astype({"a": "category"}), frame[2:]]
    refuses(TypeError, "column 'a' of X holds numbers such as", parts)
    frame.loc[3] = ["x"]
    assert len(encode(frame).categorical[0].categories) == 3
    assert len(encode(frame[:3].astype("category")).categorical[0].categories) == 2


def test_true_and_one_are_apart():
    for values in ([True, 1, 0, False, "x", None], [1, True, False, 0, None, "x"]):
        (column,) = encode(pd.DataFrame({"a": pd.Series(values, dtype=object)})).categorical
        assert column.categories == ["0", "1", "False", "True", "x"]
        found = [None if code < 0 else column.categories[code] for code in column.codes]
        assert found == [None if value is None else str(value) for value in values]
        assert column.kind == "text"
    values = pd.Series([1, pd.NA, 2], dtype=object)
    assert encode(pd.DataFrame({"a": values})).categorical[0].codes.tolist() == [0, -1, 1]


def test_decimals_that_are_not_numbers_are_missing():
    values = [decimal.Decimal("NaN"), decimal.Decimal("1.5"), "x"]
    (column,) = encode(pd.DataFrame({"a": pd.Series(values, dtype=object)})).categorical
    assert column.codes.tolist() == [-1, 0, 1]


TWICE = (
    "X[0] is a DataFrame with a column name used twice; rename one. "
    "Expected unique column names, got: - 'a' 2 times"  # in one line
)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (
            [pd.DataFrame({"z": [1j]})],
            TypeError,
            "column 'z' of X[0] has dtype complex128; expected numbers, bools, strings",
        ),
        (
            pd.DataFrame({"a": [[1], [2]]}),
            TypeError,
            "column 'a' of X holds values that are not hashable",
        ),
        (
            pd.DataFrame([["a", "b"]], columns=[1, "1"]),
            ValueError,
            "X has columns named 1 and '1', which are equal when converted to text; rename one",
        ),
        (
            [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})],
            TypeError,
            "X mixes forms: X[0] is a pandas frame and X[1] a polars frame",
        ),
        ([pd.DataFrame([[1, 2]], columns=["a", "a"])], ValueError, TWICE),
        ([pa.table([[1], [2]], names=["a", "a"])], ValueError, TWICE),
        (pl.LazyFrame({"a": [1]}), TypeError, "X is a lazy frame; convert it to a frame"),
    ],
)
def test_frames_that_are_refused(X, error, message):
    refuses(error, message, X)


@LIBRARIES
def test_empty_frames(library):
    rows = library.DataFrame({"a": [1]})
    refuses(ValueError, "X has no rows (shape (0, 1)); expected at least one", rows[:0])
    refuses(ValueError, "X[1] is empty; a sequence needs at least one position", [rows, rows[:0]])
    refuses(ValueError, "X has 0 feature(s) (shape=(0, 0))", library.DataFrame())
