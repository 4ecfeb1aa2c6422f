"""Trainings: random data and parameters of both estimators, as plain values."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse

from abuse.kind import Case
from hedgerow import LinearCRF, TreeCRF

__all__ = ["Training", "trainings"]

LABELS = {"text": ["a", "b", "cc", "é"], "numbers": [-1, 0, 2, 10]}
MARGINAL_OBJECTIVES = ["pointwise", "accuracy", "expected_accuracy"]
FORMS = ["dense", "sparse", "frames", "items", "flat"]


@dataclass(frozen=True)
class Training:
    """What a case says, made into an estimator and data.

    Attributes
    ----------
    X, y
        In the form that the case names: lists of sequences, or flat ones.
    fit_parameters
        What `fit` gets beside them.
    ask_parameters
        What every other method gets beside X: the groups of a flat one.
    """

    case: Case
    X: Any
    y: Any
    fit_parameters: dict[str, Any]
    ask_parameters: dict[str, Any]

    @classmethod
    def of(cls, case: Case) -> "Training":
        """Make the data; the same case gives the same data."""
        data = case["data"]
        rng = np.random.default_rng(data["seed"])
        codes = [draw_codes(rng, length, data["n_labels"]) for length in data["lengths"]]
        columns = [draw_columns(rng, part, data) for part in codes]
        labels = np.array(LABELS[data["labels"]], dtype=object)
        y = [hide(rng, labels[part], data["unknown"]) for part in codes]
        fit_parameters: dict[str, Any] = {}
        if case["weights"] != "none":
            n_weights = len(y) if case["weights"] == "sequences" else sum(map(len, y))
            fit_parameters["sample_weight"] = rng.integers(1, 4, n_weights) / 2.0
        if data["form"] != "flat":
            X = [shape(part, data["form"]) for part in columns]
            return cls(case, X, y, fit_parameters, {})
        groups = {"groups": np.repeat(np.arange(len(y)), data["lengths"])}
        flat = pd.concat([shape(part, "frames") for part in columns], ignore_index=True)
        return cls(case, flat, np.concatenate(y), fit_parameters | groups, groups)

    def build(self, **changes: Any) -> LinearCRF | TreeCRF:
        """The estimator, not fitted, with some parameters changed."""
        estimator = {"LinearCRF": LinearCRF, "TreeCRF": TreeCRF}[self.case["estimator"]]
        return estimator(**self.case["parameters"] | self._constraints() | changes)

    def fit(self, **changes: Any) -> LinearCRF | TreeCRF:
        """The estimator, fitted."""
        return self.build(**changes).fit(self.X, self.y, **self.fit_parameters)

    def sequences(self) -> list[tuple[Any, Any]]:
        """X and y, sequence by sequence."""
        if not self.ask_parameters:
            return list(zip(self.X, self.y, strict=True))
        places = np.split(np.arange(len(self.y)), np.cumsum(self.case["data"]["lengths"])[:-1])
        return [(self.X.iloc[place], self.y[place]) for place in places]

    def having(
        self, sequences: list[tuple[Any, Any]], weights: list[Any] | None = None
    ) -> "Training":
        """The same training on other sequences of the same form, and their weights.

        These are as `sample_weights` gives them.
        """
        xs, ys = [x for x, _ in sequences], [np.asarray(y, dtype=object) for _, y in sequences]
        lengths = [len(y) for y in ys]
        case = self.case | {"data": self.case["data"] | {"lengths": lengths}}
        fit_parameters = {}
        if weights is not None and weights[0] is not None:
            fit_parameters["sample_weight"] = np.concatenate(list(map(np.atleast_1d, weights)))
        if not self.ask_parameters:
            return Training(case, xs, ys, fit_parameters, {})
        groups = {"groups": np.repeat(np.arange(len(ys)), lengths)}
        flat = pd.concat(xs, ignore_index=True)
        return Training(case, flat, np.concatenate(ys), fit_parameters | groups, groups)

    def sample_weights(self) -> list[Any]:
        """Sample weights, sequence by sequence: a number, an array of its rows, or None."""
        weights = self.fit_parameters.get("sample_weight")
        lengths = self.case["data"]["lengths"]
        if weights is None:
            return [None] * len(lengths)
        if self.case["weights"] == "positions":
            return np.split(weights, np.cumsum(lengths)[:-1])
        return list(weights)

    def _constraints(self) -> dict[str, Any]:
        """Constraints that the labels keep to: pairs that do not occur are forbidden."""
        if not self.case["constrained"]:
            return {}
        ys = [list(y) for _, y in self.sequences()]
        labels = sorted({label for y in ys for label in y})
        pairs = {pair for y in ys for pair in itertools.pairwise(y)}
        unseen = [(a, b) for a in labels for b in labels if (a, b) not in pairs]
        starts = sorted({y[0] for y in ys})
        return {"forbidden": unseen[: len(labels)], "start_labels": starts}


def draw_codes(rng: np.random.Generator, length: int, n_labels: int) -> np.ndarray:
    """Codes (length,) of labels that tend to be followed by the next one."""
    codes = rng.integers(0, n_labels, length)
    for t in range(1, length):
        if rng.random() < 0.5:
            codes[t] = (codes[t - 1] + 1) % n_labels
    return codes


def draw_columns(rng: np.random.Generator, codes: np.ndarray, data: Case) -> dict[str, np.ndarray]:
    """Columns of one sequence: a flag, counts and numbers, NaN among them, and a text."""
    n = len(codes)
    columns = {
        "flag": (rng.random(n) < 0.5).astype(float),
        "count": rng.integers(0, 4, n) * 1.0,
        "number": np.round(codes + rng.normal(size=n), 3) * data["scale"],
    }
    if data["gaps"]:
        columns["number"][rng.random(n) < 0.3] = np.nan
    columns["text"] = np.array(["u", "v", "w:1"], dtype=object)[rng.integers(0, 3, n)]
    return columns


def hide(rng: np.random.Generator, labels: np.ndarray, share: float) -> np.ndarray:
    """Some labels become unknown, but for the first: a training needs one at least."""
    hidden = rng.random(len(labels)) < share
    hidden[0] = False
    return np.where(hidden, None, labels) if share else labels


def shape(columns: dict[str, np.ndarray], form: str) -> Any:
    """One sequence in the form that the user has."""
    numbers = np.column_stack([columns[name] for name in ("flag", "count", "number")])
    if form == "dense":
        return numbers
    if form == "sparse":
        return sparse.csr_matrix(numbers)
    if form == "frames":
        return pd.DataFrame(columns)
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


@st.composite
def trainings(draw: st.DrawFn, estimators: tuple[str, ...] = ("LinearCRF", "TreeCRF")) -> Case:
    """Trainings that neither estimator refuses."""
    estimator = draw(st.sampled_from(estimators))
    objective = draw(
        st.sampled_from(["likelihood", "likelihood", *MARGINAL_OBJECTIVES])
        if estimator == "TreeCRF"
        else st.sampled_from(["likelihood", "likelihood", "max_margin", *MARGINAL_OBJECTIVES])
    )
    gaps = estimator == "TreeCRF" and draw(st.booleans())
    constrained = draw(st.booleans())
    weighted = draw(st.sampled_from(["none", "none", "class", "sequences", "positions"]))
    form = draw(st.sampled_from(["flat"] if weighted == "positions" else FORMS))
    known = weighted in ("class", "positions") or constrained or objective == "max_margin"
    labels = draw(st.sampled_from(["text", "numbers"]))
    data = {
        "seed": draw(st.integers(0, 10**6)),
        "n_labels": draw(st.integers(1, 4)),
        "lengths": draw(st.lists(st.integers(1, 6), min_size=1, max_size=6)),
        "labels": labels,
        "form": form,
        "gaps": gaps and form != "items",
        "unknown": 0.0 if known else draw(st.sampled_from([0.0, 0.3])),
        "scale": draw(st.sampled_from([1.0, 1.0, 1e3, 1e-3])),
    }
    parameters: dict[str, Any] = {
        "objective": objective,
        "order": draw(st.integers(0, 3)),
        "min_pattern_count": draw(st.integers(0, 2)),
        "n_jobs": 1,
    }
    if weighted == "class":
        parameters["class_weight"] = "balanced"
    if estimator == "LinearCRF":
        parameters |= draw(_linear_parameters(objective))
    else:
        parameters |= draw(_tree_parameters())
    return {
        "estimator": estimator,
        "parameters": parameters,
        "data": data,
        "weights": weighted if weighted in ("sequences", "positions") else "none",
        "constrained": constrained,
    }


@st.composite
def _linear_parameters(draw: st.DrawFn, objective: str) -> dict[str, Any]:
    margin = objective == "max_margin"
    return {
        "reg_lambda": draw(st.sampled_from([1.0, 0.1, 10.0])),
        "reg_alpha": 0.0 if margin else draw(st.sampled_from([0.0, 0.0, 0.1])),
        "max_iter": draw(st.integers(1, 15)),
        "tol": 0.0,
        "min_count": draw(st.integers(0, 2)),
        "all_pairs": draw(st.booleans()),
        "transition_attributes": draw(st.booleans()),
    }


@st.composite
def _tree_parameters(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "n_rounds": draw(st.integers(1, 5)),
        "learning_rate": draw(st.sampled_from([None, 0.3, 1.0])),
        "max_depth": draw(st.sampled_from([6, 2, 1, None])),
        "max_leaves": draw(st.sampled_from([None, 3])),
        "min_child_weight": draw(st.sampled_from([0.0, 1.0])),
        "max_step": draw(st.sampled_from([1.0, None])),
        "max_bins": draw(st.sampled_from([255, 3])),
        "window": draw(st.sampled_from([0, 1, 3])),
        "newton": draw(st.booleans()),
        "curvature": draw(st.sampled_from(["mixing", "exact", "length"])),
        "transition_step": draw(st.sampled_from(["bound", "exact"])),
        "trim": draw(st.sampled_from([None, 0.0])),
        "subsample": draw(st.sampled_from([1.0, 0.6])),
        "stratified": draw(st.booleans()),
        "colsample_bynode": draw(st.sampled_from([1.0, 0.5])),
        "random_state": draw(st.integers(0, 3)),
    }
