"""Training and prediction on a GPU and on the CPU, and with XGBoost on the GPU if installed.

    gpu.py [--data DIR] [--cases NAME,...] [--sides cuda,cpu,xgboost] [--threads 2,16] [--repeat N]

Prints a line of JSON for the machine, and one for each case and side. Every side has its own
process and runs `--repeat` times in it: the first run compiles kernels, or loads those that CuPy
has cached, and is reported separately (``first_seconds``). ``train_seconds`` is from arrays to the
fitted model, ``loop_seconds`` from the end of the first round to that of the last, and
``round_seconds`` the median of a round; all are those of the best run. ``limit`` is the target for
a case on one H200. The CPU is left out of the largest cases unless it is named: ``--sides cpu``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import common
import numpy as np
from numpy.typing import NDArray

SIDES = ("cuda", "cpu", "xgboost")
LARGEST_ON_CPU = 10_000_000
PREDICT_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of sequences, one after the other."""

    X: NDArray[Any]
    codes: NDArray[Any]
    lengths: NDArray[np.int64]

    @property
    def groups(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


@dataclass(frozen=True)
class Case:
    """Data, number of rounds, and the target for one of the figures."""

    read: Callable[[argparse.Namespace], tuple[Rows, Rows | None]]
    limit: dict[str, float]
    rounds: int = 12
    window: int = 0
    n_positions: int = 0
    needs_data: bool = False


def from_lists(X: list[Any], y: list[Any]) -> Rows:
    codes = np.unique(np.concatenate(y), return_inverse=True)[1]
    return Rows(np.concatenate(X), codes, np.array([len(x) for x in X]))


def letters(options: argparse.Namespace) -> tuple[Rows, Rows]:
    from ocr_linear import split_words

    X, y, X_test, y_test = split_words()
    return from_lists(X, y), from_lists(X_test, y_test)


def jpred(options: argparse.Namespace) -> tuple[Rows, Rows]:
    from tree_shapes import jpred as read

    shape = read(options)
    return from_lists(shape.X, shape.y), from_lists(shape.X_test, shape.y_test)


def numbers(n: int, n_labels: int, length: int) -> Callable[[Any], tuple[Rows, None]]:
    """Twenty columns of integers, a few of which depend on the label."""

    def read(options: argparse.Namespace) -> tuple[Rows, None]:
        rng = np.random.default_rng(0)
        X = rng.integers(0, 255, size=(n, 20), dtype=np.uint8)
        few = X[:, :4].astype(np.float32) / 127.5 - 1.0
        score = few[:, 0] + np.roll(few[:, 1], 1) + 0.5 * few[:, 2] * few[:, 3]
        bounds = np.quantile(score[:100_000], np.arange(1, n_labels) / n_labels)
        return Rows(X, np.searchsorted(bounds, score), np.full(n // length, length)), None

    return read


CASES = {
    "letters": Case(letters, {"train_seconds": 0.3, "loop_seconds": 0.15}, rounds=200),
    "jpred": Case(jpred, {"train_seconds": 2.0}, rounds=150, window=7, needs_data=True),
    "10000000x20-k3": Case(
        numbers(10_000_000, 3, 100), {"round_seconds": 0.006}, n_positions=10_000_000
    ),
    "100000000x20-k3": Case(
        numbers(100_000_000, 3, 100), {"round_seconds": 0.06}, n_positions=100_000_000
    ),
    "10-sequences-of-1000000-k5": Case(
        numbers(10_000_000, 5, 1_000_000), {"round_seconds": 0.009}, n_positions=10_000_000
    ),
    "predict-10000000x20-k3": Case(
        numbers(10_000_000, 3, 100), {"predict_seconds": 1.0}, n_positions=10_000_000
    ),
}


def measure(name: str, side: str, n_threads: int | None, options: argparse.Namespace) -> Any:
    case = CASES[name]
    rows, test = case.read(options)
    if side == "xgboost":
        return measure_xgboost(case, rows, test)
    if name.startswith("predict"):
        return measure_prediction(rows, side, n_threads, options)
    runs = [fit(case, rows, side, n_threads) for _ in range(options.repeat)]
    best = min(runs, key=lambda run: run[1]["train_seconds"])
    record = {**best[1], "first_seconds": runs[0][1]["train_seconds"]}
    if test is not None:
        right = np.concatenate([best[0].predict(test.X, groups=test.groups)]) == test.codes
        record["test_error"] = 1.0 - float(np.mean(right))
    return record


def fit(case: Case, rows: Rows, side: str, n_threads: int | None) -> tuple[Any, common.Record]:
    """One training run, timed from the arrays to the model."""
    from hedgerow import TreeCRF

    ends: list[float] = []
    crf = TreeCRF(
        n_rounds=case.rounds,
        max_depth=6,
        window=case.window,
        decode="viterbi" if case.rounds > 100 else "marginal",
        random_state=0,
        device="cuda" if side == "cuda" else "cpu",
        n_jobs=n_threads,
        callbacks=[lambda *_: ends.append(time.perf_counter()) and None],
    )
    groups = rows.groups
    begin = time.perf_counter()
    crf.fit(rows.X, rows.codes, groups=groups)
    seconds = time.perf_counter() - begin
    return crf, {
        "train_seconds": seconds,
        "loop_seconds": ends[-1] - ends[0],
        "round_seconds": float(np.median(np.diff(ends))),
        "loss": crf.loss_,
    }


def measure_prediction(
    rows: Rows, side: str, n_threads: int | None, options: argparse.Namespace
) -> common.Record:
    """Viterbi decoding, with a model that was trained on a hundredth of the data."""
    n = len(rows.X) // 100
    few = Rows(rows.X[:n], rows.codes[:n], rows.lengths[: len(rows.lengths) // 100])
    crf, _ = fit(Case(letters, {}, rounds=PREDICT_ROUNDS), few, side, n_threads)
    groups, seconds = rows.groups, []
    for _ in range(options.repeat):
        begin = time.perf_counter()
        labels = crf.predict(rows.X, groups=groups)
        seconds.append(time.perf_counter() - begin)
    right = float(np.mean(labels == rows.codes))
    return {"predict_seconds": min(seconds), "first_seconds": seconds[0], "error": 1.0 - right}


def measure_xgboost(case: Case, rows: Rows, test: Rows | None) -> common.Record:
    """XGBoost on single rows, on the GPU, with the same number of trees."""
    import xgboost

    if not xgboost.build_info().get("USE_CUDA"):
        return {"skipped": "this XGBoost was built without CUDA"}
    parameters = {
        "objective": "multi:softprob",
        "num_class": int(rows.codes.max()) + 1,
        "tree_method": "hist",
        "device": "cuda",
        "max_depth": 6,
        "eta": 0.3,
        "max_bin": 255,
    }
    begin = time.perf_counter()
    data = xgboost.QuantileDMatrix(rows.X, rows.codes, max_bin=255)
    binned = time.perf_counter()
    booster = xgboost.train(parameters, data, case.rounds)
    end = time.perf_counter()
    record = {"train_seconds": end - begin, "round_seconds": (end - binned) / case.rounds}
    if test is not None:
        predicted = booster.inplace_predict(test.X).argmax(axis=1)
        record["test_error"] = float(np.mean(predicted != test.codes))
    return record


def run_side(name: str, side: str, n_threads: int | None, options: argparse.Namespace) -> None:
    """Measure in a separate process, and print the record."""
    command = [sys.executable, __file__, "--cases", name, "--sides", side, "--one"]
    command += ["--repeat", str(options.repeat)]
    command += ["--data", str(options.data)] if options.data else []
    command += ["--threads", str(n_threads)] if n_threads else []
    common.log(f"{name}: {side}{f' on {n_threads} threads' if n_threads else ''}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    known = {"case": name, "side": side, "threads": n_threads, "limit": CASES[name].limit}
    if done.returncode:
        print(json.dumps({**known, "failed": done.stderr.strip().splitlines()[-1:]}), flush=True)
    else:
        print(json.dumps({**known, **json.loads(done.stdout)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the data sets, for jpred")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--sides", default="")
    parser.add_argument("--threads", default=f"2,{os.cpu_count()}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    threads = [int(n) for n in options.threads.split(",")]
    if options.one:
        n_threads = threads[0] if options.sides == "cpu" else None
        print(json.dumps(measure(options.cases, options.sides, n_threads, options)))
        return
    print(json.dumps(common.machine_facts() | {"gpu": gpu_facts()}), flush=True)
    for name in options.cases.split(","):
        case = CASES[name]
        if case.needs_data and options.data is None:
            common.log(f"{name} needs --data")
            continue
        for side in (options.sides or ",".join(SIDES)).split(","):
            if side == "cpu" and not options.sides and case.n_positions > LARGEST_ON_CPU:
                continue
            for n_threads in threads if side == "cpu" else [None]:
                run_side(name, side, n_threads, options)


def gpu_facts() -> dict[str, Any] | None:
    """Name and memory of the GPU; None if there is none."""
    try:
        import cupy

        facts = cupy.cuda.runtime.getDeviceProperties(0)
    except Exception:
        return None
    return {
        "name": facts["name"].decode(),
        "gib": facts["totalGlobalMem"] / 2**30,
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "cupy": cupy.__version__,
    }


if __name__ == "__main__":
    main()
