"""Cost of the objectives: seconds per round and per gradient, relative to the likelihood.

Trees and linear models on OCR letters (26 labels), linear models on bases labelled by gene (3
labels). The paper estimates three times the time and twice the memory for accuracy. A gradient is
one evaluation of the loss; an iteration may take more than one. The parts run in turn, all of them
several times, and medians are given.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import trees_common
from labelwise_training import OBJECTIVES, one_hot
from peers.ocr_linear import split_words

ALL = (*OBJECTIVES, "f1", "softmax_margin")
TASKS = {
    "trees_ocr": ALL,
    "linear_ocr": (*ALL, "max_margin"),
    "linear_genes": (*ALL, "max_margin"),
}
PARTS = tuple(
    f"{task}-{objective}" for task, objectives in TASKS.items() for objective in objectives
)
N_TRIMERS = 64
PIECE = 10_000
FIGURES = ("seconds_per_round", "seconds_per_gradient", "seconds_per_iteration", "training_mib")
START_ITERATIONS = 5
QUICK_ROUNDS = 4
QUICK_POSITIONS = 50_000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder that holds dna_genes/")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--positions", type=int, default=10**6, help="bases")
    parser.add_argument("--repeat", type=int, default=3, help="runs; medians are given")
    trees_common.add_settings(parser)


def read_trimers(folder: Path, n_positions: int) -> tuple[list[Any], list[Any]]:
    """One-hot trimers and gene labels, in pieces."""
    from gbcrf_growth import read_bases

    n_positions -= n_positions % PIECE
    bases, labels = read_bases(folder, n_positions)
    rows = []
    for piece in bases:
        own = piece.ravel().astype("int32")
        before, after = own.copy(), own.copy()
        before[1:], after[:-1] = own[:-1], own[1:]
        rows.append(one_hot(16 * before + 4 * own + after, N_TRIMERS))
    return rows, labels


def time_gradients(seconds: list[float]) -> None:
    """Record the time of each evaluation of the loss of a linear CRF from now on."""
    from hedgerow.descent.loss import LinearLoss

    of = LinearLoss.of

    def timed_of(self: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        loss = of(self, *args, **kwargs)

        def timed(weights: Any) -> Any:
            begin = time.perf_counter()
            found = loss(weights)
            seconds.append(time.perf_counter() - begin)
            return found

        return timed

    LinearLoss.of = timed_of  # type: ignore[method-assign]


def measure_linear(X: Any, y: Any, objective: str, options: argparse.Namespace) -> common.Record:
    """A few iterations for the objective, after some for the likelihood: at 0 it has a kink."""
    from hedgerow import LinearCRF

    start = LinearCRF(max_iter=START_ITERATIONS, tol=0, n_jobs=options.jobs).fit(X, y)
    seconds: list[float] = []
    time_gradients(seconds)
    crf = LinearCRF(
        objective=objective,
        max_iter=QUICK_ROUNDS if options.quick else options.iterations,
        tol=0,
        n_jobs=options.jobs,
    )
    before = common.memory_before_training_mib("hedgerow.linear_crf")
    with common.Stopwatch() as watch:
        crf.fit(X, y, init=start)
    return {
        "seconds_per_gradient": statistics.median(seconds),
        "seconds_per_iteration": watch.seconds / max(crf.n_iter_, 1),
        "gradients": len(seconds),
        "iterations": crf.n_iter_,
        "training_mib": common.peak_memory_mib() - before,
    }


def measure_trees(X: Any, y: Any, objective: str, options: argparse.Namespace) -> common.Record:
    """Rounds for the objective, after the same number for the likelihood."""
    from hedgerow import TreeCRF

    rounds = QUICK_ROUNDS if options.quick else options.rounds
    ends: list[float] = []
    parameters: dict[str, Any] = {
        "objective": objective,
        "warm_rounds": rounds,
        "n_rounds": 2 * rounds,
        "n_jobs": options.jobs,
        **trees_common.OCR_SETTINGS,
        **dict(options.settings),
    }
    crf = TreeCRF(callbacks=[lambda done: ends.append(time.perf_counter())], **parameters)
    before = common.memory_before_training_mib("hedgerow.tree_crf")
    crf.fit(X, y)
    return {
        "seconds_per_round": trees_common.median_step(ends[rounds - 1 :]),
        "training_mib": common.peak_memory_mib() - before,
    }


def measure(part: str, options: argparse.Namespace) -> common.Record:
    task, objective = part.split("-")
    if task == "linear_genes":
        n_positions = QUICK_POSITIONS if options.quick else options.positions
        X, y = read_trimers(options.data, n_positions)
    else:
        X, y, _, _ = split_words()
    side = measure_trees if task == "trees_ocr" else measure_linear
    record = side(X, y, objective, options)
    common.log(f"{part}: {record}")
    return {"task": task, "objective": objective, **record}


def summarise_task(records: list[common.Record]) -> list[common.Record]:
    """Each objective's medians, and their ratios to those of the likelihood."""
    likelihood = next((r for r in records if r["objective"] == "likelihood"), None)
    rows = []
    for record in records:
        names = [name for name in FIGURES if name in record]
        ratios = {n: record[n] / likelihood[n] for n in names if likelihood and likelihood[n]}
        rows.append({**record, "over_likelihood": ratios})
    return rows


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    medians = [common.median_record(records) for records in runs.values()]
    return {
        "setting": "medians over runs; a round of TreeCRF on letters after as many for the "
        "likelihood, a gradient and an iteration of LinearCRF after "
        f"{START_ITERATIONS} for the likelihood; MiB of training",
        "published": "about three times the time and twice the memory of the likelihood's gradient",
        "tasks": {
            task: summarise_task([record for record in medians if record["task"] == task])
            for task in TASKS
        },
    }
