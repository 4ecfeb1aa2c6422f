"""Methods for missing values: time and accuracy.

    missing_values.py [--speed NAME ...] [--repeat N]
    missing_values.py --data DIR [--task stress|gestures] [--rates 5 10 20 40] [--draws N]

The first form trains on letters and on tables of numbers, without missing values and with every
fifth of them missing, on one thread. Each line of JSON has a data set, a method, the processor time
and seconds of training (the fastest of N runs), and their ratio to those of "learned" without
missing values. The second form trains and tests with a given percentage of the values missing, at
random in each draw, and prints the accuracy in %, averaged over the draws, and how much higher it
is than with "learned", with the standard error. Draws are measured in parallel processes, as many
as ``--jobs``. In words (stress) whole letters are missing, in recordings (gestures) single sensors;
the same values are missing in the windows of all positions.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from tasks import gestures, read_table

from hedgerow import TreeCRF
from hedgerow.datasets import load_ocr
from hedgerow.trees.missing import METHODS

# X, y, and parameters of the training.
Data = tuple[list[Any], list[Any], dict[str, Any]]
# Accuracy and seconds of training.
Draw = tuple[float, float]


def letters() -> Data:
    X, y, _ = load_ocr()
    return [x.astype(np.float32) for x in X[:3000]], y[:3000], {"n_rounds": 20, "max_depth": 6}


def table(n_labels: int) -> Data:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200_000, 20)).astype(np.float32)
    rows[:, 10:] += rows[:, :10]  # correlated columns, as surrogate splits need them
    is_high = rows[:, :5].sum(axis=1) + rng.normal(size=len(rows)) > 0
    codes = np.minimum(is_high.astype(int) + (rows[:, 3] > 1), n_labels - 1)
    bounds = np.arange(100, len(rows), 100)
    return np.split(rows, bounds), np.split(codes, bounds), {"n_rounds": 20, "max_depth": 6}


SPEED: dict[str, Callable[[], Data]] = {
    "letters": letters,
    "2 labels": lambda: table(2),
    "3 labels": lambda: table(3),
}


def erase(X: list[NDArray[Any]], share: float, seed: int) -> list[NDArray[Any]]:
    """Numbers of which this share is missing."""
    rng = np.random.default_rng(seed)
    return [np.where(rng.random(x.shape) < share, np.float32(np.nan), x) for x in X]


def measure_speed(names: list[str], repeat: int) -> None:
    for name in names:
        X, y, parameters = SPEED[name]()
        gaps = erase(X, 0.2, 0)
        kinds = {("learned", 0): X} | {(method, 20): gaps for method in METHODS}
        best = dict.fromkeys(kinds, (np.inf, np.inf))
        for _ in range(repeat):  # alternating, so that all have the same load
            for (method, percent), data in kinds.items():
                crf = TreeCRF(missing=method, n_jobs=1, random_state=0, **parameters)
                begin = time.process_time(), time.perf_counter()
                crf.fit(data, y)
                taken = time.process_time() - begin[0], time.perf_counter() - begin[1]
                best[method, percent] = min(best[method, percent], taken)
        usual = best["learned", 0]
        for (method, percent), (processor, seconds) in best.items():
            row = {
                "data": name,
                "method": method,
                "missing_percent": percent,
                "processor_seconds": round(processor, 3),
                "seconds": round(seconds, 3),
                "processor_ratio": round(processor / usual[0], 2),
            }
            print(json.dumps(row), flush=True)


def stress(folder: Path) -> tuple[Any, ...]:
    """A thousand words to train on, two thousand to test on; letters are categories."""
    rows = read_table(folder / "nettalk" / "nettalk.tsv.gz")
    rows = [row for row in rows if len(row[0]) == len(row[1]) == len(row[2])]
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:3000]]
    X = [np.array(list(row[0]), dtype=object)[:, None] for row in rows]
    y = [list(row[2]) for row in rows]
    return X[:1000], y[:1000], X[1000:], y[1000:], 6


def hide_letters(X: list[NDArray[Any]], share: float, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    hidden = [np.where(rng.random(x.shape) < share, None, x) for x in X]
    return [pd.DataFrame(x, columns=["letter"]) for x in hidden]


TASKS = {"stress": (stress, hide_letters), "gestures": (gestures, erase)}


def measure_draw(task: str, folder: Path, method: str, rate: int, draw: int, rounds: int) -> Draw:
    """Accuracy in %, and processor time of training, with one thread."""
    read, hide = TASKS[task]
    X, y, X_test, y_test, window = read(folder)
    crf = TreeCRF(missing=method, window=window, n_rounds=rounds, random_state=0, n_jobs=1)
    begin = time.process_time()
    crf.fit(hide(X, rate / 100, 2 * draw), y)
    seconds = time.process_time() - begin
    return 100 * crf.score(hide(X_test, rate / 100, 2 * draw + 1), y_test), seconds


def measure_accuracy(folder: Path, options: argparse.Namespace) -> None:
    n_draws, rounds = options.draws, options.rounds
    for rate in options.rates:
        usual: NDArray[Any] | None = None
        for method in METHODS:
            draws = Parallel(n_jobs=options.jobs)(
                delayed(measure_draw)(options.task, folder, method, rate, draw, rounds)
                for draw in range(n_draws)
            )
            scores, seconds = np.array(draws).T
            usual = scores if usual is None else usual
            row = {
                "task": options.task,
                "method": method,
                "missing_percent": rate,
                "labels_right": round(float(scores.mean()), 2),
                "above_learned": describe_change(scores - usual),
                "draws": n_draws,
                "processor_seconds": round(float(seconds.mean()), 2),
            }
            print(json.dumps(row), flush=True)


def describe_change(differences: NDArray[Any]) -> list[float]:
    """Mean and standard error of differences between two methods in the same draws."""
    error = differences.std(ddof=1) / len(differences) ** 0.5 if len(differences) > 1 else np.nan
    return [round(float(differences.mean()), 2), round(float(error), 2)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", nargs="*", default=list(SPEED), choices=list(SPEED))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--task", default="stress", choices=list(TASKS))
    parser.add_argument("--rates", nargs="*", type=int, default=[5, 10, 20, 40])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores unless given")
    options = parser.parse_args()
    if options.data is None:
        measure_speed(options.speed, options.repeat)
    else:
        measure_accuracy(options.data, options)


if __name__ == "__main__":
    main()
