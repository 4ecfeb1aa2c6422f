"""Groups: ids of any kind become offsets."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.encode import encode
from hedgerow.encode.groups import read_groups

DAYS = [datetime.date(2020, 1, 2), datetime.date(2020, 1, 2), datetime.date(2019, 1, 1)]


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
        pa.chunked_array([[7], [7, 3]]),
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


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([1, 1], ValueError, "groups has 2 ids but X has 3 rows; pass one id for every row"),
        *(
            (groups, ValueError, f"group {name} occurs again at row 2 after it began at row 0")
            for groups, name in (
                (["a", "b", "a"], "'a'"),
                ([("x", 1), 2, ("x", 1)], "('x', 1)"),
                (np.array([5, 6, 5]), "5"),
                (np.array(["a", "b", "a"]), "'a'"),
                (pl.Series(["a", "b", "a"]), "'a'"),
            )
        ),
        *(
            (groups, ValueError, "groups has no id (None or NaN) at row 1; every row needs one")
            for groups in (
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
            )
        ),
        *(
            (groups, TypeError, f"groups is {groups!r}; expected one id for every row")
            for groups in ("document", 3, {"a": 1})
        ),
        ([[1], [1], [2]], TypeError, "groups holds an id that is not hashable: "),
        (np.zeros((3, 1)), ValueError, "groups has shape (3, 1); expected 1-D"),
        (pd.DataFrame({"g": [1, 1, 2]}), TypeError, "groups is a DataFrame; pass one column"),
    ],
)
def test_what_cannot_be_groups(groups, error, message):
    with pytest.raises(error, match=re.escape(message)):
        read_groups(groups, 3)
