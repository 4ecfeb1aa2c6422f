"""OCR letters with wrong training labels: test error by noise and objective.

One fold is held out; not fold 0, which was used to choose the defaults of `TreeCRF`. In training, a
random share of the letters has a wrong label. Trees and linear models, every objective, both
decoders; the test labels are true.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import common
import numpy as np
import trees_common
from high_order_training import train as train_linear
from labelwise_training import (
    COLOURS,
    LEGENDS,
    MARKERS,
    OBJECTIVES,
    accuracies,
    default_decoder,
)
from numpy.typing import NDArray
from peers.ocr_linear import split_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOISES = (0.0, 0.05, 0.1, 0.2)
SIDES = {"trees": OBJECTIVES, "linear": (*OBJECTIVES, "max_margin")}
PARTS = tuple(
    f"{side}-{objective}" for side, objectives in SIDES.items() for objective in objectives
)
TITLES = {"trees": "TreeCRF", "linear": "LinearCRF"}
QUICK_ROUNDS = 5
QUICK_ITERATIONS = 5
QUICK_WORDS = 300


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--noises", type=float, nargs="+", default=NOISES, metavar="SHARE")
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    parser.add_argument("--fold", type=int, default=1, choices=range(10), help="held out")
    trees_common.add_settings(parser)


def spoil(y: list[NDArray[Any]], noise: float, seed: int) -> list[NDArray[Any]]:
    """Replace a share of the labels; labels that are wrong at a lower noise are wrong at a higher
    one."""
    rng = np.random.default_rng(seed)
    letters = np.unique(np.concatenate(y))
    spoilt = []
    for word in y:
        codes = np.searchsorted(letters, word)
        hit = rng.random(len(word)) < noise
        others = (codes + rng.integers(1, len(letters), size=len(word))) % len(letters)
        spoilt.append(letters[np.where(hit, others, codes)])
    return spoilt


def train(
    side: str, objective: str, X: Any, y: Any, options: argparse.Namespace
) -> tuple[Any, common.Record]:
    if side == "linear":
        limits = {"max_iter": QUICK_ITERATIONS, "tol": 0} if options.quick else {}
        return train_linear(X, y, objective=objective, n_jobs=options.jobs, **limits)
    parameters = {
        "n_rounds": QUICK_ROUNDS if options.quick else options.rounds,
        "n_jobs": options.jobs,
        "objective": objective,
        **trees_common.OCR_SETTINGS,
        **dict(options.settings),
    }
    return trees_common.fit_trees(X, y, **parameters)


def measure(part: str, options: argparse.Namespace) -> common.Record:
    side, objective = part.split("-")
    X, y, X_test, y_test = split_words(options.fold)
    if options.quick:
        X, y = X[:QUICK_WORDS], y[:QUICK_WORDS]
    fits = []
    for noise in options.noises:
        crf, record = train(side, objective, X, spoil(y, noise, options.seed), options)
        found = accuracies(crf, X_test, y_test)
        errors = {decode: 1 - share for decode, share in found.items()}
        common.log(f"{part}, noise {noise:g}: {errors}, {record['train_seconds']:.1f} s")
        fits.append({"noise": noise, "error": errors[default_decoder(objective)], **record})
        fits[-1] |= {f"error_{decode}": error for decode, error in errors.items()}
    return {"side": side, "objective": objective, "fits": fits}


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    records = [records[0] for records in runs.values()]
    return {
        "setting": "one fold held out; a share of the training letters has another letter for its "
        "label; error by the decoder that is the objective's default",
        "models": [
            {
                "model": TITLES[record["side"]],
                "objective": record["objective"],
                "decoder": default_decoder(record["objective"]),
                "error_by_noise": {f"{fit['noise']:g}": fit["error"] for fit in record["fits"]},
                "fits": record["fits"],
            }
            for record in records
        ],
    }


def draw(summary: common.Record) -> Figure:
    """One panel for trees and one for linear models, with a line for each objective."""
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(model["model"] for model in summary["models"]))
    figure, panels = plt.subplots(
        1, len(names), figsize=(1.5 + 4.5 * len(names), 4.5), layout="constrained", squeeze=False
    )
    for panel, name in zip(panels[0], names, strict=True):
        draw_panel(panel, [model for model in summary["models"] if model["model"] == name])
        panel.set_title(name)
    panels[0][0].set_ylabel("test error, %")
    handles: dict[str, Any] = {}
    for panel in panels[0]:
        handles |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    figure.legend(list(handles.values()), list(handles), loc="outside right center")
    return figure


def draw_panel(panel: Axes, models: list[common.Record]) -> None:
    for model in models:
        panel.plot(
            [100 * fit["noise"] for fit in model["fits"]],
            [100 * fit["error"] for fit in model["fits"]],
            color=COLOURS[model["objective"]],
            marker=MARKERS[model["objective"]],
            label=LEGENDS[model["objective"]],
        )
    panel.set_ylim(0, 105 * max(fit["error"] for model in models for fit in model["fits"]))
    panel.set_xticks([100 * fit["noise"] for fit in models[0]["fits"]])
    panel.set_xlabel("training letters with a wrong label, %")
    panel.grid(alpha=0.3)
