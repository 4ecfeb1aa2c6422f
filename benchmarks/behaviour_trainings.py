"""The training runs of `behaviour.py`: a table of estimators, data and parameters."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from behaviour_data import DATA, Data

from hedgerow import Checkpoint, LinearCRF, TreeCRF, load

# Default parameters of all training runs.
USUAL: dict[type, dict[str, Any]] = {
    TreeCRF: {"n_rounds": 8, "max_depth": 3, "min_child_weight": 0.1, "random_state": 0},
    LinearCRF: {"max_iter": 12, "warm_iter": 5, "tol": 0},
}
# The parameter for the number of rounds or iterations.
LIMIT = {TreeCRF: "n_rounds", LinearCRF: "max_iter"}


def word_queries(**parameters: Any) -> Any:
    """Defines queries about words; None in versions before 0.1, which do not support it."""
    try:
        from hedgerow.relational import RelationalFeatures
    except ImportError:
        return None
    modes = ["word(+t,-w)", "word(+t,+w)", "word(+t,#w)"]
    return RelationalFeatures(modes, **{"window": 1, "min_count": 2} | parameters)


def linear_base(**parameters: Any) -> LinearCRF:
    """A model to train trees on top of."""
    return LinearCRF(**{"max_iter": 12, "tol": 0, "n_jobs": 1} | parameters)


class Brier:
    """A custom objective: squared errors of the probabilities."""

    def __repr__(self) -> str:
        return "Brier()"

    def misses(self, marginals: Any, labels: Any) -> Any:
        return marginals - (labels[:, None] == np.arange(marginals.shape[1]))

    def value(self, marginals: Any, labels: Any, weights: Any) -> float:
        return -float(np.sum(weights[:, None] * self.misses(marginals, labels) ** 2))

    def gradient(self, marginals: Any, labels: Any, weights: Any) -> Any:
        return -2 * weights[:, None] * self.misses(marginals, labels)


class StopAt:
    """A callback that ends training after some rounds."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"StopAt({self.number})"

    def __call__(self, done: Any) -> bool:
        return bool(done.number >= self.number)


def fit(crf: Any, data: Data, **more: Any) -> Any:
    return crf.fit(data.X, data.y, groups=data.groups, **data.more, **more)


def halved(crf: Any) -> Any:
    """The same estimator, for half the rounds or iterations."""
    limit = LIMIT[type(crf)]
    parameters = crf.get_params(deep=False)
    parameters |= {limit: parameters[limit] // 2}
    return type(crf)(**parameters)


def fit_on(crf: Any, data: Data) -> Any:
    """Train half as long, and start from that model."""
    return fit(crf, data, init=fit(halved(crf), data))


def fit_from_part(crf: Any, data: Data) -> Any:
    """Start from a first-order model for the likelihood, trained on half of the sequences."""
    half = len(data.X) // 2
    start = type(crf)(**USUAL[type(crf)], n_jobs=crf.n_jobs).fit(data.X[:half], data.y[:half])
    return fit(crf, data, init=start)


def resume(crf: Any, data: Data) -> Any:
    """Train half as long with a checkpoint, and resume."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "training", every=3)
        fit(halved(crf), data, checkpoint=checkpoint)
        return fit(crf, data, checkpoint=checkpoint)


def repeat(crf: Any, data: Data) -> Any:
    """Train with a checkpoint, and fit again from the finished checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "training", every=3)
        fit(type(crf)(**crf.get_params(deep=False)), data, checkpoint=checkpoint)
        return fit(crf, data, checkpoint=checkpoint)


