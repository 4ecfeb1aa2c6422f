"""Proteins of Qian and Sejnowski: label accuracy of TreeCRF by objective and decoder.

A window of 11 residues, each one category. Settings are those that ``protein_choice`` found by
cross-validation of the training proteins; all objectives have the same. Each round uses half of the
proteins, so every model is trained with several seeds. McNemar's test compares models on the test
positions seed by seed; it assumes that positions are independent, which neighbours are not.
"""

from __future__ import annotations

import argparse
import statistics
from itertools import combinations
from pathlib import Path
from typing import Any

import common
import numpy as np
import trees_common
from labelwise_proteins import CHOSEN, WINDOW, read_proteins
from labelwise_training import DECODERS, OBJECTIVES, default_decoder, join

PARTS = OBJECTIVES
REFERENCE = 0.6452
QUICK_ROUNDS = 4
QUICK_SEEDS = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder that holds protein_qs/")
    parser.add_argument("--seeds", type=int, default=5, help="how many trainings of each model")
    trees_common.add_settings(parser)


def measure(part: str, options: argparse.Namespace) -> common.Record:
    train, test = (read_proteins(options.data, name) for name in ("train", "test"))
    parameters = {"window": WINDOW, "n_jobs": options.jobs, "objective": part, **CHOSEN}
    parameters |= {"n_rounds": QUICK_ROUNDS} if options.quick else {}
    parameters |= dict(options.settings)
    encoding = parameters.pop("encoding", "category")
    X, X_test, truth = train.columns(encoding), test.columns(encoding), join(test.labels)
    fits = []
    for seed in range(QUICK_SEEDS if options.quick else options.seeds):
        crf, record = trees_common.fit_trees(X, train.labels, random_state=seed, **parameters)
        right = {d: join(crf.predict(X_test, decode=d)) == truth for d in DECODERS}
        found = {decode: float(np.mean(one)) for decode, one in right.items()}
        common.log(f"{part}, seed {seed}: {found}, {record['train_seconds']:.1f} s")
        bits = {decode: "".join(map(str, one.astype(int))) for decode, one in right.items()}
        fits.append({"seed": seed, "accuracy": found, "right": bits, **record})
    return {"objective": part, "fits": fits}


def summarise_row(objective: str, decode: str, fits: list[common.Record]) -> common.Record:
    found = [fit["accuracy"][decode] for fit in fits]
    mean = statistics.mean(found)
    n_positions = len(fits[0]["right"][decode])
    return {
        "objective": objective,
        "decoder": decode,
        "is_default": decode == default_decoder(objective),
        "accuracy": mean,
        "deviation_over_seeds": statistics.stdev(found) if len(found) > 1 else None,
        "sampling_error": (mean * (1 - mean) / n_positions) ** 0.5,
        "accuracies": found,
    }


def compare(a: list[common.Record], b: list[common.Record], decode: tuple[str, str]) -> Any:
    """McNemar's exact test, by seed: positions that only one of two models gets right."""
    from scipy import stats

    only_a, only_b, p_values = [], [], []
    for first, second in zip(a, b, strict=True):
        pairs = list(zip(first["right"][decode[0]], second["right"][decode[1]], strict=True))
        only_a.append(pairs.count(("1", "0")))
        only_b.append(pairs.count(("0", "1")))
        n_differ = max(only_a[-1] + only_b[-1], 1)
        p_values.append(float(stats.binomtest(only_a[-1], n_differ).pvalue))
    return {
        "only_first_right": statistics.median(only_a),
        "only_second_right": statistics.median(only_b),
        "p_value": statistics.median(p_values),
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    fits = {part: records[0]["fits"] for part, records in runs.items()}
    models = [(objective, decode) for objective in fits for decode in DECODERS]
    return {
        "setting": f"111 proteins to train on, 17 to test on, {CHOSEN}; accuracy is the mean over "
        "seeds, its sampling error that of independent positions",
        "published": f"TreeCRF of Dietterich et al. (2008), by marginals: {REFERENCE}",
        "rows": [summarise_row(*model, fits[model[0]]) for model in models],
        "mcnemar": [
            {"first": " ".join(a), "second": " ".join(b)}
            | compare(fits[a[0]], fits[b[0]], (a[1], b[1]))
            for a, b in combinations(models, 2)
        ],
    }
