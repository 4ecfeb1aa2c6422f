"""The columns of X: their order, their units, and constant columns."""

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse

from abuse.kind import Case, Kind
from abuse.metamorphic.alike import assert_alike, assert_same_trees, decided
from abuse.metamorphic.answers import answers, assert_same_answers
from abuse.training import FLAT_FORMS, Training
from abuse.trainings import draw_nothing, trainings, unwatch
from hedgerow import TreeCRF

__all__ = ["KINDS"]

CHANGES = ["order", "constant", "power of two", "monotone"]
CONSTANTS = [0.0, 1.0, -2.5, None, "text"]  # None: missing everywhere


@st.composite
def changed_columns(draw: st.DrawFn) -> Case:
    """Training runs on columns, and changes of these."""
    case = draw_nothing(draw(trainings()))
    if case["data"]["form"] in ("items", "facts"):
        case["data"]["form"] = "frames"
    frames = case["data"]["form"] in ("frames", *FLAT_FORMS)
    trees = case["estimator"] == "TreeCRF"
    case["change"] = draw(st.sampled_from(CHANGES if trees else CHANGES[:2]))
    if case["change"] == "order" and not frames:
        case["change"] = "constant"
    if case["change"] == "constant":
        allowed = CONSTANTS[:3] + CONSTANTS[3:4] * trees + CONSTANTS[4:] * (frames and trees)
        case["constant"] = draw(st.sampled_from(allowed))
    case["power"] = draw(st.integers(-30, 30))
    sparse_units = case["change"] == "power of two" and case["data"]["form"] == "sparse"
    if case["change"] == "monotone" or sparse_units:
        unwatch(case)  # values that did not occur in training may fall on either side of a cut
    return case


def check_columns(case: Case) -> None:
    """See what is checked of each change."""
    if case["change"] == "order":
        check_column_order(Training.of(decided(case)))
        return
    if case["estimator"] == "TreeCRF":
        # Draws depend on the indices of columns.
        case = case | {
            "parameters": case["parameters"] | {"colsample_bytree": 1.0, "colsample_bynode": 1.0}
        }
    (check_constant if case["change"] == "constant" else check_units)(Training.of(case))


def check_column_order(training: Training) -> None:
    """The order of named columns does not matter; in training it affects only ties."""
    names = np.random.default_rng(training.case["data"]["seed"]).permutation(
        ["flag", "count", "number", "text"]
    )
    moved = change_columns(training, lambda x: x[names])
    first, second = training.fit(), moved.fit()
    assert_alike(first, second)
    assert_same_answers(answers(first, moved), answers(first, training))


def check_constant(training: Training) -> None:
    """Trees ignore a constant column, if it is the last one."""
    constant = training.case["constant"]
    more = change_columns(training, lambda x: add_constant(x, constant))
    first, second = training.fit(), more.fit()
    if not isinstance(first, TreeCRF):
        # The weight of a constant column is another bias; that of zeros stays 0.
        if constant == 0.0:
            assert_alike(first, second)
        return
    assert_same_trees(first, second)
    assert first.history_ == second.history_
    assert_same_answers(answers(second, more), answers(first, training))


def check_units(training: Training) -> None:
    """Trees use only the order of values; if multiplied by a power of two, cuts are scaled too."""
    exact = training.case["change"] == "power of two"

    def change(values: np.ndarray) -> np.ndarray:
        return values * 2.0 ** training.case["power"] if exact else values**3

    moved = change_columns(training, lambda x: change_numbers(x, change))
    first, second = training.fit(), moved.fit()
    assert first.history_ == second.history_
    assert_same_trees(first, second, *("threshold", "question", "surrogates"))
    assert_same_answers(answers(second, moved), answers(first, training))
    if not exact:
        return
    # A value between two cuts is between them in other units too.
    rng = np.random.default_rng(0)
    between = change_columns(training, lambda x: change_numbers(x, lambda v: blur(v, rng)))
    both = change_columns(between, lambda x: change_numbers(x, change))
    if training.case["data"]["form"] != "sparse":  # binary columns have a special cut
        assert_same_answers(answers(second, both), answers(first, between))


def blur(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return values + np.round(rng.normal(size=len(values)) * 4) / 16


def change_columns(training: Training, change: Any) -> Training:
    """The same training with another X."""
    return training.changed(lambda part: part._replace(x=change(part.x)))


def add_constant(x: Any, constant: Any) -> Any:
    """One more column at the end."""
    value = np.nan if constant is None else constant
    if isinstance(x, pd.DataFrame):
        return x.assign(constant=np.full(len(x), value, object if value == "text" else float))
    column = np.full((x.shape[0], 1), value)
    return sparse.hstack([x, column]).tocsr() if sparse.issparse(x) else np.hstack([x, column])


def change_numbers(x: Any, change: Any) -> Any:
    """Change all numeric columns."""
    if isinstance(x, pd.DataFrame):
        return x.assign(
            **{name: change(x[name].to_numpy()) for name in ("flag", "count", "number")}
        )
    if sparse.issparse(x):
        x = x.copy()
        x.data = change(x.data)
        return x
    return np.column_stack([change(column) for column in x.T])


@st.composite
def scaled_trainings(draw: st.DrawFn) -> Case:
    """Training runs of linear models without a penalty, whose loss does not depend on units."""
    case = draw(trainings(("LinearCRF",)))
    case["parameters"] |= {
        "objective": "likelihood",
        "order": 0,  # otherwise weights of patterns that do not occur would decrease without bound
        "reg_lambda": 0.0,
        "reg_alpha": 0.0,
        "max_iter": 2000,
        "tol": 1e-8,
        "min_count": 0,
        "all_pairs": True,
        "transition_attributes": False,
        "pattern_attributes": False,
    }
    case["parameters"].pop("class_weight", None)
    case["data"] |= {"unknown": 0.0, "scale": 1.0, "form": "dense"}
    case |= {"weights": "none", "class_weights": None, "constrained": "", "patterns": None}
    case |= {"warm": False, "power": draw(st.integers(-30, 30))}
    unwatch(case)
    return case


def check_scale(case: Case) -> None:
    """Weights of a scaled column are scaled inversely, and the minimum of the loss is the same.

    Every sequence also occurs with all other labels, a third as often, so that the minimum has
    finite weights. Training stops if ten iterations decrease the loss by less than 1e-8 of it.
    """
    training = Training.of(case)
    labels = sorted({label for y in training.labels for label in y})
    following = dict(zip(labels, labels[1:] + labels[:1], strict=True))
    parts = []
    for part in training.parts():
        y = part.labels
        for number in range(len(labels)):
            parts.append(part._replace(y=y, labels=y, weight=1.0 if number else 3.0))
            y = [following[label] for label in y]
    first = training.having(parts)
    factors = np.array([1.0, 1.0, 2.0 ** case["power"]])
    second = change_columns(first, lambda x: x * factors)
    np.testing.assert_allclose(second.fit().loss_, first.fit().loss_, rtol=1e-4, atol=1e-9)


KINDS = [
    Kind("metamorphic-columns", changed_columns(), check_columns, in_suite=4),
    Kind("metamorphic-scale", scaled_trainings(), check_scale, in_suite=4),
]
