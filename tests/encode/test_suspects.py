"""Suspicious columns."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hedgerow
from hedgerow.data_warning import DataWarning
from hedgerow.encode import encode
from hedgerow.encode.suspects import warn_of_suspects

N = 40
RUNS = np.repeat(np.arange(8), 5)
NOISE = np.random.default_rng(0).normal(size=N)
MIXED = np.tile([3, 1, 2, 1], 10)


def warnings_of(frame, **more):
    """Messages of all warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_suspects(encode(frame, **more), "TreeCRF")
    assert all(warning.category is DataWarning for warning in found)
    return [str(warning.message) for warning in found]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("anything", RUNS),
        ("anything", RUNS[::-1].astype(float)),
        ("anything", [f"walk {run}" for run in RUNS]),
        ("session", RUNS // 4),
        ("User ID", MIXED),
        ("userId", MIXED),
        ("user_id", [f"u{number}" for number in MIXED]),
        ("ID", pd.Categorical(MIXED)),
    ],
)
def test_a_column_looks_like_an_id(name, values):
    (message,) = warnings_of(pd.DataFrame({"noise": NOISE, name: values}))
    assert message == (
        "X is one flat table without groups, so all of its 40 rows are one sequence, but column "
        f"{name!r} looks like an id of sequences; pass groups=X[{name!r}] to fit, or "
        f"TreeCRF(group_column={name!r}). If X is one sequence, pass [X] and [y]"
    )


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", np.arange(N)),  # of rows
        ("id", [1] * N),
        ("id", NOISE),
        ("id", np.where(RUNS == 2, np.nan, RUNS)),
        ("id", [None, *map("u{}".format, MIXED[1:])]),
        ("step", RUNS // 4),
        ("blood_group", MIXED),
        ("", MIXED),
        ("speed", MIXED),
        ("sorted", np.sort(NOISE)),
    ],
)
def test_a_column_does_not_look_like_an_id(name, values):
    assert warnings_of(pd.DataFrame({"noise": NOISE, name: values})) == []


def test_groups_and_lists_are_no_one_sequence():
    frame = pd.DataFrame({"noise": NOISE, "walk": RUNS})
    assert warnings_of(frame, groups=RUNS) == []
    assert warnings_of(frame, groups=[f"w{run}" for run in RUNS]) == []
    assert warnings_of(frame, group_column="walk") == []
    assert warnings_of([frame]) == []
    assert warnings_of(frame.to_numpy()) == []


def test_very_many_rows():
    many = np.zeros((100_001, 1), np.uint8)
    (message,) = warnings_of(many)
    assert message == (
        "X is one flat table without groups, so all of its 100,001 rows are one sequence; pass "
        "groups=..., an id for every row, to fit, or TreeCRF(group_column=...). If X is one "
        "sequence, pass [X] and [y]"
    )
    assert warnings_of([many]) == warnings_of(many[1:]) == []


@pytest.mark.parametrize(
    ("values", "exceptions", "first"),
    [
        (["1", "2.5"], "", "1"),
        (["1,5", "-2,5", " 1e3"], "", " 1e3"),
        ([*map(str, range(12)), "n/a"], " except 'n/a'", "0"),
        ([*map(str, range(12)), "?", "-"], " except '-' and '?'", "0"),
    ],
)
def test_numbers_stored_as_text(values, exceptions, first):
    (message,) = warnings_of([pd.DataFrame({"x": values})])
    assert message == (
        f"all values of column 'x'{exceptions} look like numbers, such as {first!r}, but are "
        "stored as text, so they are treated as categories; convert the column to numbers, with an "
        "empty cell or NaN for a missing value, for example by pandas.to_numeric(X['x'], "
        "errors='coerce'). If they are codes, convert it to a categorical dtype (in a CSV file, "
        "put a letter before each code)"
    )
    assert warnings_of([pl.DataFrame({"x": list(map(str, values))})]) != []


def test_numbers_stored_as_objects():
    (message,) = warnings_of([pd.DataFrame({"x": pd.Series([1, 2], dtype=object)})])
    assert message == (
        "column 'x' holds numbers, such as 1, as Python objects (dtype object), so they are "
        "treated as categories; convert the column to numbers, with an empty cell or NaN for a "
        "missing value, for example by pandas.to_numeric(X['x'], errors='coerce'). If they are "
        "codes, convert it to a categorical dtype (in a CSV file, put a letter before each code)"
    )


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b"],
        ["1", "n/a"],  # too few to tell
        [*map(str, range(12)), "?", "-", "none"],
        pd.Categorical(["1", "2"]),
        pd.Series([None, None], dtype=object),
        pd.Series([True, False], dtype=object),
    ],
)
def test_text_that_is_text(values):
    assert warnings_of([pd.DataFrame({"x": values})]) == []
    assert len(warnings_of([pd.DataFrame({"x": [None, "7"]})])) == 1


def test_the_warning_shows_the_line_of_the_user():
    frame = pd.DataFrame({"walk": RUNS})
    message = re.escape("column 'walk' looks like an id")
    with pytest.warns(hedgerow.DataWarning, match=message) as caught:
        hedgerow.LinearCRF(max_iter=1, tol=0).fit(frame, ["a", "b"] * 20)
    assert caught[0].filename == __file__