def reload(crf: Any, data: Data) -> Any:
    """Train, save and load."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        fit(crf, data).save(path)
        return load(path)


def share(crf: Any, data: Data) -> Any:
    """Train on three workers, each with every third sequence; returns the model of the last."""
    from hedgerow.comm import ThreadComm

    def work(comm: Any) -> Any:
        own = type(crf)(**crf.get_params(deep=False))
        given = {
            name: values if name == "eval_set" else values[comm.rank :: comm.size]
            for name, values in data.more.items()
        }
        X, y = data.X[comm.rank :: comm.size], data.y[comm.rank :: comm.size]
        return own.fit(X, y, comm=comm, **given)

    return ThreadComm.run(3, work)[-1]


def unpickle(crf: Any, data: Data) -> Any:
    """Train, and pickle and unpickle the model."""
    return pickle.loads(pickle.dumps(fit(crf, data)))


@dataclass(frozen=True, eq=False)
class Training:
    """One row of the table."""

    kind: type
    data: str
    parameters: dict[str, Any]
    how: Callable[[Any, Data], Any] = fit

    @property
    def name(self) -> str:
        parameters = [f"{name}={value!r}" for name, value in self.parameters.items()]
        way = [] if self.how is fit else [self.how.__name__]
        return " ".join([self.kind.__name__, self.data, *way, *parameters])

    def run(self, n_jobs: int | None) -> tuple[Any, Data]:
        """Train; return the model, and data to predict. `n_jobs` overrides that of the table."""
        jobs = {"n_jobs": n_jobs or self.parameters.get("n_jobs", 2)}
        crf = self.kind(**USUAL[self.kind] | self.parameters | jobs)
        return self.how(crf, DATA[self.data](0)), DATA[self.data](1)


OBJECTIVES = (
    *("likelihood", "pointwise", "accuracy", "expected_accuracy", "f1", "softmax_margin"),
    *("max_margin", Brier()),
)
# Data sets by which of their labels are known, with the parameters that they need.
LABELLINGS: dict[str, dict[str, Any]] = {
    "numbers": {},
    "partial": {},
    "chunks": {"constraints": "BIO"},
    "partial_chunks": {"constraints": "BIO", "missing_label": "?"},
}


def grid() -> Iterator[Training]:
    """All combinations of orders, objectives and kinds of labels."""
    for kind, data, order, objective in product(USUAL, LABELLINGS, range(4), OBJECTIVES):
        if objective == "max_margin" and (kind is TreeCRF or data.startswith("partial")):
            continue
        parameters = {"order": order, "objective": objective}
        yield Training(kind, data, LABELLINGS[data] | parameters)


# How a table with a column of heads is read.
HEADS: dict[str, Any] = {
    "group_column": "group",
    "parents_column": "head",
    "parents_format": "conllu",
}

# Data and parameters for both estimators.
BOTH: list[tuple[str, dict[str, Any]]] = [
    ("integers", {}),
    ("numbers", {"order": 2, "min_pattern_count": 3}),
    ("numbers", {"order": 1, "min_pattern_count": 1}),
    ("numbers", {"label_patterns": [("low", "mid"), ("mid", "mid", "low"), ("top",) * 4]}),
    ("numbers", {"label_patterns": [("low", "mid")], "objective": "pointwise"}),
    ("numbers", {"class_weight": {"low": 2.0, "top": 0.5}}),
    ("numbers", {"early_stopping_rounds": 3, "validation_fraction": 0.2}),
    ("weighted_rows", {"early_stopping_rounds": 3, "validation_fraction": 0.3}),
    ("dicts", {"early_stopping_rounds": 3, "validation_fraction": 0.3, "random_state": 1}),
    ("numbers", {"class_weight": "balanced", "order": 2}),
    ("numbers", {"class_weight": "balanced", "objective": "accuracy", "sharpness": 8.0}),
    ("chunks", {"forbidden": [("O", "I-x"), ("O", "I-y")], "start_labels": ["O", "B-x", "B-y"]}),
    ("chunks", {"constraints": "BIO", "end_labels": ["O", "I-x", "B-x", "I-y", "B-y"]}),
    ("ends", {"constraints": "BIOES"}),
    ("ends", {"constraints": "BIOES", "order": 2, "min_pattern_count": 2}),
    ("chunks", {"constraints": "BIO", "class_weight": {"O": 0.5}}),
    ("integers", {"allowed": [(a, b) for a in (111, 112, 119) for b in (111, 112, 119)]}),
    ("weighted", {}),
    ("weighted", {"order": 2, "objective": "pointwise"}),
    ("weighted", {"objective": "accuracy", "class_weight": "balanced"}),
    ("weighted_rows", {}),
    ("weighted_rows", {"order": 2}),
    ("weighted_rows", {"order": 0, "class_weight": "balanced"}),
    ("weighted_rows", {"objective": "expected_accuracy"}),
    ("watched", {}),
    ("watched", {"order": 2, "objective": "pointwise"}),
    ("weighted_watched", {"objective": "accuracy"}),
    ("watched_chunks", {"constraints": "BIO", "missing_label": "?", "order": 2}),
    ("watched_flat", {"objective": "expected_accuracy"}),
    ("flat", {"order": 2}),
    ("one_long", {}),
    ("whole_frames", {}),
    ("names", {"order": 2}),
    ("table", {"group_column": "group"}),
    ("heads", HEADS),
    ("heads", {**HEADS, "order": 2, "ancestors": 2}),
    ("heads", {**HEADS, "order": 0, "ancestors": 1}),
    ("heads", {**HEADS, "objective": "expected_accuracy"}),
    ("heads", {**HEADS, "forbidden": [("top", "top")]}),
    ("matrices", {}),
    ("dicts", {}),
    ("dicts", {"order": 2, "objective": "pointwise"}),
    ("items", {"order": 2}),
    ("facts", {}),
    ("atoms", {"queries": word_queries()}),
    ("letters", {"n_jobs": 1}),
    ("letters", {"n_jobs": 2}),
    ("letters", {"n_jobs": 3}),
    ("letters", {"order": 3, "n_jobs": 1}),
    ("letters", {"order": 3, "n_jobs": 3}),
    ("letters", {"objective": "accuracy", "n_jobs": 3}),
    ("letters", {"objective": "softmax_margin", "label_costs": 3.0, "n_jobs": 3}),
    ("numbers", {"objective": "softmax_margin", "label_costs": {"low": {"top": 5.0}}, "order": 2}),
    ("weighted_rows", {"objective": "softmax_margin", "class_weight": "balanced"}),
    ("weighted_rows", {"objective": "f1", "f1_labels": ["low", "top"], "f1_average": "micro"}),
    ("watched", {"objective": "softmax_margin", "early_stopping_rounds": 3}),
]

TREES: list[tuple[str, dict[str, Any]]] = [
    ("atoms", {"queries": word_queries(depth=1)}),
    ("atoms", {"queries": word_queries(), "max_literals": 3, "window": 1, "subsample": 0.5}),
    ("gaps", {}),
    ("gaps", {"window": 1, "order": 2}),
    ("heads", {**HEADS, "window": 1, "ancestors": 3}),
    ("heads", {**HEADS, "transitions": "trees"}),
    ("heads", {**HEADS, "curvature": "exact"}),
    ("frames", {}),
    ("frames", {"window": (1, 0), "max_bins": 8, "order": 2}),
    ("frames", {"newton": False, "objective": "pointwise"}),
    ("dicts", {"window": 1}),
    ("numbers", {"monotone_constraints": {0: {"top": 1}, 1: {"low": 1, "top": -1}}}),
    ("gaps", {"monotone_constraints": {0: {"top": 1}}, "window": 1, "order": 2}),
    ("numbers", {"interaction_constraints": [[0, 1]], "colsample_bynode": 0.5}),
    ("frames", {"interaction_constraints": "pairwise", "window": 1}),
    ("dicts", {"interaction_constraints": "no_interactions"}),
    ("matrices", {"window": (0, 2), "subsample": 0.7}),
    ("numbers", {"order": 3, "pattern_lambda": [0.5, 2.0]}),
    ("partial", {"order": 2, "pattern_lambda": None}),
    ("numbers", {"transitions": "trees"}),
    ("numbers", {"transitions": "trees", "label_patterns": [], "newton": False, "trim": 0.0}),
    ("partial", {"transitions": "trees", "order": 2, "objective": "pointwise"}),
    ("partial", {"transitions": "trees", "order": 2, "objective": "softmax_margin"}),
    ("weighted_rows", {"transitions": "trees", "window": 1, "subsample": 0.5}),
    *(
        (data, {"missing": missing, "window": window})
        for missing in ("fractional", "surrogate", "impute", "indicator")
        for data, window in (("gaps", 0), ("gaps", 1), ("frames", 1))
    ),
    ("gaps", {"missing": "surrogate", "transitions": "trees"}),
    ("gaps", {"missing": "fractional", "transitions": "trees"}),
    ("gaps", {"missing": "fractional", "transitions": "trees", "order": 2, "newton": False}),
    ("numbers", {"base": linear_base(), "base_folds": 3}),
    ("dicts", {"base": linear_base(transition_attributes=True), "base_folds": 0, "order": 2}),
    ("watched", {"base": linear_base(order=2), "transitions": "trees"}),
    ("numbers", {"newton": False}),
    ("numbers", {"newton": False, "order": 2, "transition_step": "exact"}),
    ("numbers", {"newton": False, "learning_rate": 30.0, "max_step": None}),
    ("partial", {"newton": False}),
    ("chunks", {"newton": False, "constraints": "BIO"}),
    *(
        (data, {"curvature": curvature, **more})
        for curvature in ("mixing", "exact", "length")
        for data, more in (
            ("numbers", {"max_step": None, "trim": 0.0}),
            ("partial", {"order": 2}),
            ("chunks", {"constraints": "BIO", "transition_step": "exact"}),
            ("weighted_rows", {}),
        )
    ),
    *(
        (data, {"transition_step": "exact", **more})
        for data, more in (
            ("numbers", {}),
            ("numbers", {"order": 0}),
            ("numbers", {"objective": "pointwise"}),
            ("numbers", {"order": 2, "objective": "accuracy"}),
            ("partial", {"order": 2}),
            ("weighted", {"order": 3}),
            ("weighted_rows", {}),
        )
    ),
    *(
        (data, {**way, **more})
        for way in ({"line_search": True}, {"direction": "conjugate"})
        for data, more in (
            ("numbers", {}),
            ("partial", {"order": 3, "pattern_lambda": [0.5, 2.0]}),
            ("partial", {"objective": "softmax_margin", "transition_step": "exact"}),
            ("weighted_rows", {"objective": "accuracy", "warm_rounds": 3}),
            ("chunks", {"constraints": "BIO", "transitions": "trees", "subsample": 0.5}),
            ("watched", {"n_rounds": 20, "early_stopping_rounds": 2, "newton": False}),
        )
    ),
    ("numbers", {"subsample": 0.5}),
    ("numbers", {"subsample": 0.5, "random_state": 5, "objective": "accuracy"}),
    ("weighted", {"subsample": 0.5, "order": 2}),
    ("numbers", {"colsample_bytree": 0.5, "colsample_bynode": 0.7}),
    ("numbers", {"stratified": True}),
    ("numbers", {"stratified": True, "negative_weight": "none"}),
    ("numbers", {"subsample": 0.3, "sampling_method": "gradient_based"}),
    ("tall", {"n_rounds": 3}),
    ("letters", {"stratified": True, "negative_ratio": 2.0, "subsample": 0.5}),
    ("letters", {"stratified": True, "negative_weight": "balanced", "transitions": "trees"}),
    ("letters", {"subsample": 0.2, "sampling_method": "gradient_based", "newton": False}),
    ("letters", {"window": 1, "colsample_bynode": 0.3, "order": 2}),
    ("letters", {"trim": 0.0, "max_leaves": 6, "max_depth": None}),
    ("numbers", {"trim": 0.1}),
    ("numbers", {"max_step": 0.2, "reg_lambda": 0.1, "min_split_gain": 0.1}),
    ("numbers", {"learning_rate": 8.0, "max_step": None}),
    ("numbers", {"learning_rate": 8.0, "max_step": None, "order": 2, "objective": "pointwise"}),
    ("chunks", {"learning_rate": 8.0, "max_step": None, "constraints": "BIO"}),
    ("numbers", {"learning_rate": 1e6, "max_step": None, "reg_lambda": 0.0}),
    ("numbers", {"trim": 1.0, "order": 0}),
    ("numbers", {"trim": 1.0, "order": 0, "subsample": 0.5}),
    ("numbers", {"warm_rounds": 0, "objective": "accuracy"}),
    ("numbers", {"warm_rounds": 4, "objective": "expected_accuracy"}),
    ("numbers", {"n_rounds": 45, "warm_rounds": 2, "max_depth": 1, "objective": "accuracy"}),
    ("watched", {"n_rounds": 40, "early_stopping_rounds": 2, "learning_rate": 1.0}),
    ("watched", {"n_rounds": 30, "early_stopping_rounds": 3, "early_stopping_metric": "accuracy"}),
    ("watched", {"n_rounds": 30, "early_stopping_rounds": 3, "eval_metric": "f1_macro"}),
    ("watched", {"early_stopping_rounds": 2, "objective": "accuracy", "warm_rounds": 2}),
    ("watched", {"callbacks": [StopAt(5)]}),
]

LINEAR: list[tuple[str, dict[str, Any]]] = [
    ("numbers", {"order": 2, "pattern_lambda": "auto"}),
    ("dicts", {"reg_alpha": 0.5}),
    ("dicts", {"reg_alpha": 0.5, "reg_lambda": 0.0, "order": 2}),
    ("partial", {"reg_alpha": 0.1, "objective": "pointwise"}),
    ("chunks", {"reg_alpha": 0.2, "constraints": "BIO", "objective": "accuracy"}),
    ("dicts", {"transition_attributes": True}),
    ("dicts", {"transition_attributes": True, "all_pairs": True, "objective": "pointwise"}),
    ("weighted", {"transition_attributes": True, "objective": "max_margin"}),
    ("weighted_rows", {"transition_attributes": True}),
    ("partial", {"transition_attributes": True}),
    ("chunks", {"transition_attributes": True, "constraints": "BIO", "reg_alpha": 0.1}),
    ("items", {"transition_attributes": "B"}),
    ("items", {"transition_attributes": "B", "all_pairs": True, "objective": "accuracy"}),
    ("items", {"transition_attributes": "B", "order": 2}),
    ("items", {"transition_attributes": "B", "order": 2, "objective": "max_margin"}),
    ("items", {"pattern_attributes": "B", "order": 2}),
    ("dicts", {"pattern_attributes": True, "order": 3, "objective": "accuracy"}),
    ("weighted", {"pattern_attributes": True, "order": 2, "objective": "max_margin"}),
    ("partial", {"pattern_attributes": True, "order": 2, "reg_alpha": 0.1}),
    ("dicts", {"all_pairs": True}),
    ("dicts", {"all_pairs": True, "reg_alpha": 0.5}),
    ("weighted", {"all_pairs": True, "objective": "max_margin"}),
    ("chunks", {"all_pairs": True, "constraints": "BIO", "order": 2}),
    ("letters", {"all_pairs": True}),
    ("dicts", {"min_count": 20}),
    ("dicts", {"min_count": 20, "all_pairs": True, "order": 2}),
    ("numbers", {"objective": "pointwise", "warm_iter": 0}),
    ("numbers", {"objective": "accuracy", "warm_iter": 12}),
    ("numbers", {"max_iter": 1000, "tol": None}),
    ("numbers", {"max_iter": 1000, "tol": None, "warm_iter": None, "objective": "accuracy"}),
    ("numbers", {"max_iter": 1000, "tol": None, "objective": "max_margin"}),
    ("numbers", {"max_iter": 400, "tol": 1e-6, "reg_lambda": 0.1, "objective": "max_margin"}),
    ("numbers", {"reg_lambda": 0.01, "order": 2}),
    ("numbers", {"reg_alpha": 1000.0}),
    ("scaled", {}),
    ("scaled", {"reg_alpha": 0.1, "order": 2}),
    ("scaled", {"objective": "accuracy", "transition_attributes": True}),
    ("scaled", {"objective": "max_margin"}),
    ("weighted", {"objective": "max_margin", "class_weight": "balanced"}),
    ("weighted_rows", {"objective": "max_margin"}),
    ("watched", {"objective": "max_margin", "order": 2}),
    ("watched", {"reg_alpha": 0.2}),
    ("wide", {"max_iter": 3, "transition_attributes": True}),
    (
        "wide",
        {"max_iter": 2, "warm_iter": 1, "transition_attributes": True, "objective": "pointwise"},
    ),
    ("letters", {"objective": "max_margin", "n_jobs": 3}),
    ("letters", {"reg_alpha": 0.3, "order": 2}),
]

# Training runs that start from a model or a checkpoint, and models that are saved and loaded.
STAGED: list[tuple[Callable[[Any, Data], Any], type, str, dict[str, Any]]] = [
    (reload, TreeCRF, "frames", {"window": 1, "order": 2}),
    (reload, TreeCRF, "chunks", {"constraints": "BIO", "objective": Brier()}),
    (reload, TreeCRF, "items", {"objective": "accuracy"}),
    (reload, LinearCRF, "dicts", {"transition_attributes": True}),
    (reload, LinearCRF, "chunks", {"constraints": "BIO", "order": 2, "objective": "pointwise"}),
    (unpickle, TreeCRF, "frames", {"window": 1, "order": 2}),
    (unpickle, LinearCRF, "dicts", {"transition_attributes": True}),
    (fit_on, TreeCRF, "numbers", {}),
    (fit_on, TreeCRF, "watched", {"order": 2, "subsample": 0.5}),
    (fit_on, TreeCRF, "partial", {"objective": "accuracy"}),
    (fit_on, LinearCRF, "dicts", {"transition_attributes": True}),
    (fit_on, LinearCRF, "numbers", {"objective": "max_margin"}),
    (fit_from_part, TreeCRF, "numbers", {"order": 2}),
    (fit_from_part, TreeCRF, "weighted", {"objective": "pointwise"}),
    (
        fit_from_part,
        LinearCRF,
        "weighted",
        {"order": 2, "objective": "pointwise", "warm_iter": None},
    ),
    (fit_from_part, LinearCRF, "numbers", {"reg_alpha": 0.3}),
    (fit_from_part, LinearCRF, "dicts", {"transition_attributes": True}),
    (resume, TreeCRF, "numbers", {}),
    (resume, TreeCRF, "watched", {"order": 2, "subsample": 0.5, "colsample_bytree": 0.5}),
    (resume, TreeCRF, "chunks", {"constraints": "BIO", "objective": Brier(), "warm_rounds": 2}),
    (resume, TreeCRF, "weighted", {"transition_step": "exact"}),
    (resume, TreeCRF, "dicts", {"early_stopping_rounds": 9, "validation_fraction": 0.3}),
    (resume, TreeCRF, "weighted", {"direction": "conjugate", "transitions": "trees"}),
    (fit_on, TreeCRF, "numbers", {"direction": "conjugate"}),
    (reload, TreeCRF, "dicts", {"base": linear_base(), "base_folds": 2}),
    (resume, TreeCRF, "numbers", {"base": linear_base(), "base_folds": 2}),
    (fit_on, TreeCRF, "numbers", {"base": linear_base(), "base_folds": 2}),
    (resume, LinearCRF, "numbers", {}),
    (resume, LinearCRF, "watched", {"order": 2}),
    (resume, LinearCRF, "dicts", {"reg_alpha": 0.5}),
    (share, TreeCRF, "numbers", {"order": 2, "subsample": 0.5}),
    (share, TreeCRF, "gaps", {"window": 1, "class_weight": "balanced"}),
    (share, TreeCRF, "weighted", {"objective": "f1", "transition_step": "exact"}),
    (share, TreeCRF, "dicts", {"colsample_bynode": 0.5, "line_search": True}),
    (share, TreeCRF, "watched", {"n_rounds": 30, "early_stopping_rounds": 2}),
    (share, LinearCRF, "weighted", {"order": 2}),
    (share, LinearCRF, "dicts", {"reg_alpha": 0.5}),
    (share, LinearCRF, "names", {"objective": "max_margin"}),
    (repeat, TreeCRF, "watched", {"n_rounds": 30, "early_stopping_rounds": 2}),
    (repeat, LinearCRF, "numbers", {"objective": "max_margin"}),
    (repeat, LinearCRF, "partial", {"objective": "accuracy"}),
]

TRAININGS: list[Training] = [
    *grid(),
    *(Training(kind, data, more) for kind in USUAL for data, more in BOTH),
    *(Training(TreeCRF, data, more) for data, more in TREES),
    *(Training(LinearCRF, data, more) for data, more in LINEAR),
    *(Training(kind, data, more, how) for how, kind, data, more in STAGED),
]
