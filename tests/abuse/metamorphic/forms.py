"""The same numbers in all input formats."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st
from scipy import sparse

from abuse.kind import Case, Kind
from abuse.metamorphic.answers import answers, assert_same_answers
from abuse.training import Training
from abuse.trainings import draw_nothing, trainings, unwatch

__all__ = ["KINDS"]

NAMES = ["flag", "count", "number"]


def strided(x: np.ndarray) -> np.ndarray:
    """A view of every other row and column of a larger array."""
    larger = np.full((2 * len(x), 2 * x.shape[1]), 7.25)
    larger[::2, ::2] = x
    return larger[::2, ::2]


def read_only(x: np.ndarray) -> np.ndarray:
    """An array that cannot be written to."""
    x = x.copy()
    x.flags.writeable = False
    return x


def named(library: Any, x: np.ndarray) -> Any:
    """A frame of pandas or polars."""
    return library.DataFrame(dict(zip(NAMES, x.T, strict=True)))


# Formats of one sequence, from an array.
OF_A_SEQUENCE: dict[str, Callable[[np.ndarray], Any]] = {
    "F order": np.asfortranarray,
    "strided": strided,
    "backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "read-only": read_only,
    "big-endian": lambda x: x.astype(">f8"),
    "float32": lambda x: x.astype(np.float32),
    "nested lists": lambda x: x.tolist(),
    "rows": list,
    "pandas": lambda x: named(pd, x),
    "polars": lambda x: named(pl, x),
    "narrow pandas": lambda x: named(pd, x).astype({"flag": bool, "count": np.int8}),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "stored zeros": lambda x: sparse.csr_array(
        (x.ravel(), np.tile(np.arange(x.shape[1]), len(x)), np.arange(len(x) + 1) * x.shape[1])
    ),
}
SPARSE = ("csr", "csc", "coo", "stored zeros")
OF_ALL = ["list", "generator", "tuple", "array of objects", "groups", "text groups", "group column"]


@st.composite
def changed_forms(draw: st.DrawFn) -> Case:
    """Training runs on numbers, and another format of the same numbers."""
    case = draw_nothing(draw(trainings().filter(lambda case: case["weights"] != "positions")))
    case["data"]["form"] = "dense"
    for name in ("transition_attributes", "pattern_attributes"):
        if isinstance(case["parameters"].get(name), str):
            case["parameters"][name] = True  # only some formats have names
    case["form"] = draw(st.sampled_from(["dense", *OF_A_SEQUENCE]))
    case["whole"] = draw(st.sampled_from(OF_ALL))
    if case["form"] in SPARSE and case["estimator"] == "TreeCRF":
        unwatch(case)  # cuts differ: sparse columns always contain 0
        case["parameters"]["max_bins"] = 255
        # Missing values of sparse columns become 0 instead of the median. There are cuts on both
        # sides of 0 where an indicator puts them.
        if case["parameters"]["missing"] in ("impute", "indicator"):
            case["parameters"]["missing"] = "learned"
    if case["whole"] == "generator":
        case["warm"] = False  # it can be iterated only once
    return case


def check_forms(case: Case) -> None:
    """Every format gives the same model and the same predictions, bit for bit."""
    training = Training.of(case)
    plain = training.changed(
        lambda part: part._replace(x=part.x.astype(np.float32).astype(np.float64))
    )
    given, parameters = change_form(plain, case["form"], case["whole"])
    one, other = plain.fit(), given.fit(**parameters)
    assert other.loss_ == one.loss_
    assert other.history_ == one.history_
    expected = answers(one, plain)
    if case["whole"] == "generator":
        given, _ = change_form(plain, case["form"], "list")
    assert_same_answers(answers(other, given), expected)
    if not parameters:  # a model accepts any format, whatever it was fitted on
        assert_same_answers(answers(one, given), expected)
        assert_same_answers(answers(other, plain), expected)


def change_form(training: Training, form: str, whole: str) -> tuple[Training, dict[str, Any]]:
    """The same data in another format, with the parameters that it needs."""
    weights = {k: v for k, v in training.fit_parameters.items() if k == "sample_weight"}
    if training.watched is not None:
        watched, _ = change_form(training.watched, form, whole)
        weights["eval_set"] = watched.as_eval_set()
    change = OF_A_SEQUENCE.get(form, lambda x: x)
    if whole in ("groups", "text groups", "group column"):
        lengths = training.case["data"]["lengths"]
        X, labels = change(np.concatenate(training.X)), np.concatenate(training.y)
        if form == "rows":
            X = np.concatenate(training.X).tolist()  # a list of arrays is a list of sequences
        ids = np.repeat(np.arange(len(lengths)), lengths)
        if whole == "group column":
            X, column = add_column(X, ids)
            changed = replace(training, X=X, y=labels, fit_parameters=weights)
            return changed, {"group_column": column}
        groups = {"groups": ids if whole == "groups" else [f"é{number}" for number in ids]}
        fit = weights | groups
        return replace(training, X=X, y=labels, fit_parameters=fit, ask_parameters=groups), {}
    xs: Any = [change(x) for x in training.X]
    ys: Any = training.y
    if whole == "generator":
        xs, ys = iter(xs), iter(ys)
    elif whole == "tuple":
        xs, ys = tuple(xs), tuple(map(tuple, ys))
    elif whole == "array of objects":
        held = np.empty(len(xs), dtype=object)
        for place, x in enumerate(xs):
            held[place] = x
        xs = held
    return replace(training, X=xs, y=ys, fit_parameters=weights), {}


def add_column(X: Any, ids: np.ndarray) -> tuple[Any, str | int]:
    """X with a column of group ids in the middle, and its name."""
    if isinstance(X, pd.DataFrame):
        held = X.copy()
        held.insert(1, "day", ids)
        return held, "day"
    if isinstance(X, pl.DataFrame):
        return X.insert_column(1, pl.Series("day", ids)), "day"
    if sparse.issparse(X):
        X = X.tocsc()
        return sparse.hstack([X[:, :1], sparse.csc_array(ids[:, None]), X[:, 1:]]).tocsr(), 1
    if isinstance(X, list):
        return [[*row[:1], number, *row[1:]] for row, number in zip(X, ids, strict=True)], -3
    return np.insert(X, 1, ids, axis=1), 1


KINDS = [Kind("metamorphic-forms", changed_forms(), check_forms, in_suite=5)]
