"""Settings of trees for the proteins of Qian and Sejnowski, by cross-validation in training.

Five folds. Proteins that share six residues in a row stay in one fold: there are families of
related proteins in the training set, so that with a random split trees would overfit to them. The
number of rounds is chosen with the rest, by label accuracy of the marginals. The other objectives
are tried too, with the base settings.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

import common
import numpy as np
from labelwise_proteins import N_FOLDS, WINDOW, Proteins, read_proteins
from labelwise_training import DECODERS, LABELWISE, join

# Base settings, which the others vary.
COMMON: dict[str, Any] = {"learning_rate": 0.1, "max_depth": 4, "subsample": 0.5}
SETTINGS: dict[str, dict[str, Any]] = {
    "one_hot": {"encoding": "one_hot"},
    "depth_1": {"max_depth": 1},
    "depth_2": {"max_depth": 2},
    "depth_3": {"max_depth": 3},
    "depth_4": {},
    "depth_5": {"max_depth": 5},
    "depth_6": {"max_depth": 6},
    "rate_0.05": {"learning_rate": 0.05},
    "rate_0.2": {"learning_rate": 0.2},
    "all_proteins": {"subsample": 1.0},
    "some_columns": {"colsample_bynode": 0.3},
    "large_leaves": {"min_child_weight": 20.0},
    "strong_penalty": {"reg_lambda": 20.0},
    "large_leaves_strong_penalty": {"min_child_weight": 20.0, "reg_lambda": 20.0},
    "exact_transitions": {"transition_step": "exact"},
    "few_columns": {"colsample_bynode": 0.15},
    "some_columns_strong_penalty": {"colsample_bynode": 0.3, "reg_lambda": 20.0},
    "some_columns_order_2": {"colsample_bynode": 0.3, "order": 2},
    "some_columns_order_3": {"colsample_bynode": 0.3, "order": 3},
    **{objective: {"objective": objective} for objective in LABELWISE},
}
PARTS = tuple(SETTINGS)
QUICK_ROUNDS = 4


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder that holds protein_qs/")
    parser.add_argument("--rounds", type=int, default=400, help="most rounds")
    parser.add_argument("--every", type=int, default=50, help="rounds from one look to the next")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each fold")


def measure(part: str, options: argparse.Namespace) -> common.Record:
    if options.quick:
        options.rounds, options.every = QUICK_ROUNDS, QUICK_ROUNDS // 2
    proteins = read_proteins(options.data, "train")
    parameters = COMMON | SETTINGS[part] | {"n_jobs": options.jobs}
    folds = proteins.folds()
    seeds = range(1 if options.quick else options.seeds)
    right = [
        measure_fold(proteins, folds == fold, parameters | {"random_state": seed}, options)
        for fold in range(N_FOLDS)
        for seed in seeds
    ]
    n_positions = len(seeds) * sum(map(len, proteins.labels))
    points = [add_up(at, n_positions) for at in zip(*right, strict=True)]
    best = max(points, key=lambda point: point["marginal"])
    common.log(f"{part}: {best}")
    return {"settings": SETTINGS[part], "best": best, "points": points}


def add_up(folds: tuple[common.Record, ...], n_positions: int) -> common.Record:
    """Accuracies over all folds and seeds, from the counts of correct labels."""
    shares = {str(d): sum(fold[d] for fold in folds) / n_positions for d in DECODERS}
    return {"rounds": folds[0]["rounds"], **shares}


def measure_fold(
    proteins: Proteins, held: Any, parameters: dict[str, Any], options: argparse.Namespace
) -> list[common.Record]:
    """Numbers of correct labels after some rounds; warm starts give the same as one long run."""
    from hedgerow import TreeCRF

    settings = {name: value for name, value in parameters.items() if name != "encoding"}
    settings |= {"window": WINDOW}
    X, y = proteins.columns(parameters.get("encoding", "category")), proteins.labels
    X_train, y_train = ([data[i] for i in np.flatnonzero(~held)] for data in (X, y))
    X_test, y_test = ([data[i] for i in np.flatnonzero(held)] for data in (X, y))
    crf, records = None, []
    for before, after in pairwise(range(0, options.rounds + 1, options.every)):
        settings |= {"n_rounds": after - before, "warm_rounds": options.every}
        crf = TreeCRF(**settings).fit(X_train, y_train, init=crf)
        right: common.Record = {
            decode: int(np.sum(join(crf.predict(X_test, decode=decode)) == join(y_test)))
            for decode in DECODERS
        }
        records.append({"rounds": after, **right})
    return records


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    rows = {part: records[0] for part, records in runs.items()}
    likelihood = {part: row for part, row in rows.items() if part not in LABELWISE}
    return {
        "setting": f"{N_FOLDS} folds of families of the training proteins; label accuracy by "
        f"marginals and by Viterbi, means over seeds; what a row does not say is as in {COMMON}",
        "best": max(likelihood, key=lambda part: rows[part]["best"]["marginal"], default=None),
        "rows": rows,
    }
