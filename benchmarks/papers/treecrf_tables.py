"""Tables 4 and 5: label accuracy with shrunk leaves and with plain ones, and a linear CRF.

First-order boosting as in the paper, with trees on the input and the label before ("pairs"), which
is the paper's model, and with trees on the input and a weight for each label pair ("inputs").
"Shrunk" leaves: up to 100 in a tree, lambda chosen; "original" ones: lambda is 0, their number
chosen. For comparison, second-order boosting, and LinearCRF with a chosen penalty. All choices, and
the number of rounds or iterations, are made for each decoder by cross-validation with five folds of
the training strings. Inputs are an indicator for each letter of the window, as in the paper. The
words of the stress task are drawn anew with each draw. The data of the FAQ tasks could not be
found.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
import numpy as np
from experiments import run_trainings
from labelwise_proteins import N_FOLDS
from labelwise_training import DECODERS
from numpy.typing import NDArray
from treecrf_tasks import TASKS, Task, read_task
from treecrf_training import (
    FIRST_ORDER,
    LAMBDAS,
    LEAVES,
    MAX_LEAVES,
    MAX_ROUNDS,
    PAIR_TREES,
    QUICK_ROUNDS,
    Right,
    count_right,
    follow_rounds,
)

Settings = dict[str, Any]
SHRUNK: list[Settings] = [{"max_leaves": MAX_LEAVES, "reg_lambda": each} for each in LAMBDAS]
ORIGINAL: list[Settings] = [{"max_leaves": each, "reg_lambda": 0} for each in LEAVES]
SECOND_ORDER_LAMBDAS = (1, 5, 20)
VARIANCES = (1, 5, 10, 20)
ITERATIONS = (10, 20, 40, 80, 160)  # of LinearCRF

# The settings to choose from.
MODELS: dict[str, list[Settings]] = {
    "pairs, shrunk": [FIRST_ORDER | PAIR_TREES | each for each in SHRUNK],
    "pairs, original": [FIRST_ORDER | PAIR_TREES | each for each in ORIGINAL],
    "inputs, shrunk": [FIRST_ORDER | each for each in SHRUNK],
    "inputs, original": [FIRST_ORDER | each for each in ORIGINAL],
    "second order": [
        {"transitions": "trees", "reg_lambda": each, "n_jobs": 1} for each in SECOND_ORDER_LAMBDAS
    ],
    "linear": [{"reg_lambda": 1 / each, "tol": 0, "n_jobs": 1} for each in VARIANCES],
}
COMPARED = (
    ("pairs, shrunk", "pairs, original"),
    ("inputs, shrunk", "inputs, original"),
    ("pairs, shrunk", "inputs, shrunk"),
    ("pairs, shrunk", "linear"),
    ("second order", "pairs, shrunk"),
)
PUBLISHED = {
    "protein": {
        "pairs, shrunk": {"marginal": 0.6452, "viterbi": 0.6205},
        "pairs, original": {"marginal": 0.6270, "viterbi": 0.5920},
        "linear": {"better": 0.6244},
    },
    "stress": {
        "pairs, shrunk": {"marginal": 0.8518, "viterbi": 0.8520},
        "pairs, original": {"marginal": 0.8408, "viterbi": 0.8418},
        "linear": {"better": 0.8281},
    },
    "hyphenation": {
        "pairs, shrunk": {"marginal": 0.9220, "viterbi": 0.9176},
        "pairs, original": {"marginal": 0.9220, "viterbi": 0.9207},
        "linear": {"better": 0.8886},
    },
}
# Of TreeCRF with shrunk leaves, on a Xeon of 2.4 GHz.
PUBLISHED_COST = {
    "protein": {"cpu_seconds": 419.6, "rounds": 142},
    "stress": {"cpu_seconds": 454.6, "rounds": 169},
    "hyphenation": {"cpu_seconds": 39.2, "rounds": 58},
}
PARTS = tuple(TASKS)
QUICK_FOLDS = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, required=True, help="holds nettalk/, protein_qs/, treecrf_sparse/"
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=MAX_ROUNDS, help="most rounds")
    parser.add_argument("--every", type=int, default=10, help="rounds from one look to the next")
    parser.add_argument("--draws", type=int, default=20, help="of the words of the stress task")
    parser.add_argument("--first-draw", type=int, default=0, help="number of the first draw")


def measure(part: str, options: argparse.Namespace) -> common.Record:
    if options.quick:
        options.rounds, options.every, options.draws = QUICK_ROUNDS, QUICK_ROUNDS // 2, 2
    n_draws = options.draws if part == "stress" else 1
    tasks = {
        draw: read_task(part, options.data, draw=draw, quick=options.quick)
        for draw in range(options.first_draw, options.first_draw + n_draws)
    }
    chosen = choose(tasks, options)
    cases = [(tasks[key[0]], *key[1:], choice) for key, choice in chosen.items()]
    finals = dict(zip(chosen, run_trainings(train, cases, options.jobs), strict=True))
    return {
        "draws": [
            summarise_draw({key[1:]: found for key, found in finals.items() if key[0] == draw})
            for draw in tasks
        ]
    }


@dataclass(frozen=True)
class Choice:
    """The best setting in cross-validation, and its accuracy there."""

    settings: Settings
    rounds: int
    cv_accuracy: float


def choose(
    tasks: dict[int, Task], options: argparse.Namespace
) -> dict[tuple[int, str, str], Choice]:
    """Settings and rounds for each draw, model and decoder, by accuracy over all folds."""
    folds = range(QUICK_FOLDS if options.quick else N_FOLDS)
    looks = {model: looks_of(model, options) for model in options.models}
    keys = [
        (draw, model, at, fold)
        for draw in tasks
        for model in options.models
        for at in range(len(MODELS[model]))
        for fold in folds
    ]
    cases = [
        (tasks[draw], model, MODELS[model][at], fold, looks[model])
        for draw, model, at, fold in keys
    ]
    found = dict(zip(keys, run_trainings(try_settings, cases, options.jobs), strict=True))
    chosen = {}
    for draw, model in dict.fromkeys(key[:2] for key in keys):
        held = tasks[draw].train.pick(np.isin(tasks[draw].folds, folds))
        n_places = sum(map(len, held.labels))
        for decode in DECODERS:
            right = np.array(
                [
                    sum(counts(found[draw, model, at, fold], decode) for fold in folds)
                    for at in range(len(MODELS[model]))
                ]
            )
            best, look = np.unravel_index(right.argmax(), right.shape)
            chosen[draw, model, str(decode)] = Choice(
                MODELS[model][best], looks[model][look], float(right.max()) / n_places
            )
    return chosen


def looks_of(model: str, options: argparse.Namespace) -> tuple[int, ...]:
    """Numbers of rounds, or of iterations, to choose from."""
    if model == "linear":
        return ITERATIONS[:2] if options.quick else ITERATIONS
    return tuple(range(options.every, options.rounds + 1, options.every))


def counts(looks: list[Right], decode: str) -> NDArray[np.int64]:
    return np.array([right[decode] for right in looks])


def try_settings(
    task: Task, model: str, settings: Settings, fold: int, looks: tuple[int, ...]
) -> list[Right]:
    """Correct labels in a held-out fold, after each number of rounds."""
    train, held = task.train.pick(task.folds != fold), task.train.pick(task.folds == fold)
    X, X_held = task.indicators(train), task.indicators(held)
    if model == "linear":
        return [
            count_right(fit(model, X, train.labels, settings, number), X_held, held)
            for number in looks
        ]
    return follow_rounds(X, train.labels, X_held, held, looks, **settings)


def fit(model: str, X: list[Any], y: list[Any], settings: Settings, rounds: int) -> Any:
    from hedgerow import LinearCRF, TreeCRF

    if model == "linear":
        return LinearCRF(max_iter=rounds, **settings).fit(X, y)
    return TreeCRF(n_rounds=rounds, **settings).fit(X, y)


def train(task: Task, model: str, decode: str, choice: Choice) -> common.Record:
    """Train on all training strings; returns the correct test labels, time and memory."""
    X, X_test = task.indicators(task.train), task.indicators(task.test)
    with common.Stopwatch() as watch:
        crf = fit(model, X, task.train.labels, choice.settings, choice.rounds)
    return {
        "right": task.test.right(crf.predict(X_test, decode=decode)),
        "cv_accuracy": choice.cv_accuracy,
        "rounds": crf.n_iter_ if model == "linear" else crf.n_rounds_,
        "max_leaves": choice.settings.get("max_leaves"),
        "reg_lambda": choice.settings["reg_lambda"],
        "cpu_seconds": watch.cpu_seconds,
    }


def summarise_draw(finals: dict[tuple[str, str], common.Record]) -> common.Record:
    """Accuracies by model and decoder, and McNemar's tests of the models that are compared."""
    from hedgerow.stats import mcnemar

    models: common.Record = {}
    for (model, decode), found in finals.items():
        figures = {name: value for name, value in found.items() if name != "right"}
        models.setdefault(model, {})[decode] = {"accuracy": float(found["right"].mean()), **figures}
    tests = []
    for a, b in COMPARED:
        for decode in DECODERS:
            if (a, decode) in finals and (b, decode) in finals:
                test = mcnemar(finals[a, decode]["right"], finals[b, decode]["right"])
                tests.append({"a": a, "b": b, "decoder": decode, **vars(test)})
    return {"models": models, "tests": tests}


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    tasks = {part: summarise_task(part, records[0]["draws"]) for part, records in runs.items()}
    return {"setting": __doc__, "tasks": tasks}


