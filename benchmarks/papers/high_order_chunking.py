"""CoNLL-2000 chunking with CRF++'s template: order 1, order 1 within BIO, order 2 within BIO.

Each model is trained in a fresh process on the same lists of attribute strings, for the same number
of L-BFGS iterations. With BIO constraints an I-X must continue an X.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

import common
from high_order_training import train
from peers.chunking import read_sequences

from hedgerow.metrics import chunk_scores

MODELS: dict[str, dict[str, Any]] = {
    "order 1": {"order": 1},
    "order 1, BIO": {"order": 1, "constraints": "BIO"},
    "order 2, BIO": {"order": 2, "constraints": "BIO"},
}
PARTS = tuple(MODELS)
REPEATS = 3

REG_LAMBDA = 2.0  # as CRFsuite's c2 = 1
ITERATIONS = 100
QUICK_ITERATIONS = 5
QUICK_SENTENCES = 500


def count_illegal(labellings: Iterable[Sequence[str]]) -> int:
    """Number of labels I-X that come first, or after anything other than B-X and I-X."""
    return sum(
        label.startswith("I-") and before not in (label, "B-" + label[2:])
        for labels in labellings
        for before, label in zip(["", *labels], labels, strict=False)
    )


def measure(part: str, options: argparse.Namespace) -> common.Record:
    folder = options.data / "conll2000"
    n_sentences = QUICK_SENTENCES if options.quick else None
    X, y = (column[:n_sentences] for column in read_sequences(folder / "train.txt.gz"))
    before = common.peak_memory_mib()
    common.log("lists built, training")
    crf, record = train(
        X,
        y,
        reg_lambda=REG_LAMBDA,
        max_iter=QUICK_ITERATIONS if options.quick else ITERATIONS,
        tol=0,
        n_jobs=options.jobs,
        **MODELS[part],
    )
    after = common.peak_memory_mib()
    X_test, y_test = read_sequences(folder / "test.txt.gz")
    tagged = common.tag_record(crf.predict, X_test)
    predicted = tagged.pop("predicted")
    return {
        "f1": float(chunk_scores(y_test, predicted).f1),
        "n_illegal": count_illegal(predicted),
        **record,
        **tagged,
        "peak_mib_after_lists": before,
        "peak_mib_after_training": after,
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    models = [{"model": part, **common.median_record(records)} for part, records in runs.items()]
    return {
        "setting": "the same attributes, penalty and number of iterations; medians of "
        f"{len(next(iter(runs.values())))} runs, each in a fresh process",
        "models": models,
        "none_illegal_under_constraints": all(
            record["n_illegal"] == 0
            for part, records in runs.items()
            if "constraints" in MODELS[part]
            for record in records
        ),
        "seconds_per_iteration_over_order_1": {
            model["model"]: model["seconds_per_iteration"] / models[0]["seconds_per_iteration"]
            for model in models
        },
    }
