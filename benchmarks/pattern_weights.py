"""Weights of label patterns: how strongly to hold them back, and how to move them.

    pattern_weights.py [--data DIR] [--tasks NAME ...] [--settings NAME ...] [--orders 1 2 3 5]
                       [--linear] [--jobs N]

Trains on each task with each setting and prints one JSON document: accuracy on the test data by
marginals and by Viterbi, mean log-likelihood of the test labels by their own marginals, calibration
error (15 bins), training loss and seconds. Trees: 60 rounds at a rate of 0.3, half of the sequences
a round. The letters come with hedgerow; all other tasks are read from DIR.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import common
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tasks import TASKS, Task, known_only, spread_windows

from hedgerow import LinearCRF, TreeCRF

ROUNDS = {"n_rounds": 60, "learning_rate": 0.3, "subsample": 0.5, "random_state": 0}
SETTINGS: dict[type, dict[str, dict[str, Any]]] = {
    TreeCRF: {
        "bound, no penalty": {"pattern_lambda": None},
        "exact, no penalty": {"pattern_lambda": None, "transition_step": "exact"},
        "exact": {"transition_step": "exact"},
        "default": {},
    },
    LinearCRF: {"default": {}, "auto": {"pattern_lambda": "auto"}},
}
N_BINS = 15


def measure(kind: type, task: Task, order: int, jobs: int | None, **more: Any) -> common.Record:
    X, y, X_test, y_test, window = task
    X_test, y_test = known_only(y, X_test, y_test)
    if kind is TreeCRF:
        crf = TreeCRF(order=order, window=window, n_jobs=jobs, **ROUNDS, **more)
    else:
        X, X_test = spread_windows(X, window), spread_windows(X_test, window)
        crf = LinearCRF(order=order, n_jobs=jobs, max_iter=200, tol=1e-4, **more)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        crf.fit(X, y)
    seconds = time.perf_counter() - begin
    truth = np.concatenate(y_test)
    marginals = crf.predict_proba(X_test)
    found = crf.classes_[marginals.argmax(axis=1)]
    own = marginals[np.arange(len(truth)), np.searchsorted(crf.classes_, truth)]
    return {
        "marginals": round(100 * float(np.mean(found == truth)), 2),
        "viterbi": round(
            100 * float(np.mean(np.concatenate(crf.predict(X_test, decode="viterbi")) == truth)), 2
        ),
        "log_likelihood": round(float(np.log(own.clip(1e-300)).mean()), 4),
        "calibration_error": round(calibration_error(marginals.max(axis=1), found == truth), 4),
        "training_loss": round(crf.loss_, 4),
        "seconds": round(seconds, 2),
    }


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
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    kind = LinearCRF if options.linear else TreeCRF
    rows = []
    for name in options.tasks:
        if options.data is None and not name.startswith("letters"):
            parser.error(f"the task {name} needs --data")
        task = TASKS[name](options.data)
        for order in options.orders:
            for setting in options.settings or SETTINGS[kind]:
                more = SETTINGS[kind][setting]
                record = measure(kind, task, order, options.jobs, **more)
                rows.append({"task": name, "order": order, "setting": setting, **record})
                common.log(str(rows[-1]))
    common.print_json({"machine": common.machine_facts(), "rows": rows})


if __name__ == "__main__":
    main()