def summarise_task(name: str, draws: list[common.Record]) -> common.Record:
    models: common.Record = {}
    for model in draws[0]["models"]:
        cells: dict[str, common.Record] = {
            decode: summarise_cell([draw["models"][model][decode] for draw in draws])
            for decode in DECODERS
        }
        _, better = max((cell["cv_accuracy"], decode) for decode, cell in cells.items())
        models[model] = {**cells, "better_in_cross_validation": better}
    tests = zip(*(draw["tests"] for draw in draws), strict=True)
    return {
        "n_draws": len(draws),
        "published": PUBLISHED[name],
        "published_cost": PUBLISHED_COST[name],
        "models": models,
        "tests": [summarise_tests(one) for one in tests],
        "draws": draws,
    }


def summarise_cell(cells: list[common.Record]) -> common.Record:
    """Mean accuracy over draws and its standard error; medians of time and memory."""
    accuracy, error = mean_and_error(cell["accuracy"] for cell in cells)
    return {
        "accuracy": accuracy,
        "standard_error": error,
        "cv_accuracy": statistics.mean(cell["cv_accuracy"] for cell in cells),
        "rounds": statistics.median(cell["rounds"] for cell in cells),
        "cpu_seconds": statistics.median(cell["cpu_seconds"] for cell in cells),
    }


def mean_and_error(values: Iterable[float]) -> tuple[float, float | None]:
    found = list(values)
    return common.mean_and_error(found) if len(found) > 1 else (found[0], None)


def summarise_tests(tests: tuple[common.Record, ...]) -> common.Record:
    """Difference in correct labels between a and b, over draws, and the p-value of each draw."""
    ahead, error = mean_and_error(test["n_only_a"] - test["n_only_b"] for test in tests)
    return {
        **{name: tests[0][name] for name in ("a", "b", "decoder")},
        "labels_ahead": ahead,
        "standard_error": error,
        "p_values": [test["p_value"] for test in tests],
        "n_significant": sum(test["p_value"] < 0.025 for test in tests),
    }
