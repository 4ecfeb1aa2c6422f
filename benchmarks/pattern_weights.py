"""Weights of label patterns: penalties, and kinds of steps.

    pattern_weights.py [--data DIR] [--tasks NAME ...] [--settings NAME ...] [--orders 1 2 3 5]
                       [--seeds N] [--first-seed N] [--processes N] [--linear]

Trains on each task with each setting and prints one JSON document: accuracy on the test data by
marginals and by Viterbi, mean log-likelihood of the test labels by their own marginals, calibration
error (15 bins), training loss and seconds; means over the seeds, and the standard errors of both
accuracies. If the default is among the settings, every other row has its gains over the default in
both accuracies, with 95 % intervals by the bootstrap over seeds and test sequences. Trees: 60
rounds of depth 6 at a rate of 0.3, half of the sequences in each round. Structures are tested on
all proteins that are not trained on: the blind set alone is too small to tell settings apart.
The letters come with hedgerow; all other tasks are read from DIR.
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
import tasks
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tasks import Task, known_only, spread_windows

from hedgerow import LinearCRF, TreeCRF

TASKS = tasks.TASKS | {
    f"structure, {n} states": functools.partial(tasks.structure, labels=f"y{n}", blind_only=False)
    for n in (3, 8)
}
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
DECODERS = ("marginals", "viterbi")
N_RESAMPLES = 4000


# A job: estimator, folder of the data, task, order, setting and seed.
Job = tuple[type, Path | None, str, int, str, int]
# Of each test sequence: its length, and how many of its labels each decoder predicts correctly.
Counts = dict[str, NDArray[np.int64]]

read_task = functools.lru_cache(maxsize=1)(lambda name, folder: TASKS[name](folder))


def measure(job: Job) -> tuple[Job, common.Record, Counts]:
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
    right = {"marginals": found == truth, "viterbi": best == truth}
    record = {name: 100 * float(np.mean(right[name])) for name in DECODERS} | {
        "log_likelihood": float(np.log(own.clip(1e-300)).mean()),
        "calibration_error": calibration_error(marginals.max(axis=1), right["marginals"]),
        "training_loss": crf.loss_,
        "seconds": seconds,
    }
    return job, record, count_by_sequence(right | {"lengths": np.ones(len(truth), bool)}, y_test)


def count_by_sequence(of_positions: dict[str, NDArray[np.bool_]], y: list[Any]) -> Counts:
    begins = np.cumsum([0, *map(len, y[:-1])])
    return {
        name: np.add.reduceat(values, begins, dtype=np.int64)
        for name, values in of_positions.items()
    }


def summarise(records: list[common.Record]) -> common.Record:
    """Means over the seeds, and standard errors of the accuracies."""
    row = {name: round(float(np.mean([r[name] for r in records])), 4) for name in records[0]}
    for name in DECODERS:
        spread = np.std([r[name] for r in records], ddof=1) if len(records) > 1 else np.nan
        row[f"{name}_error"] = round(float(spread / len(records) ** 0.5), 3)
    return row | {"n_seeds": len(records)}


def gains(counts: list[Counts], base: list[Counts]) -> common.Record:
    """How much more accurate than `base`, in points, with 95 % intervals; paired by seed.

    A resample draws test sequences and, of n seeds, n - 1: with n draws the variance of a mean over
    few seeds would be underestimated by a factor of (n - 1) / n. One seed gives an interval over
    test sequences alone.
    """
    lengths, n_seeds = base[0]["lengths"], len(base)
    rng = np.random.default_rng(0)
    row = {}
    for name in DECODERS:
        gain = np.array([a[name] - b[name] for a, b in zip(counts, base, strict=True)])
        resamples = []
        for _ in range(N_RESAMPLES):
            seeds = rng.integers(n_seeds, size=max(n_seeds - 1, 1))
            drawn = rng.integers(len(lengths), size=len(lengths))
            resamples.append(gain[seeds].mean(axis=0)[drawn].sum() / lengths[drawn].sum())
        mean = gain.sum() / n_seeds / lengths.sum()
        interval = np.percentile(resamples, [2.5, 97.5])
        row[f"{name}_gain"] = round(100 * float(mean), 3)
        row[f"{name}_gain_95"] = (100 * interval).round(3).tolist()
    return row


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
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    kind = LinearCRF if options.linear else TreeCRF
    if options.data is None and not all(name.startswith("letters") for name in options.tasks):
        parser.error("all tasks but the letters need --data")
    jobs: list[Job] = [
        (kind, options.data, name, order, setting, seed)
        for seed in range(options.first_seed, options.first_seed + options.seeds)
        for name in options.tasks
        for order in options.orders
        for setting in options.settings or SETTINGS[kind]
    ]
    records: dict[tuple[str, int, str], list[common.Record]] = defaultdict(list)
    counts: dict[tuple[str, int, str], list[Counts]] = defaultdict(list)
    with ProcessPoolExecutor(options.processes) as pool:
        for job, record, right in pool.map(measure, jobs):
            records[job[2:5]].append(record)
            counts[job[2:5]].append(right)
            common.log(str((*job[2:], record)))
    rows = []
    for (name, order, setting), found in records.items():
        row = {"task": name, "order": order, "setting": setting, **summarise(found)}
        base = counts.get((name, order, "default"))
        if base and setting != "default":
            row |= gains(counts[name, order, setting], base)
        rows.append(row)
    common.print_json({"machine": common.machine_facts(), "rows": rows})


if __name__ == "__main__":
    main()
