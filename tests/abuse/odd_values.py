"""Odd values: for any input, the result is a model or one of hedgerow's own error messages."""

import datetime
import decimal
import fractions
import linecache
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st
from scipy import sparse

import hedgerow
from abuse.kind import Case, Kind
from hedgerow import LinearCRF, TreeCRF

__all__ = ["KINDS"]

# Cells of X, labels, weights, groups and parameters, by names for the JSON of a case.
VALUES: dict[str, Any] = {
    "one": 1.0,
    "two": 2,
    "text": "a",
    "other text": "b",
    "zero": 0,
    "minus one": -1,
    "nan": math.nan,
    "inf": math.inf,
    "huge": 1e308,
    "tiny": 5e-324,
    "none": None,
    "true": True,
    "empty text": "",
    "blank": " ",
    "newline": "x\ny",
    "nul": "x\0y",
    "surrogate": "\ud800",
    "emoji": "👩‍🌾",
    "long text": "x" * 10_000,
    "wide integer": 2**70,
    "label beyond int32": 2**32,
    "bytes": b"a",
    "complex": 1j,
    "decimal": decimal.Decimal("1.5"),
    "decimal nan": decimal.Decimal("nan"),
    "fraction": fractions.Fraction(1, 3),
    "date": datetime.date(2020, 1, 1),
    "numpy date": np.datetime64("NaT"),
    "pandas NA": pd.NA,
    "numpy integer": np.int8(3),
    "numpy float": np.float16(0.5),
    "numpy bool": np.True_,
    "0-d array": np.array(1.0),
    "list": [1],
    "empty list": [],
    "tuple": ("a", "b"),
    "dict": {"x": 1},
    "set": {"x"},
    "object": object(),
    "type": int,
    "function": len,
    "range": range(3),
}


def frame_or_object(make: Callable[[list[Any]], Any]) -> Callable[[list[list[Any]]], Any]:
    """One column per cell of the first row; a list if the library refuses the values."""

    def build(rows: list[list[Any]]) -> Any:
        columns = {f"c{i}": [row[i] for row in rows] for i in range(len(rows[0]))}
        try:
            return make(columns)
        except BaseException:  # polars panics for some, which is not an Exception
            return rows

    return build


def to_object_array(rows: list[list[Any]]) -> np.ndarray:
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for t, row in enumerate(rows):
        for i, cell in enumerate(row):
            array[t, i] = cell
    return array


def to_array(rows: list[list[Any]]) -> Any:
    try:
        return np.array(rows)
    except Exception:
        return to_object_array(rows)


# One sequence, from rows of cells.
CONTAINERS: dict[str, Callable[[list[list[Any]]], Any]] = {
    "lists": lambda rows: rows,
    "array": to_array,
    "objects": to_object_array,
    "pandas": frame_or_object(pd.DataFrame),
    "polars": frame_or_object(lambda columns: pl.DataFrame(columns, strict=False)),
    "arrow": frame_or_object(pa.table),
    "items": lambda rows: [{f"c{i}": cell for i, cell in enumerate(row)} for row in rows],
    "sets": lambda rows: [[str(cell) for cell in row] for row in rows],
    "sparse": lambda rows: sparse.csr_matrix(np.eye(len(rows), len(rows[0]))),
    "masked": lambda rows: np.ma.masked_array(np.eye(len(rows), len(rows[0])), mask=True),
    "matrix": lambda rows: np.matrix(np.eye(len(rows), len(rows[0]))),
    "deep": lambda rows: [[rows]],
    "flat": lambda rows: rows[0],
    "1-d": lambda rows: np.arange(float(len(rows))),
    "3-d": lambda rows: np.zeros((len(rows), 1, 1)),
    "records": lambda rows: np.zeros(len(rows), dtype=[("u", "f8"), ("v", "U3")]),
    "no columns": lambda rows: np.zeros((len(rows), 0)),
    "no rows": lambda rows: np.zeros((0, len(rows[0]))),
    "generator": lambda rows: (row for row in rows),
    "series": lambda rows: pd.Series([row[0] for row in rows], dtype=object),
    "text": lambda rows: "abc",
    "none": lambda rows: None,
    "number": lambda rows: 3,
}
PARAMETERS = {
    estimator.__name__: sorted(estimator().get_params()) for estimator in (LinearCRF, TreeCRF)
}
# So that no case takes long.
SMALL = {"LinearCRF": {"max_iter": 3, "tol": 0.0}, "TreeCRF": {"n_rounds": 2}}
X = [[1.0, "u"], [0.0, "v"], [2.0, "u"]]
Y = ["a", "b", "a"]

