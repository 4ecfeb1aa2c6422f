"""Table 2: error on OCR letters by ten-fold cross-validation, trained on nine folds.

The methods of the paper, boosting with label patterns of up to four letters, and boosting on top of
a linear CRF, cross-fitted unless ``--set base_folds=0`` is given. The penalty of the linear CRF is
chosen on every tenth training word of the first fold, the depth of LogitBoost by cross-validation
within the training words of the first fold.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import common
import trees_common
from high_order_training import train
from peers.ocr_linear import split_words
from sklearn.model_selection import GridSearchCV

from hedgerow import LinearCRF, TreeCRF

TREES: dict[str, dict[str, Any]] = {
    "logitboost": {
        "order": 0,
        "learning_rate": 0.15,
        "colsample_bynode": 0.1,
        "n_rounds": 600,
    },
    "first_order": {"order": 1, "newton": False, "n_rounds": 1000},
    "gbcrf": {"order": 1, "learning_rate": 0.15, "n_rounds": 400},
    "gbcrf_order_3": {"order": 3, "n_rounds": 60},
    "gbcrf_on_linear": {"order": 1, "learning_rate": 0.15, "n_rounds": 400, "base": LinearCRF()},
    "gbcrf_order_3_on_linear": {"order": 3, "n_rounds": 60, "base": LinearCRF(order=3)},
}
PARTS = ("linear", *TREES)
# Cross-validation error of the paper, and its standard error.
PUBLISHED = {
    "linear": (0.1292, 0.0080),
    "logitboost": (0.0967, 0.0049),
    "first_order": (0.0699, 0.0040),
    "gbcrf": (0.0464, 0.0027),
}
N_FOLDS = 10
PENALTIES = (0.1, 1.0, 10.0)
DEPTHS = (4, 6, 8)
N_PARTS = 3
QUICK_ROUNDS = 3
QUICK_ITERATIONS = 5
QUICK_FOLDS = (0, 1)

Train = Callable[[Any, Any], tuple[Any, common.Record]]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folds", type=int, nargs="+", choices=range(N_FOLDS), metavar="FOLD")
    trees_common.add_settings(parser)


def tree_trainer(options: argparse.Namespace, **parameters: Any) -> Train:
    parameters = trees_common.OCR_SETTINGS | {"n_jobs": options.jobs} | parameters
    if options.quick:
        parameters["n_rounds"] = QUICK_ROUNDS
        if "base" in parameters:
            parameters["base"] = LinearCRF(max_iter=QUICK_ITERATIONS, tol=0)
    return partial(trees_common.fit_trees, **(parameters | dict(options.settings)))


def logitboost_trainer(options: argparse.Namespace, held: int) -> Train:
    """Train with the depth that is best in cross-validation."""
    fit = tree_trainer(options, **TREES["logitboost"])
    X, y, _, _ = split_words(held)
    search = GridSearchCV(TreeCRF(**fit.keywords), {"max_depth": DEPTHS}, cv=N_PARTS, refit=False)
    search.fit(X, y)
    for depth, score in zip(DEPTHS, search.cv_results_["mean_test_score"], strict=True):
        common.log(f"logitboost, max_depth {depth}: {1 - score:.4f} by cross-validation")
    return partial(fit, **search.best_params_)


def linear_trainer(options: argparse.Namespace, held: int) -> Train:
    """Train with the penalty that is best on held-out words."""
    parameters = {"n_jobs": options.jobs}
    if options.quick:
        parameters |= {"max_iter": QUICK_ITERATIONS, "tol": 0}
    X, y, _, _ = split_words(held)
    aside = slice(None, None, 10)
    X_dev, y_dev = X[aside], y[aside]
    del X[aside], y[aside]
    errors = {}
    for penalty in PENALTIES:
        crf, _ = train(X, y, reg_lambda=penalty, **parameters)
        errors[penalty] = 1 - crf.score(X_dev, y_dev)
        common.log(f"linear, reg_lambda {penalty:g}: {errors[penalty]:.4f} on words set aside")
    return partial(train, reg_lambda=min(PENALTIES, key=errors.__getitem__), **parameters)


def chosen_folds(options: argparse.Namespace) -> Sequence[int]:
    return options.folds or (QUICK_FOLDS if options.quick else range(N_FOLDS))


def measure_folds(
    name: str, fit: Train, folds: Sequence[int], *, train_on_one: bool = False
) -> list[common.Record]:
    """A record for each fold: trained on the nine others and tested on it, or the reverse."""
    records = []
    for held in folds:
        X, y, X_test, y_test = split_words(held)
        if train_on_one:
            X, y, X_test, y_test = X_test, y_test, X, y
        crf, record = fit(X, y)
        error = 1 - float(crf.score(X_test, y_test))
        common.log(f"{name}, fold {held}: error {error:.4f}, {record['train_seconds']:.1f} s")
        records.append({"fold": held, "error": error, **record})
    return records


def measure(part: str, options: argparse.Namespace) -> common.Record:
    folds = chosen_folds(options)
    if part == "linear":
        fit = linear_trainer(options, folds[0])
        return {"fits": measure_folds(part, fit, folds), "reg_lambda": fit.keywords["reg_lambda"]}
    if part == "logitboost":
        fit = logitboost_trainer(options, folds[0])
        return {"fits": measure_folds(part, fit, folds), "max_depth": fit.keywords["max_depth"]}
    fit = tree_trainer(options, **TREES[part])
    return {"fits": measure_folds(part, fit, folds)}


def summarise_folds(record: common.Record) -> common.Record:
    """Mean and standard error over the folds, and every fold."""
    errors = [fit["error"] for fit in record["fits"]]
    several = len(errors) > 1
    mean, error = common.mean_and_error(errors) if several else (errors[0], None)
    return {
        "error": mean,
        "standard_error": error,
        "train_seconds_per_fold": statistics.median(f["train_seconds"] for f in record["fits"]),
        **{name: value for name, value in record.items() if name != "peak_memory_mib"},
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    return {
        "setting": "trained on nine folds, tested on the tenth; means of errors and medians of "
        "seconds over folds",
        "methods": [
            {
                "method": part,
                "published_error": PUBLISHED.get(part, (None, None))[0],
                "published_standard_error": PUBLISHED.get(part, (None, None))[1],
                **summarise_folds(records[0]),
            }
            for part, records in runs.items()
        ],
    }
