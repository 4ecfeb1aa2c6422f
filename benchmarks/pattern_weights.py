"""Weights of label patterns: how strongly to hold them back, and how to move them.

    pattern_weights.py [--data DIR] [--tasks NAME ...] [--settings NAME ...] [--orders 1 2 3 5]
                       [--seeds N] [--processes N] [--linear]

Trains on each task with each setting and prints one JSON document: accuracy on the test data by
marginals and by Viterbi, mean log-likelihood of the test labels by their own marginals, calibration
error (15 bins), training loss and seconds; means over the seeds, and the standard errors of both
accuracies. Trees: 60 rounds of depth 6 at a rate of 0.3, half of the sequences in each round. The
letters come with hedgerow; all other tasks are read from DIR.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import common
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tasks import TASKS, Task, known_only, spread_windows

from hedgerow import LinearCRF, TreeCRF

ROUNDS = {"n_rounds": 60, "learning_rate": 0.3, "max_depth": 6, "subsample": 0.5}
SETTINGS: dict[type, dict[str, dict[str, Any]]] = {
    TreeCRF: {
        "default": {},
        "bound": {"transition_step": "bound"},
        "exact": {"transition_step": "exact"},
        "bound, no penalty": {"transition_step": "bound", "pattern_lambda": None},
        "exact, no penalty": {"transition_step": "exact", "pattern_lambda": None},
    },
    LinearCRF: {"default": {}, "auto": {"pattern_lambda": "auto"}},
}
N_BINS = 15


# What is trained: the estimator, the folder of the data, task, order, setting and seed.
Job = tuple[type, Path | None, str, int, str, int]

read_task = functools.lru_cache(maxsize=1)(lambda name, folder: TASKS[name](folder))


def measure(job: Job) -> tuple[Job, common.Record]:
    kind, folder, name, order, setting, seed = job
    task: Task = read_task(name, folder)
    more = SETTINGS[kind][setting]
    X, y, X_test, y_test, window = task
    X_test, y_test = known_only(y, X_test, y_test)
    if kind is TreeCRF:
        crf = TreeCRF(order=order, window=window, n_jobs=1, random_state=seed, **ROUNDS, **more)
    else:
        X, X_test = spread_windows(X, window), spread_windows(X_test, window)
        crf = LinearCRF(order=order, n_jobs=1, max_iter=200, tol=1e-4, **more)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        crf.fit(X, y)
    seconds = time.perf_counter() - begin
    truth = np.concatenate(y_test)
    marginals = crf.predict_proba(X_test)
    found = crf.classes_[marginals.argmax(axis=1)]
    own = marginals[np.arange(len(truth)), np.searchsorted(crf.classes_, truth)]
    best = np.concatenate(crf.predict(X_test, decode="viterbi"))
    return job, {
        "marginals": 100 * float(np.mean(found == truth)),
        "viterbi": 100 * float(np.mean(best == truth)),
        "log_likelihood": float(np.log(own.clip(1e-300)).mean()),
        "calibration_error": calibration_error(marginals.max(axis=1), found == truth),
        "training_loss": crf.loss_,
        "seconds": seconds,
    }


def summarise(records: list[common.Record]) -> common.Record:
    """Means over the seeds, and standard errors of the accuracies."""
    row = {name: round(float(np.mean([r[name] for r in records])), 4) for name in records[0]}
    for name in ("marginals", "viterbi"):
        spread = np.std([r[name] for r in records], ddof=1) if len(records) > 1 else np.nan
        row[f"{name}_error"] = round(float(spread / len(records) ** 0.5), 3)
    return row | {"n_seeds": len(records)}


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(bins, confidence, N_BINS) - np.bincount(bins, right, N_BINS)
    return float(np.abs(gaps).sum() / len(right))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--tasks", nargs="+", choices=TASKS, default=list(TASKS)[:9], metavar="NAME"
    )
    parser.add_argument("--settings", nargs="+", metavar="NAME", help="all unless given")
    parser.add_argument("--orders", nargs="+", type=int, default=[1, 2, 3, 5])
    parser.add_argument("--linear", action="store_true", help="LinearCRF in place of TreeCRF")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds (default: 1)")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    kind = LinearCRF if options.linear else TreeCRF
    if options.data is None and not all(name.startswith("letters") for name in options.tasks):
        parser.error("all tasks but the letters need --data")
    jobs: list[Job] = [
        (kind, options.data, name, order, setting, seed)
        for seed in range(options.seeds)
        for name in options.tasks
        for order in options.orders
        for setting in options.settings or SETTINGS[kind]
    ]
    records: dict[tuple[str, int, str], list[common.Record]] = defaultdict(list)
    with ProcessPoolExecutor(options.processes) as pool:
        for job, record in pool.map(measure, jobs):
            records[job[2:5]].append(record)
            common.log(str((*job[2:], record)))
    rows = [
        {"task": name, "order": order, "setting": setting, **summarise(found)}
        for (name, order, setting), found in records.items()
    ]
    common.print_json({"machine": common.machine_facts(), "rows": rows})


if __name__ == "__main__":
    main()
