"""Shared by the benchmarks of trees: one timed fit of each library, and settings by name.

A record of a fit has ``train_seconds`` from the rows to the trained model, and times of its parts:
``bin_seconds`` of the peers, whose binning is a separate call, and ``seconds_before_rounds`` of
hedgerow, an estimate of reading and binning.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import common

if TYPE_CHECKING:
    import lightgbm
    import numpy as np
    import xgboost
    from numpy.typing import NDArray

    from hedgerow import TreeCRF

# On the letters, using half of the words in each round is better and faster.
OCR_SETTINGS = {"max_depth": 6, "subsample": 0.5, "random_state": 0}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The option ``--set``, for parameters of TreeCRF that have no option of their own."""
    parser.add_argument(
        "--set",
        dest="settings",
        type=read_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another parameter of TreeCRF, such as trim=0; may be given more than once",
    )


def read_setting(text: str) -> tuple[str, Any]:
    """``trim=0.1`` and ``curvature=length`` as a name and a number, or text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} has no '='; expected NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def fit_trees(
    X: Any,
    y: Any,
    eval_set: Any = None,
    more: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> tuple[TreeCRF, common.Record]:
    """Fit, timed from the user's lists to the trained model; ``more`` are arguments of `fit`.

    ``seconds_per_round`` is the median from the end of a round to that of the next, so it leaves
    out reading and binning; these are in ``train_seconds``. ``seconds_before_rounds`` is the time
    to the end of the first round minus the time of the second.
    """
    from hedgerow import TreeCRF

    ends: list[float] = []
    crf = TreeCRF(callbacks=[lambda done: ends.append(time.perf_counter())], **parameters)
    before = common.peak_memory_mib()
    begin = time.perf_counter()
    with common.Stopwatch() as watch:
        crf.fit(X, y, eval_set=eval_set, **(more or {}))
    after = common.peak_memory_mib()
    record = {
        "train_seconds": watch.seconds,
        "train_cpu_seconds": watch.cpu_seconds,
        "seconds_per_round": median_step(ends),
        "seconds_before_rounds": 2 * ends[0] - ends[1] - begin if len(ends) > 1 else None,
        "rounds_done": len(ends),
        "rounds_kept": crf.n_rounds_,
        "loss": float(crf.loss_),
        "peak_mib_after_training": after,
        "training_mib": after - before,
    }
    return crf, record


def median_step(ends: list[float]) -> float | None:
    return statistics.median(b - a for a, b in pairwise(ends)) if len(ends) > 1 else None


def fit_xgboost(
    rows: Any,
    codes: NDArray[Any],
    eval_set: tuple[Any, NDArray[Any]] | None = None,
    *,
    rounds: int,
    max_depth: int = 6,
    eta: float = 0.3,
    patience: int | None = None,
    jobs: int | None = None,
    **others: Any,
) -> tuple[xgboost.Booster, common.Record]:
    """Softmax boosting on rows, logistic for two labels, timed from the rows to the trained model.

    ``rows`` (N, F), an array or a sparse matrix, and ``codes`` (N,) of labels, all of which occur;
    with ``patience``, early stopping after this many rounds without an improvement on the
    `eval_set`.
    """
    import xgboost

    n_labels = int(codes.max()) + 1
    goal = {"objective": "binary:logistic"}
    if n_labels > 2:
        goal = {"objective": "multi:softprob", "num_class": n_labels}
    parameters = {
        **goal,
        "tree_method": "hist",
        "max_depth": max_depth,
        "eta": eta,
        "nthread": count_threads(jobs),
        **others,
    }
    # Bins are made together with the data, so their number is passed here.
    binning = {"nthread": count_threads(jobs), "max_bin": others.get("max_bin", 256)}
    before = common.peak_memory_mib()
    with common.Stopwatch() as watch:
        with common.Stopwatch() as bin_watch:
            data = xgboost.QuantileDMatrix(rows, codes, **binning)
        evals = []
        if eval_set is not None:
            evals = [(xgboost.QuantileDMatrix(*eval_set, ref=data, **binning), "eval")]
        booster = xgboost.train(
            parameters,
            data,
            rounds,
            evals=evals,
            early_stopping_rounds=patience,
            verbose_eval=False,
        )
    after = common.peak_memory_mib()
    record = {
        "train_seconds": watch.seconds,
        "train_cpu_seconds": watch.cpu_seconds,
        "bin_seconds": bin_watch.seconds,
        "rounds_done": booster.num_boosted_rounds(),
        "rounds_kept": count_kept(booster),
        "peak_mib_after_training": after,
        "training_mib": after - before,
    }
    return booster, record


def fit_lightgbm(
    rows: Any, codes: NDArray[Any], *, rounds: int, jobs: int | None = None, **others: Any
) -> tuple[lightgbm.Booster, common.Record]:
    """The same with LightGBM, whose parameters are `others`."""
    import lightgbm

    n_labels = int(codes.max()) + 1
    goal = {"objective": "binary"}
    if n_labels > 2:
        goal = {"objective": "multiclass", "num_class": n_labels}
    parameters = {**goal, "num_threads": count_threads(jobs), "verbose": -1, **others}
    before = common.peak_memory_mib()
    with common.Stopwatch() as watch:
        with common.Stopwatch() as bin_watch:
            data = lightgbm.Dataset(rows, codes, params=parameters).construct()
        booster = lightgbm.train(parameters, data, rounds)
    after = common.peak_memory_mib()
    record = {
        "train_seconds": watch.seconds,
        "train_cpu_seconds": watch.cpu_seconds,
        "bin_seconds": bin_watch.seconds,
        "rounds_done": booster.current_iteration(),
        "peak_mib_after_training": after,
        "training_mib": after - before,
    }
    return booster, record


def count_kept(booster: xgboost.Booster) -> int:
    """Number of rounds up to the best one after early stopping, otherwise of all."""
    if booster.attr("best_iteration") is None:
        return int(booster.num_boosted_rounds())
    return int(booster.best_iteration) + 1


def predict_xgboost(booster: xgboost.Booster, rows: Any) -> NDArray[np.int64]:
    """Codes (N,) of the most probable labels, directly from the rows, which is fastest."""
    kept = (0, count_kept(booster))
    return likeliest(booster.inplace_predict(rows, iteration_range=kept))


def predict_lightgbm(booster: lightgbm.Booster, rows: Any) -> NDArray[np.int64]:
    """Codes (N,) of the most probable labels."""
    return likeliest(booster.predict(rows))


def likeliest(probs: NDArray[Any]) -> NDArray[np.int64]:
    """Codes (N,) from probabilities (N, K), or (N,) of the second of two labels."""
    codes: NDArray[np.int64] = probs.argmax(axis=1) if probs.ndim > 1 else (probs > 0.5) * 1
    return codes


def count_threads(jobs: int | None) -> int:
    return jobs or os.cpu_count() or 1
