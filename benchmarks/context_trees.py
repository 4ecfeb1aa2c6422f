"""Trees that split on previous labels, compared with trees on the input and linear weights.

    context_trees.py --data DIR [--tasks NAME ...] [--models NAME ...] [--orders 1 3] [--draws N]

Each line has a task, a model and an order; accuracy in % by marginals and by Viterbi,
log-likelihood per position, seconds of training, and peak memory so far. "original" is the model
and the boosting of Dietterich et al. (2008): `transitions="trees"`, first-order steps, no weights
of label patterns. "chunks, all" is the whole of CoNLL-2000. With ``--draws N`` the task of NETtalk
stress is drawn N times, 1,000 words to train on and 1,000 to test on, as in the paper. "linear" is
left out where values are missing.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tasks
from tasks import Task, known_only, one_hot, read_table, spread_windows

from hedgerow import LinearCRF, TreeCRF

TASKS = tasks.TASKS | {"chunks, all": functools.partial(tasks.chunks, n_sentences=None)}
TREES: dict[str, dict[str, Any]] = {
    "input": {},
    "contexts": {"transitions": "trees"},
    "contexts alone": {"transitions": "trees", "label_patterns": []},
    "original": {
        "transitions": "trees",
        "label_patterns": [],
        "newton": False,
        "trim": 0,
        "reg_lambda": 0.0,
    },
}


def draw_stress(folder: Path, seed: int) -> Task:
    """As in the paper: a thousand words to train on, a thousand to test on, window 13."""
    table = read_table(folder / "nettalk" / "nettalk.tsv.gz")
    table = [row for row in table if len(row[0]) == len(row[1]) == len(row[2])]
    rows = [table[i] for i in np.random.default_rng(seed).permutation(len(table))[:2000]]
    X, y = one_hot([row[0] for row in rows]), [list(row[2]) for row in rows]
    return X[:1000], y[:1000], X[1000:], y[1000:], 6


def models_of(names: list[str], order: int, window: int, rounds: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        if name == "linear":
            found[name] = LinearCRF(order=order)
            continue
        parameters = {"order": order, "window": window, "n_rounds": rounds} | TREES[name]
        if "label_patterns" in parameters and order != 1:
            continue
        found[name] = TreeCRF(random_state=0, **parameters)
    return found


def misses_values(task: Task) -> bool:
    return any(isinstance(x, np.ndarray) and np.isnan(x).any() for x in (*task[0], *task[2]))


def measure(crf: Any, task: Task) -> dict[str, Any]:
    X, y, X_test, y_test, window = task
    X_test, y_test = known_only(y, X_test, y_test)
    if isinstance(crf, LinearCRF):
        X, X_test = spread_windows(X, window), spread_windows(X_test, window)
    begin = time.perf_counter()
    crf.fit(X, y)
    seconds = time.perf_counter() - begin
    scores = {
        decode: round(100 * crf.score(X_test, y_test, decode=decode), 2)
        for decode in ("marginal", "viterbi")
    }
    n_positions = sum(map(len, y_test))
    return scores | {
        "log_likelihood": round(crf.log_likelihood(X_test, y_test).sum() / n_positions, 4),
        "seconds": round(seconds, 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--tasks", nargs="*", choices=TASKS, default=["protein", "hyphenation", "stress"]
    )
    models = ["linear", *TREES]
    parser.add_argument("--models", nargs="*", choices=models, default=models)
    parser.add_argument("--orders", nargs="*", type=int, default=[1])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--draws", type=int, default=0)
    options = parser.parse_args()
    cases = {name: (lambda name=name: TASKS[name](options.data)) for name in options.tasks}
    cases |= {
        f"stress, draw {seed}": (lambda seed=seed: draw_stress(options.data, seed))
        for seed in range(options.draws)
    }
    for name, load in cases.items():
        task = load()
        names = [m for m in options.models if m != "linear" or not misses_values(task)]
        for order in options.orders:
            window = task[4]
            for model, crf in models_of(names, order, window, options.rounds).items():
                row = {"task": name, "order": order, "model": model}
                print(json.dumps(row | measure(crf, task)), flush=True)
    print(f"{len(cases)} tasks", file=sys.stderr)


if __name__ == "__main__":
    main()
