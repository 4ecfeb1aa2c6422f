"""Loss and accuracy against seconds, for several sampling methods.

NETtalk phonemes (51 labels) and OCR letters (26), several random splits, of which means are given.
All methods but two use about the same number of examples: ``--ratio`` negative ones for each
positive one. Each model is trained twice: without the test set, to measure the time of its rounds,
and with it, for metrics after each round; both give the same model.

The paper boosts first-order trees on label pairs: ``--set newton=False --set transitions=trees``.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import common
import numpy as np
import tasks
import trees_common

from hedgerow import TreeCRF

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Training sequences and labels, test sequences and labels.
Split = tuple[list[Any], list[Any], list[Any], list[Any]]

STRATIFIED = {"stratified": True}
# Parameters of each sampling method, and its name in a legend. SHARE stands for the share of all
# examples that the stratified methods use, RATIO for the option.
SHARE, RATIO = "share", "ratio"
SAMPLINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "all": ("all examples", {}),
    "trim": ("those of small gradients left out", {"trim": None}),
    "uniform": ("a share of the sequences", {"subsample": SHARE}),
    "stratified": (
        "stratified, no weights",
        STRATIFIED | {"negative_ratio": RATIO, "negative_weight": "none"},
    ),
    "balanced": (
        "stratified, balanced",
        STRATIFIED | {"negative_ratio": RATIO, "negative_weight": "balanced"},
    ),
    "unbiased": ("stratified, unbiased", STRATIFIED | {"negative_ratio": RATIO}),
    "importance": (
        "drawn by gradients",
        {"subsample": SHARE, "sampling_method": "gradient_based"},
    ),
}
# Kinds of steps, each combined with each sampling method: suffix of the name of a part, name in the
# figure, and parameters.
STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "fixed": ("fixed steps", {}),
    "searched": ("line search", {"line_search": True}),
    "conjugate": ("conjugate", {"direction": "conjugate", "line_search": False}),
    "both": ("conjugate, line search", {"direction": "conjugate", "line_search": True}),
}
TASKS = ("phonemes", "letters")
PARTS = tuple(
    f"{task}-{sampling}-{step}" for task in TASKS for sampling in SAMPLINGS for step in STEPS
)
WINDOWS = {"phonemes": 3, "letters": 0}
N_TEST_WORDS = 2000
QUICK_SPLITS, QUICK_ROUNDS, QUICK_WORDS = 2, 8, 150


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder that holds nettalk/")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--words", type=int, default=1000, help="training words of NETtalk")
    parser.add_argument("--ratio", type=float, default=3.0, help="examples of other labels")
    trees_common.add_settings(parser)


def split_phonemes(number: int, options: argparse.Namespace) -> Split:
    """Random words for training, and others for testing whose labels all occur in training."""
    table = tasks.read_table(options.data / "nettalk" / "nettalk.tsv.gz")
    table = [row for row in table if len(row[0]) == len(row[1]) == len(row[2])]
    n_train = QUICK_WORDS if options.quick else options.words
    order = np.random.default_rng(number).permutation(len(table))[: n_train + N_TEST_WORDS]
    X = tasks.one_hot([table[i][0] for i in order])
    y = [list(table[i][1]) for i in order]
    X_test, y_test = tasks.known_only(y[:n_train], X[n_train:], y[n_train:])
    return X[:n_train], y[:n_train], X_test, y_test


def split_letters(number: int, options: argparse.Namespace) -> Split:
    """One fold of the words for testing, the others for training."""
    X, y, fold = tasks.load_ocr()
    train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
    if options.quick:
        train, test = train[:QUICK_WORDS], test[:QUICK_WORDS]
    X_train, y_train = tasks.pick(X, y, train)
    return X_train, y_train, *tasks.known_only(y_train, *tasks.pick(X, y, test))


SPLITS = {"phonemes": split_phonemes, "letters": split_letters}


def read_part(part: str, n_labels: int, options: argparse.Namespace) -> dict[str, Any]:
    """Parameters of TreeCRF."""
    task, sampling, step = part.split("-")
    share = min(1.0, (1 + options.ratio) / n_labels)
    values = {SHARE: share, RATIO: options.ratio}
    named = SAMPLINGS[sampling][1] | STEPS[step][1]
    drawn = {key: values.get(value, value) for key, value in named.items()}
    return {
        "n_rounds": QUICK_ROUNDS if options.quick else options.rounds,
        "window": WINDOWS[task],
        "trim": 0.0,
        "n_jobs": options.jobs,
        "random_state": 0,
        **drawn,
        **dict(options.settings),
    }


def measure(part: str, options: argparse.Namespace) -> common.Record:
    make, fits = SPLITS[part.split("-")[0]], []
    for number in range(QUICK_SPLITS if options.quick else options.splits):
        X, y, X_test, y_test = make(number, options)
        parameters = read_part(part, len(set().union(*map(set, y))), options)
        ends: list[float] = []
        alone = TreeCRF(callbacks=[lambda _, ends=ends: ends.append(time.perf_counter())])
        begin = time.perf_counter()
        alone.set_params(**parameters).fit(X, y)
        history = TreeCRF(**parameters).fit(X, y, eval_set=(X_test, y_test)).history_
        common.log(
            f"{part}, split {number}: {ends[-1] - begin:.2f} s, test loss "
            f"{history['eval_loss'][-1]:.4f}, accuracy {history['eval_accuracy'][-1]:.4f}"
        )
        assert history["loss"] == alone.history_["loss"], "both trainings are the same"
        fits.append(
            {
                "seconds": [end - begin for end in ends],
                **{name: history[name] for name in ("loss", "eval_loss", "eval_accuracy")},
            }
        )
    return {"parameters": parameters, "fits": fits}


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    return {
        "setting": "means over splits after each round: seconds of training alone, loss per "
        "position in training and in test, share of test positions that are right",
        "curves": {part: summarise_part(records[0]) for part, records in runs.items()},
    }


def summarise_part(record: common.Record) -> common.Record:
    fits = record["fits"]
    n_rounds = min(len(fit["seconds"]) for fit in fits)
    curves = {
        name: [statistics.mean(fit[name][r] for fit in fits) for r in range(n_rounds)]
        for name in fits[0]
    }
    best = int(np.argmin(curves["eval_loss"]))
    return {
        "parameters": record["parameters"],
        "train_seconds": curves["seconds"][-1],
        "best_round": best + 1,
        "best_eval_loss": curves["eval_loss"][best],
        "seconds_to_best_eval_loss": curves["seconds"][best],
        "best_eval_accuracy": max(curves["eval_accuracy"]),
        "curves": {name: [round(value, 6) for value in curve] for name, curve in curves.items()},
    }


PANELS = {
    "loss": "training loss",
    "eval_loss": "test loss",
    "eval_accuracy": "accuracy",
}


def draw(summary: common.Record) -> Figure:
    """Rows of panels: a task and a metric. Columns: kinds of steps. Colours: sampling methods."""
    from matplotlib import pyplot as plt

    curves = summary["curves"]
    drawn = [task for task in TASKS if any(part.startswith(task) for part in curves)]
    figure, panels = plt.subplots(
        len(drawn) * len(PANELS),
        len(STEPS),
        figsize=(12, 2.4 * len(drawn) * len(PANELS)),
        layout="constrained",
        sharex="col",
        sharey="row",
        squeeze=False,
    )
    for row, (task, name) in zip(panels, itertools.product(drawn, PANELS), strict=True):
        row[0].set_ylabel(f"{task}: {PANELS[name]}")
        for panel, step in zip(row, STEPS, strict=True):
            parts = {s: f"{task}-{s}-{step}" for s in SAMPLINGS}
            own = {s: curves[part] for s, part in parts.items() if part in curves}
            draw_curves(panel, own, name)
    for panel, (title, _) in zip(panels[0], STEPS.values(), strict=True):
        panel.set_title(title)
    for panel in panels[-1]:
        panel.set_xlabel("seconds of training")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def draw_curves(panel: Axes, records: dict[str, common.Record], name: str) -> None:
    for number, (sampling, (label, _)) in enumerate(SAMPLINGS.items()):
        if sampling in records:
            curves = records[sampling]["curves"]
            panel.plot(curves["seconds"], curves[name], color=f"C{number}", label=label)
    panel.set_xscale("log")
    if name != "eval_accuracy":
        panel.set_yscale("log")
    panel.grid(alpha=0.3, which="both")
