"""Table 7 and Figure 4, a to c: methods for missing values, by the share of missing letters.

Letters of the training and of the test strings are erased at random, as a whole and before windows
are made: five versions of either at each rate. A model is trained on each training version with
each method and tested on each test version, by marginals. Boosting is that of the paper, with
shrunk leaves; trees are on label pairs, as in the paper, or on the input, with a weight for each
label pair (``--trees inputs``). Lambda and the number of rounds are chosen on a third of the
training strings for each method and version. Inputs are an indicator for each letter of the window,
all of them missing where the letter is, as in the paper; the letter that "impute" fills in is the
most frequent one, so it is filled in before indicators are made. With ``--columns letters`` a
letter is one column of categories, and all methods are those of TreeCRF. "learned", where each
split has a direction for missing values, is not in the paper. Coefficients are those of the
analysis of deviance: the change in log-odds of a right label from "fractional", the paper's
instance weighting.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import common
import numpy as np
import trees_common
from experiments import resume_trainings
from treecrf_tasks import TASKS, Task, Texts, read_task
from treecrf_training import (
    FIRST_ORDER,
    LAMBDAS,
    MAX_LEAVES,
    MAX_ROUNDS,
    PAIR_TREES,
    QUICK_ROUNDS,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("fractional", "surrogate", "impute", "indicator", "learned")
BASELINE = "fractional"
# Trees on the input with weights of label pairs, or the paper's trees on both.
TREES: dict[str, dict[str, Any]] = {"inputs": {}, "pairs": PAIR_TREES}
RATES = (0.05, 0.1, 0.2, 0.4)
PARTS = tuple(f"{task}-{rate:g}" for task in TASKS for rate in RATES)
N_VERSIONS = 5
QUICK_VERSIONS = 2
HELD_OUT = 3  # one in this many training strings

# Table 7: coefficients of surrogate splitting, imputation and indicators; whether p < 0.05.
PUBLISHED_METHODS = ("surrogate", "impute", "indicator")
PUBLISHED = {
    "protein-0.05": ((-0.018, False), (-0.072, True), (-0.028, True)),
    "protein-0.1": ((-0.013, False), (-0.040, True), (0.001, False)),
    "protein-0.2": ((-0.025, True), (-0.074, True), (-0.020, True)),
    "protein-0.4": ((-0.041, True), (-0.072, True), (-0.020, True)),
    "stress-0.05": ((-0.051, True), (-0.066, True), (-0.064, True)),
    "stress-0.1": ((-0.051, True), (-0.067, True), (-0.059, True)),
    "stress-0.2": ((-0.069, True), (-0.057, True), (-0.052, True)),
    "stress-0.4": ((-0.080, True), (-0.116, True), (-0.111, True)),
    "hyphenation-0.05": ((0.036, True), (0.007, False), (0.023, False)),
    "hyphenation-0.1": ((-0.031, True), (-0.022, False), (-0.027, True)),
    "hyphenation-0.2": ((-0.071, True), (-0.049, True), (-0.040, True)),
    "hyphenation-0.4": ((-0.024, True), (-0.054, True), (-0.047, True)),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, required=True, help="holds nettalk/, protein_qs/, treecrf_sparse/"
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--trees", choices=TREES, default="pairs")
    parser.add_argument("--columns", choices=("indicators", "letters"), default="indicators")
    parser.add_argument("--rounds", type=int, default=MAX_ROUNDS, help="most rounds")
    parser.add_argument(
        "--finished",
        type=Path,
        help="file with a line for each training that has finished: a run continues from there",
    )
    trees_common.add_settings(parser)


def erase_versions(task: Task, rate: float, n_versions: int, *, test: bool) -> list[Texts]:
    """Versions of the strings with letters missing."""
    texts = task.test if test else task.train
    return [
        texts.erase(rate, np.random.default_rng([round(1000 * rate), version, test]))
        for version in range(n_versions)
    ]


def encode(
    task: Task, method: str, columns: str, train: Texts, others: list[Texts]
) -> list[list[Any]]:
    """X of the training strings and of the others."""
    if columns == "letters":
        return [task.categories(texts) for texts in (train, *others)]
    if method == "impute":
        letter = train.commonest()
        train, others = train.fill(letter), [texts.fill(letter) for texts in others]
    return [task.indicators(texts) for texts in (train, *others)]


def build(method: str, reg_lambda: float, n_rounds: int, options: argparse.Namespace) -> Any:
    from hedgerow import TreeCRF

    parameters = FIRST_ORDER | TREES[options.trees]
    parameters |= {"max_leaves": MAX_LEAVES, "decode": "marginal"}
    parameters |= {"missing": method, "reg_lambda": reg_lambda, "n_rounds": n_rounds}
    return TreeCRF(**(parameters | dict(options.settings)))


def try_lambda(
    task: Task, train: Texts, method: str, reg_lambda: float, options: argparse.Namespace
) -> tuple[float, int]:
    """Best accuracy on the third that is held out, and the number of rounds that reaches it."""
    held = np.random.default_rng(0).permutation(len(train.letters)) % HELD_OUT == 0
    part, aside = train.pick(~held), train.pick(held)
    X, X_aside = encode(task, method, options.columns, part, [aside])
    crf = build(method, reg_lambda, options.rounds, options)
    crf.fit(X, part.labels, eval_set=(X_aside, aside.labels))
    accuracies: list[float] = crf.history_["eval_accuracy"]
    return max(accuracies), int(np.argmax(accuracies)) + 1


def train_version(
    task: Task,
    train: Texts,
    tests: list[Texts],
    method: str,
    choice: tuple[float, int],
    options: argparse.Namespace,
) -> list[int]:
    """Correct labels in each test version, after training on all strings of a training version."""
    X, *X_tests = encode(task, method, options.columns, train, tests)
    crf = build(method, *choice, options).fit(X, train.labels)
    return [
        int(texts.right(crf.predict(X_test)).sum())
        for texts, X_test in zip(tests, X_tests, strict=True)
    ]


def describe(part: str, key: tuple[str, int], options: argparse.Namespace, *rest: object) -> str:
    """Name of a training: all that its result depends on."""
    settings = options.trees, options.columns, *options.settings, options.quick
    return " ".join(map(str, (part, *key, *settings, *rest)))


def choose(
    part: str, task: Task, trains: list[Texts], options: argparse.Namespace
) -> dict[tuple[str, int], tuple[float, int]]:
    """Lambda and rounds for each method and training version."""
    lambdas = LAMBDAS[::3] if options.quick else LAMBDAS
    keys = [(method, version) for method in options.methods for version in range(len(trains))]
    names = {
        (key, reg_lambda): describe(part, key, options, "tries", reg_lambda, options.rounds)
        for key in keys
        for reg_lambda in lambdas
    }
    cases = {
        name: (task, trains[version], method, reg_lambda, options)
        for ((method, version), reg_lambda), name in names.items()
    }
    tried = resume_trainings(try_lambda, cases, options.jobs, options.finished)
    chosen: dict[tuple[str, int], tuple[float, int]] = {}
    for key in keys:
        own = {reg_lambda: tried[names[key, reg_lambda]] for reg_lambda in lambdas}
        best = max(lambdas, key=lambda reg_lambda: own[reg_lambda][0])
        chosen[key] = best, own[best][1]
    return chosen


def measure(part: str, options: argparse.Namespace) -> common.Record:
    name, rate = part.split("-")
    n_versions = QUICK_VERSIONS if options.quick else N_VERSIONS
    if options.quick:
        options.rounds = QUICK_ROUNDS
    task = read_task(name, options.data, quick=options.quick)
    trains = erase_versions(task, float(rate), n_versions, test=False)
    tests = erase_versions(task, float(rate), n_versions, test=True)
    chosen = choose(part, task, trains, options)
    cases = {
        describe(part, key, options, "chosen", *choice): (
            task,
            trains[key[1]],
            tests,
            key[0],
            choice,
            options,
        )
        for key, choice in chosen.items()
    }
    right = resume_trainings(train_version, cases, options.jobs, options.finished)
    common.log(f"{part}: {len(cases)} models")
    return {
        "task": name,
        "rate": float(rate),
        "n_places": sum(map(len, task.test.labels)),
        "cells": [
            {
                "method": method,
                "training_set": version,
                "reg_lambda": choice[0],
                "rounds": choice[1],
                "right": counts,
            }
            for ((method, version), choice), counts in zip(
                chosen.items(), right.values(), strict=True
            )
        ],
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    parts = {part: summarise_part(part, records[0]) for part, records in runs.items()}
    return {"setting": __doc__, "parts": parts}


def summarise_part(part: str, record: common.Record) -> common.Record:
    """Mean accuracy of each method, and its analysis of deviance."""
    cells, n_places = record["cells"], record["n_places"]
    methods: dict[str, common.Record] = {}
    for method in dict.fromkeys(cell["method"] for cell in cells):
        own = [cell for cell in cells if cell["method"] == method]
        right = [count for cell in own for count in cell["right"]]
        methods[method] = {
            "accuracy": statistics.mean(right) / n_places,
            "reg_lambda": [cell["reg_lambda"] for cell in own],
            "rounds": [cell["rounds"] for cell in own],
        }
    published = dict(zip(PUBLISHED_METHODS, PUBLISHED[part], strict=True))
    for method, (coefficient, significant) in published.items():
        if method in methods:
            methods[method] |= {
                "published_coefficient": coefficient,
                "published_significant": significant,
            }
    summary = {"task": record["task"], "rate": record["rate"], "methods": methods}
    if BASELINE in methods and len(methods) > 1:
        compare(cells, n_places, summary)
    return summary


def compare(cells: list[common.Record], n_places: int, summary: common.Record) -> None:
    """Add the analysis of deviance, with and without the paper's assumption of independence.

    A cell is a model and a test version.
    """
    from hedgerow.stats import deviance

    counted = [(count, cell) for cell in cells for count in cell["right"]]
    for dispersion in ("binomial", "quasi"):
        found = deviance(
            [count for count, _ in counted],
            [n_places] * len(counted),
            [cell["method"] for _, cell in counted],
            [cell["training_set"] for _, cell in counted],
            baseline=BASELINE,
            dispersion=dispersion,
        )
        summary[f"p_value_{dispersion}"] = found.p_value
        table = found.methods
        for at, method in enumerate(table["method"]):
            figures = summary["methods"][method]
            figures["coefficient"] = float(table["coefficient"][at])
            figures[f"p_value_{dispersion}"] = float(table["p_value"][at])
    summary["dispersion"] = found.dispersion


def draw(summary: common.Record) -> Figure:
    """One panel per task: accuracy by the share of missing letters."""
    from matplotlib import pyplot as plt

    parts = summary["parts"].values()
    names = list(dict.fromkeys(part["task"] for part in parts))
    figure, panels = plt.subplots(
        1, len(names), figsize=(4.5 * len(names), 4), layout="constrained", squeeze=False
    )
    for panel, name in zip(panels[0], names, strict=True):
        own = [part for part in parts if part["task"] == name]
        for method in own[0]["methods"]:
            panel.plot(
                [100 * part["rate"] for part in own],
                [100 * part["methods"][method]["accuracy"] for part in own],
                marker="o",
                color=f"C{METHODS.index(method)}",
                label=method,
            )
        panel.set_title(name)
        panel.set_xlabel("letters missing, %")
        panel.set_ylabel("test labels right, %")
        panel.grid(alpha=0.3)
        panel.legend()
    return figure
