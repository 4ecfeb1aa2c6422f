"""Directions and steps of boosting: rounds and seconds to a training loss, and test results.

    search_directions.py --data DIR [--tasks NAME ...] [--rounds N] [--rates R ...] [--test N]
                         [--ways NAME ...] [--set KEY=VALUE]

Each line has a task, a direction, a step rule and a learning rate; for the training losses of the
default after 10, 50 and all rounds, the rounds and seconds of processor time to reach them (null:
not reached); loss and accuracy in % on test data after all rounds, and at the lowest test loss, the
best that early stopping could find. One thread; the seconds are those of training without test
data. ``--test``: the first test sequences only.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from tasks import TASKS, Task, known_only

from hedgerow import TreeCRF

WAYS: dict[str, dict[str, Any]] = {
    "steepest, fixed": {},
    "steepest, searched": {"line_search": True},
    "conjugate, fixed": {"direction": "conjugate", "line_search": False},
    "conjugate, searched": {"direction": "conjugate"},
}
DEFAULT = ("steepest, fixed", 0.3)
MARKS = (10, 50)  # rounds of the default whose losses are targets, in addition to the last


class Clock:
    """A callback that notes the processor time after each round."""

    def __init__(self) -> None:
        self.begin, self.seconds = time.process_time(), list[float]()

    def __call__(self, done: Any) -> bool:
        self.seconds.append(time.process_time() - self.begin)
        return False


def measure(parameters: dict[str, Any], task: Task, n_test: int) -> dict[str, Any]:
    """Curves of a training run: losses and seconds, and test results."""
    X, y, X_test, y_test, window = task
    test = known_only(y, X_test[:n_test], y_test[:n_test])
    usual = {"window": window, "n_jobs": 1, "random_state": 0}
    clock = Clock()
    crf = TreeCRF(**usual | parameters, callbacks=[clock]).fit(X, y)
    watched = TreeCRF(**usual | parameters).fit(X, y, eval_set=test)
    assert watched.history_["loss"] == crf.history_["loss"]
    return {
        "loss": crf.history_["loss"],
        "seconds": clock.seconds,
        "test_loss": watched.history_["eval_loss"],
        "test_accuracy": watched.history_["eval_accuracy"],
    }


def reach(curves: dict[str, Any], loss: float) -> dict[str, Any]:
    """Rounds and seconds until the training loss is at most this."""
    low = np.flatnonzero(np.array(curves["loss"]) <= loss)
    if not len(low):
        return {"loss": round(loss, 4), "rounds": None, "seconds": None}
    first = int(low[0])
    seconds = round(curves["seconds"][first], 2)
    return {"loss": round(loss, 4), "rounds": first + 1, "seconds": seconds}


def summarise(curves: dict[str, Any], targets: list[float]) -> dict[str, Any]:
    best = int(np.argmin(curves["test_loss"]))

    def after(number: int) -> dict[str, Any]:
        return {
            "rounds": number + 1,
            "test_loss": round(curves["test_loss"][number], 4),
            "right": round(100 * curves["test_accuracy"][number], 2),
        }

    last = len(curves["loss"]) - 1
    return {
        "reached": [reach(curves, loss) for loss in targets],
        "seconds": round(curves["seconds"][-1], 2),
        "training_loss": round(curves["loss"][-1], 5),
        "after all": after(last),
        "after the best": after(best),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    names = ["letters, one fold", "phonemes", "stress", "protein"]
    parser.add_argument("--tasks", nargs="*", default=names)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--rates", nargs="*", type=float, default=[0.3, 1.0])
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    pairs = (pair.partition("=") for pair in options.set)
    more = {name: json.loads(value) for name, _, value in pairs}
    settings = list(product(options.ways, options.rates))
    rows = [DEFAULT, *(row for row in settings if row != DEFAULT)]
    for name in options.tasks:
        task, targets = TASKS[name](options.data), list[float]()
        for way, rate in rows:
            parameters = {"n_rounds": options.rounds, "learning_rate": rate} | more
            curves = measure(parameters | WAYS[way], task, options.test)
            if not targets:
                losses = curves["loss"]
                targets = [losses[mark - 1] for mark in MARKS if mark < len(losses)]
                targets.append(losses[-1])
            row = {"task": name, "way": way, "rate": rate}
            print(json.dumps(row | summarise(curves, targets)), flush=True)


if __name__ == "__main__":
    main()
