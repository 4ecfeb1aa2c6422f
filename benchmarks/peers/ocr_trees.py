"""OCR letters, fold 0 held out: TreeCRF on words against XGBoost on letters, with the same number
of trees.

XGBoost gets the letters as separate rows; TreeCRF gets the words, and its prediction includes the
search for the best word. Both start from the same bytes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common
import numpy as np
import trees_common
from ocr_linear import split_words

SIDES = ("xgboost", "hedgerow")
MAX_DEPTH = 6
PASSES = 7
N_SINGLE_WORDS = 300
QUICK_ROUNDS = 3
QUICK_WORDS = 300
RATIOS = (
    "train_seconds",
    "train_cpu_seconds",
    "peak_mib_after_training",
    "training_mib",
    "predict_seconds",
    "single_word_milliseconds",
)


def read_words(options: argparse.Namespace) -> tuple[list[Any], ...]:
    n_words = QUICK_WORDS if options.quick else None
    X, y, X_test, y_test = split_words()
    return X[:n_words], y[:n_words], X_test, y_test


def measure_xgboost(options: argparse.Namespace) -> common.Record:
    X, y, X_test, _ = read_words(options)
    letters, codes = np.unique(np.concatenate(y), return_inverse=True)
    booster, trained = trees_common.fit_xgboost(
        np.concatenate(X), codes, rounds=options.rounds, max_depth=MAX_DEPTH, jobs=options.jobs
    )

    def tag(rows: Any) -> Any:
        return letters[trees_common.predict_xgboost(booster, rows)]

    rows = np.concatenate(X_test)
    bounds = np.cumsum([len(word) for word in X_test])[:-1]
    return {
        **trained,
        **throughput(lambda: tag(rows), len(rows)),
        "single_word_milliseconds": single_word(tag, X_test),
        "predicted": [word.tolist() for word in np.split(tag(rows), bounds)],
    }


def measure_hedgerow(options: argparse.Namespace) -> common.Record:
    X, y, X_test, _ = read_words(options)
    crf, trained = trees_common.fit_trees(X, y, **settings(options))
    n_letters = sum(len(word) for word in X_test)
    return {
        **trained,
        **throughput(lambda: crf.predict(X_test), n_letters),
        "single_word_milliseconds": single_word(lambda word: crf.predict([word]), X_test),
        "predicted": [word.tolist() for word in crf.predict(X_test)],
    }


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Parameters of TreeCRF; the others are at their defaults."""
    fixed = {"n_rounds": options.rounds, "max_depth": MAX_DEPTH, "n_jobs": options.jobs}
    return trees_common.OCR_SETTINGS | fixed | dict(options.settings)


def throughput(action: Callable[[], object], n_letters: int) -> common.Record:
    seconds = common.best_seconds(action, PASSES)
    return {"predict_seconds": seconds, "predict_letters_per_second": n_letters / seconds}


def single_word(tag: Callable[[Any], object], X: list[Any]) -> float:
    """Median over words, predicted one at a time, of the best time in milliseconds."""
    words = X[:N_SINGLE_WORDS]
    return 1e3 * statistics.median(common.best_seconds(lambda w=w: tag(w), PASSES) for w in words)


def read_options() -> argparse.Namespace:
    parser = common.side_parser(__doc__, SIDES)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    trees_common.add_settings(parser)
    options = parser.parse_args()
    if options.quick:
        options.rounds = QUICK_ROUNDS
    return options


def main() -> None:
    options = read_options()
    if options.side:
        measure = measure_xgboost if options.side == "xgboost" else measure_hedgerow
        common.write_side(options.folder, measure(options))
        return
    machine = common.machine_facts()

    def score(record: common.Record) -> common.Record:
        return {"error": common.error_rate(split_words()[3], record["predicted"])}

    sides = common.run_sides(options, score, SIDES)
    over = common.ratios(sides, RATIOS, "xgboost")
    common.print_json(
        {
            "task": "ocr letters, fold 0 held out, trees",
            "rounds": options.rounds,
            "trees": "one for each of 26 letters a round, on both sides",
            "max_depth": MAX_DEPTH,
            "settings": settings(options),
            "jobs": options.jobs,
            "repeat": options.repeat,
            "quick": options.quick,
            **sides,
            "xgboost_over_hedgerow": over,
            "train_speedup": over.get("train_seconds"),
            "predict_speedup": over.get("predict_seconds"),
            "single_word_speedup": over.get("single_word_milliseconds"),
            "machine": machine,
        }
    )


if __name__ == "__main__":
    main()
