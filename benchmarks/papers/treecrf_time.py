"""Table 6 and Figures 1 to 3: the processor time of a round by part, and how it grows.

The trellis: forward-backward and what follows from its probabilities, and, as in the paper, the
walk of every position down the trees of the round; the trees: growing them. Table 6 and Figures 1
and 2 are about the three tasks, Figure 3 about sequences of a hidden Markov model with 3 labels and
24 symbols: 100 sequences of 10 to 320 positions with a window of 3, and 100 of 100 positions with
windows of 3 to 11. Shrunk leaves, up to 100 in a tree, lambda 40. Growth exponents are slopes of
lines through the logarithms. One thread unless ``--jobs`` is given.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import common
import numpy as np
from gbcrf_growth import growth
from treecrf_tasks import LETTERS, TASKS, Task, Texts, read_task
from treecrf_training import FIRST_ORDER, MAX_LEAVES, PAIR_TREES, QUICK_ROUNDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LENGTHS = (10, 20, 40, 80, 160, 320)
WINDOWS = (3, 5, 7, 9, 11)
PARTS = (*TASKS, *(f"length={n}" for n in LENGTHS), *(f"window={n}" for n in WINDOWS))

N_LABELS, N_SYMBOLS = 3, 24
N_SEQUENCES, LENGTH, WINDOW = 100, 100, 3
OWN_SYMBOL = 0.6  # probability that a label emits one of its own eight symbols
STAY = 0.6

# Methods of tree training, by part of a round.
STEPS = {"measure": "inference", "derive": "inference", "propose": "walk", "grow": "trees"}
KINDS = ("inference", "walk", "trees")
LINEAR_PENALTY = 0.1
# Seconds per iteration of the paper on a Xeon of 2.4 GHz.
PUBLISHED = {
    "protein": {"trellis": 1.493, "trees": 1.433},
    "stress": {"trellis": 0.622, "trees": 2.049},
    "hyphenation": {"trellis": 0.324, "trees": 0.332},
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, required=True, help="holds nettalk/, protein_qs/, treecrf_sparse/"
    )
    parser.add_argument("--rounds", type=int, default=100, help="of the three tasks")
    parser.add_argument("--synthetic-rounds", type=int, default=20)
    parser.add_argument("--reg-lambda", type=float, default=40)
    parser.add_argument("--repeat", type=int, default=1, help="runs; medians are given")


def draw_sequences(n_sequences: int, length: int, window: int) -> Task:
    """Training sequences of the hidden Markov model."""
    rng = np.random.default_rng([length, window])
    labels = np.empty((n_sequences, length), np.int64)
    labels[:, 0] = rng.integers(N_LABELS, size=n_sequences)
    for t in range(1, length):
        moves = (rng.random(n_sequences) >= STAY) * rng.integers(1, N_LABELS, n_sequences)
        labels[:, t] = (labels[:, t - 1] + moves) % N_LABELS
    n_own = N_SYMBOLS // N_LABELS
    first = labels * n_own
    own = first + rng.integers(n_own, size=labels.shape)
    other = first + rng.integers(n_own, N_SYMBOLS, size=labels.shape)
    symbols = np.where(rng.random(labels.shape) < OWN_SYMBOL, own, other) % N_SYMBOLS
    texts, reach = Texts(list(symbols), list(labels)), window // 2
    folds = np.zeros(n_sequences, np.int64)
    return Task(texts, texts, LETTERS[:N_SYMBOLS], range(-reach, reach + 1), folds)


@contextmanager
def timed_steps() -> Iterator[dict[str, float]]:
    """Processor time of the steps of rounds within a ``with`` block, by kind."""
    from hedgerow.boosting.context_training import ContextTraining
    from hedgerow.boosting.tree_training import NodeTraining

    seconds = dict.fromkeys(KINDS, 0.0)

    def timed(step: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            begin = time.process_time()
            found = step(*arguments)
            seconds[kind] += time.process_time() - begin
            return found

        return run

    with ExitStack() as stack:
        for training in (ContextTraining, NodeTraining):
            for name, kind in STEPS.items():
                step = timed(getattr(training, name), kind)
                stack.enter_context(patch.object(training, name, step))
        yield seconds


def time_rounds(X: list[Any], y: list[Any], **parameters: Any) -> common.Record:
    """Seconds per round by kind, and those since the beginning after each round."""
    from hedgerow import TreeCRF

    ends: list[float] = []
    crf = TreeCRF(callbacks=[lambda step: ends.append(time.process_time())], **parameters)
    begin = time.process_time()
    with timed_steps() as seconds:
        crf.fit(X, y)
    per_round = {kind: value / crf.n_rounds_ for kind, value in seconds.items()}
    return {
        "rounds": crf.n_rounds_,
        "inference_seconds": per_round["inference"],
        "walk_seconds": per_round["walk"],
        "trellis_seconds": per_round["inference"] + per_round["walk"],
        "trees_seconds": per_round["trees"],
        "seconds_by_round": [end - begin for end in ends],
    }


def measure(part: str, options: argparse.Namespace) -> common.Record:
    jobs = options.jobs or 1
    parameters = FIRST_ORDER | PAIR_TREES
    parameters |= {"max_leaves": MAX_LEAVES, "reg_lambda": options.reg_lambda, "n_jobs": jobs}
    if part in TASKS:
        rounds = QUICK_ROUNDS if options.quick else options.rounds
        task = read_task(part, options.data, quick=options.quick)
        return measure_task(task, jobs, parameters | {"n_rounds": rounds})
    axis, number = part.split("=")
    size = int(number)
    shape = (size, WINDOW) if axis == "length" else (LENGTH, size)
    task = draw_sequences(10 if options.quick else N_SEQUENCES, *shape)
    rounds = QUICK_ROUNDS if options.quick else options.synthetic_rounds
    X = task.indicators(task.train)
    record = time_rounds(X, task.train.labels, n_rounds=rounds, **parameters)
    return {"axis": axis, "size": size, **describe(task, X), **record}


def describe(task: Task, X: list[Any]) -> common.Record:
    n_positions = sum(map(len, X))
    return {"mean_length": n_positions / len(X), "n_features": X[0].shape[1]}


def measure_task(task: Task, jobs: int, parameters: dict[str, Any]) -> common.Record:
    """Time by round, and accuracy by round on the test strings, of trees and of linear weights."""
    from hedgerow import LinearCRF, TreeCRF

    X, y = task.indicators(task.train), task.train.labels
    test = task.indicators(task.test), task.test.labels
    record = {"axis": "task", **describe(task, X), **time_rounds(X, y, **parameters)}
    crf = TreeCRF(decode="marginal", **parameters).fit(X, y, eval_set=test)
    ends: list[float] = []
    linear = LinearCRF(
        reg_lambda=LINEAR_PENALTY,
        decode="marginal",
        callbacks=[lambda step: ends.append(time.process_time())],
        n_jobs=jobs,
    )
    begin = time.process_time()
    linear.fit(X, y)
    record["linear"] = {"seconds_by_round": [end - begin for end in ends]}
    linear.set_params(callbacks=None).fit(X, y, eval_set=test)
    record["linear"]["accuracy_by_round"] = linear.history_["eval_accuracy"]
    return record | {"accuracy_by_round": crf.history_["eval_accuracy"]}


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    by_axis: dict[str, dict[str, common.Record]] = {}
    for part, records in runs.items():
        by_axis.setdefault(records[0]["axis"], {})[part] = common.median_record(records)
    summary: common.Record = {"setting": __doc__}
    if "task" in by_axis:
        summary["tasks"] = {
            part: {**record, "published_seconds": PUBLISHED[part]}
            for part, record in by_axis["task"].items()
        }
    for axis in ("length", "window"):
        points = list(by_axis.get(axis, {}).values())
        if points:
            names = ("inference_seconds", "trellis_seconds", "trees_seconds")
            exponents = {name: growth(points, name) for name in names}
            summary[axis] = {"points": points, "exponents": exponents}
    return summary


def draw(summary: common.Record) -> Figure:
    """Accuracy and time by round of each task, and time by length and by window."""
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    draw_tasks(panels[0][0], panels[0][1], summary.get("tasks", {}))
    for panel, axis in zip(panels[1], ("length", "window"), strict=True):
        draw_growth(panel, axis, summary.get(axis, {"points": []})["points"])
    for panel in panels.flat:
        panel.grid(alpha=0.3)
    return figure


def draw_tasks(left: Axes, right: Axes, tasks: dict[str, common.Record]) -> None:
    for at, (name, record) in enumerate(tasks.items()):
        for style, label, curves in (("-", name, record), (":", None, record["linear"])):
            accuracies = [100 * each for each in curves["accuracy_by_round"]]
            left.plot(range(1, len(accuracies) + 1), accuracies, style, color=f"C{at}", label=label)
            seconds = curves["seconds_by_round"]
            right.plot(range(1, len(seconds) + 1), seconds, style, color=f"C{at}", label=label)
    left.set_title("trees (solid) and linear weights (dotted)")
    left.set_ylabel("test labels right by marginals, %")
    left.set_ylim(bottom=50)
    right.set_ylabel("processor time so far, seconds")
    for panel in (left, right):
        panel.set_xlabel("rounds, or iterations")
        if tasks:
            panel.legend()


def draw_growth(panel: Axes, axis: str, points: list[common.Record]) -> None:
    sizes = [point["size"] for point in points]
    for name, label in (("trellis_seconds", "trellis"), ("trees_seconds", "trees")):
        seconds = [1000 * point[name] for point in points]
        panel.plot(sizes, seconds, marker="o", label=label)
    panel.set_xlabel("positions of each of 100 sequences" if axis == "length" else "window")
    panel.set_ylabel("milliseconds per round")
    if axis == "length":
        panel.set_xscale("log")
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)
    panel.legend()