names = st.sampled_from(list(VALUES))


@st.composite
def odd_cases(draw: st.DrawFn) -> Case:
    estimator = draw(st.sampled_from(["LinearCRF", "TreeCRF"]))
    place = draw(st.sampled_from(["X", "asked", "y", "known", "weights", "groups", "parameter"]))
    case: Case = {"estimator": estimator, "place": place, "listed": draw(st.booleans())}
    if place in ("X", "asked"):
        case["container"] = draw(st.sampled_from(list(CONTAINERS)))
        row = st.lists(names, min_size=2, max_size=2)
        case["rows"] = draw(st.lists(row, min_size=1, max_size=3))
    elif place == "parameter":
        case["parameter"] = draw(st.sampled_from(PARAMETERS[estimator]))
        case["value"] = draw(names)
    else:
        case["values"] = draw(st.lists(names, min_size=0, max_size=4))
        case["as"] = draw(st.sampled_from(["list", "array", "series", "alone"]))
    return case


def check_odd(case: Case) -> None:
    """Fit and predict; any error must be one of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # of NumPy's matrix
        warnings.simplefilter("ignore", UserWarning)
        fit_and_ask(case)


def fit_and_ask(case: Case) -> None:
    place, listed = case["place"], case["listed"]
    x, y, extra, parameters = pd.DataFrame(X, columns=["c0", "c1"]), list(Y), {}, {}
    asked, known = x, None
    if place == "X":
        x = asked = CONTAINERS[case["container"]](named(case["rows"]))
        y = Y[: len(case["rows"])]
    elif place == "asked":
        asked = CONTAINERS[case["container"]](named(case["rows"]))
    elif place == "parameter":
        parameters[case["parameter"]] = VALUES[case["value"]]
    else:
        values = column([VALUES[name] for name in case["values"]], case["as"])
        if place == "y":
            y = values
        elif place == "known":
            known = values
        else:
            extra[{"weights": "sample_weight", "groups": "groups"}[place]] = values
    if listed and "groups" not in extra:
        x, y, asked = [x], [y], [asked]
        known = known if known is None else [known]
    estimator = {"LinearCRF": LinearCRF, "TreeCRF": TreeCRF}[case["estimator"]]
    try:
        crf = estimator(**SMALL[case["estimator"]] | parameters).fit(x, y, **extra)
        crf.predict(asked, known=known)
        crf.predict_marginals(asked, known=known)
    except (ValueError, TypeError) as error:
        check_worded(error)


def named(rows: list[list[str]]) -> list[list[Any]]:
    return [[VALUES[name] for name in row] for row in rows]


def column(values: list[Any], form: str) -> Any:
    if form == "alone" and values:
        return values[0]
    if form == "array":
        array = np.empty(len(values), dtype=object)
        array[:] = values if len(values) != 1 else [values[0]]
        return array
    return pd.Series(values, dtype=object) if form == "series" else values


def check_worded(error: Exception) -> None:
    """Check that hedgerow raised the error, with an informative message."""
    frames: list[TracebackType] = []
    place = error.__traceback__
    while place is not None:
        frames.append(place)
        place = place.tb_next
    file, line = frames[-1].tb_frame.f_code.co_filename, frames[-1].tb_lineno
    ours = Path(hedgerow.__file__).parent in Path(file).parents
    raised = linecache.getline(file, line).strip().startswith("raise")
    # The core's errors have no Python frame, but give advice after a semicolon, like all others.
    worded = ours and (raised or "; " in str(error))
    assert worded, f"not raised by hedgerow: {type(error).__name__}: {error}"
    assert len(str(error)) > 20, f"says too little: {error!r}"


KINDS = [Kind("inputs-values", odd_cases(), check_odd, in_suite=30)]
