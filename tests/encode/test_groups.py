"""Groups: ids of any kind become offsets."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.encode import encode
from hedgerow.encode.groups import read_groups

DAYS = [datetime.date(2020, 1, 2), datetime.date(2020, 1, 2), datetime.date(2019, 1, 1)]


def refuses(error, message, groups, n_rows=3):
    with pytest.raises(error, match=re.escape(message)):
        read_groups(groups, n_rows)


@pytest.mark.parametrize(
    "groups",
    [
        [7, 7, 3],
        (7.5, 7.5, 3.0),
        "aab",
        ["b", "b", "a"],
        [("x", 1), ("x", 1), ("y", 2)],
        [1, 1, "1"],
        DAYS,
        iter([1, 1, 2]),
        np.array([7, 7, 3]),
        np.array([True, True, False]),
        np.array(["b", "b", "a"]),
        np.array(["b", "b", 3], object),
        np.array(DAYS, "M8[D]"),
        pd.Series([7, 7, 3], index=[9, 8, 7]),
        pd.Series([7, 7, 3], dtype="Int64"),
        pd.Series(["b", "b", "a"]),
        pd.Series(["b", "b", "a"], dtype="category"),
        pd.Series(DAYS),
        pd.Index(["b", "b", "a"]),
        pl.Series([7, 7, 3]),
        pl.Series(["b", "b", "a"]),
        pl.Series(["b", "b", "a"], dtype=pl.Categorical),
    ],
)
def test_ids_of_any_kind(groups):
    if isinstance(groups, str):
        groups = list(groups)
    offsets = read_groups(groups, 3)
    assert offsets.tolist() == [0, 2, 3]
    assert offsets.dtype == np.int64


@given(st.lists(st.integers(1, 4), min_size=1, max_size=10))
def test_groups_say_the_same_as_lists(lengths):
    ids = np.repeat(np.arange(len(lengths))[::-1], lengths)
    expected = encode([np.zeros((length, 1)) for length in lengths]).offsets
    for groups in (ids, ids.tolist(), ids.astype(str)):
        np.testing.assert_array_equal(read_groups(groups, len(ids)), expected)


def test_wrong_length():
    refuses(ValueError, "groups has 2 ids but X has 3 rows; pass one id for every row", [1, 1])


@pytest.mark.parametrize(
    ("groups", "name"),
    [
        (["a", "b", "a"], "'a'"),
        ([("x", 1), 2, ("x", 1)], "('x', 1)"),
        (np.array([5, 6, 5]), "5"),
        (np.array(["a", "b", "a"]), "'a'"),
        (pl.Series(["a", "b", "a"]), "'a'"),
    ],
)
def test_a_group_that_comes_back(groups, name):
    refuses(ValueError, f"group {name} comes back at row 2 after it began at row 0", groups)


@pytest.mark.parametrize(
    "groups",
    [
        ["a", None, "b"],
        [1.0, float("nan"), 2.0],
        [1, pd.NA, 2],
        [pd.Timestamp(0), pd.NaT, pd.Timestamp(1)],
        [1, np.datetime64("NaT", "s"), 2],
        np.array([1.0, np.nan, 2.0]),
        np.array(["2020-01-01", "NaT", "2020-01-01"], "M8[D]"),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series(["a", None, "b"]),
        pl.Series([1, None, 2]),
    ],
)
def test_missing_ids(groups):
    refuses(ValueError, "groups has no id (None or NaN) at row 1; every row needs one", groups)


@pytest.mark.parametrize("groups", ["document", 3, {"a": 1}])
def test_groups_of_a_wrong_type(groups):
    refuses(TypeError, f"groups is {groups!r}; expected one id for every row", groups)


def test_ids_that_are_not_hashable():
    refuses(TypeError, "groups holds an id that is not hashable: ", [[1], [1], [2]])


def test_groups_with_two_dimensions():
    refuses(ValueError, "groups has shape (3, 1); expected 1-D", np.zeros((3, 1)))


def test_groups_as_a_frame():
    refuses(TypeError, "groups is a DataFrame; pass one column", pd.DataFrame({"g": [1, 1, 2]}))
