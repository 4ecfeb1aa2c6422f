"""What the benchmarks of trees share: one timed fit of each library, and settings by name."""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import common

if TYPE_CHECKING:
    import numpy as np
    import xgboost
    from numpy.typing import NDArray

    from hedgerow import TreeCRF

# On the letters rounds that learn from half of the words do better, and are done sooner.
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
    X: Any, y: Any, eval_set: tuple[Any, Any] | None = None, **parameters: Any
) -> tuple[TreeCRF, common.Record]:
    """Fit, timed from the user's lists to the trained model.

    ``seconds_per_round`` is the median from the end of a round to that of the next, so it leaves
    out reading and binning; these are in ``train_seconds``.
    """
    from hedgerow import TreeCRF

    ends: list[float] = []
    crf = TreeCRF(callbacks=[lambda done: ends.append(time.perf_counter())], **parameters)
    before = common.peak_memory_mib()
    with common.Stopwatch() as watch:
        crf.fit(X, y, eval_set=eval_set)
    after = common.peak_memory_mib()
    record = {
        "train_seconds": watch.seconds,
        "train_cpu_seconds": watch.cpu_seconds,
        "seconds_per_round": median_step(ends),
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
    rows: NDArray[Any],
    codes: NDArray[Any],
    eval_set: tuple[NDArray[Any], NDArray[Any]] | None = None,
    *,
    rounds: int,
    max_depth: int = 6,
    eta: float = 0.3,
    patience: int | None = None,
    jobs: int | None = None,
) -> tuple[xgboost.Booster, common.Record]:
    """Softmax boosting on rows, timed from the rows to the trained model.

    ``rows`` (N, F) and ``codes`` (N,) of labels, all of which occur; with ``patience`` training
    ends when the `eval_set` has not done better for so many rounds.
    """
    import xgboost

    parameters = {
        "objective": "multi:softprob",
        "num_class": int(codes.max()) + 1,
        "tree_method": "hist",
        "max_depth": max_depth,
        "eta": eta,
        "nthread": count_threads(jobs),
    }
    before = common.peak_memory_mib()
    with common.Stopwatch() as watch:
        data = xgboost.QuantileDMatrix(rows, codes, nthread=count_threads(jobs))
        evals = []
        if eval_set is not None:
            held = xgboost.QuantileDMatrix(*eval_set, ref=data, nthread=count_threads(jobs))
            evals = [(held, "eval")]
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
        "rounds_done": booster.num_boosted_rounds(),
        "rounds_kept": count_kept(booster),
        "peak_mib_after_training": after,
        "training_mib": after - before,
    }
    return booster, record


def count_kept(booster: xgboost.Booster) -> int:
    """Rounds up to the best one, where training stopped early, else all."""
    if booster.attr("best_iteration") is None:
        return int(booster.num_boosted_rounds())
    return int(booster.best_iteration) + 1


def predict_xgboost(booster: xgboost.Booster, rows: NDArray[Any]) -> NDArray[np.int64]:
    """Codes (N,) of the likeliest labels; straight from the rows, its fastest way."""
    kept = (0, count_kept(booster))
    codes: NDArray[np.int64] = booster.inplace_predict(rows, iteration_range=kept).argmax(axis=1)
    return codes


def count_threads(jobs: int | None) -> int:
    return jobs or os.cpu_count() or 1
