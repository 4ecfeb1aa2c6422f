"""TreeCRF against LightGBM and XGBoost on data of several shapes, the same rows in one run.

    tree_learner.py [--data DIR] [--shapes NAME,...] [--sides NAME,...] [--threads 1,2,4,8,16]
                    [--rounds N] [--repeat N] [--set NAME=VALUE ...]

Prints a line of JSON for the machine, one for each shape, side and number of threads, and after the
sides of a shape one with ratios, which are above 1 where hedgerow is better. Each measurement runs
in its own process, and the sides alternate.

TreeCRF gets sequences and trains with its CRF (order 1); the peers get rows and do not use
neighbouring labels, so their test errors are only for orientation. All have the same depth, bins,
learning rate, penalty and minimum weight of a leaf; a depth of 6 allows one more leaf than LightGBM
has. For two labels the peers grow one tree per round, for more one per label.

Training is timed from arrays or dicts to the model, binning included, but building lag features for
the peers is not; from dicts they get a sparse matrix by scikit-learn's DictVectorizer, whose time
is in ``train_seconds``, and alone in ``encode_seconds``. Prediction is timed in the same way, from
test arrays or dicts to labels; TreeCRF's includes the search for the best labelling.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common
import numpy as np
import trees_common
from numpy.typing import NDArray
from spelled_windows import spell_out
from tree_shapes import SHAPES, Shape

MAX_DEPTH = 6
LEARNING_RATE = 0.3
PASSES = 20  # of a prediction, which may take only milliseconds
SETTINGS: dict[str, dict[str, Any]] = {
    "hedgerow": {"max_depth": MAX_DEPTH, "learning_rate": LEARNING_RATE, "random_state": 0},
    # A sum of second derivatives of 1 takes at least four rows; with this setting LightGBM can skip
    # columns with fewer. The penalty is the default of the others.
    "lightgbm": {
        "max_depth": MAX_DEPTH,
        "num_leaves": 2**MAX_DEPTH - 1,
        "learning_rate": LEARNING_RATE,
        "max_bin": 255,
        "min_sum_hessian_in_leaf": 1.0,
        "min_data_in_leaf": 4,
        "lambda_l2": 1.0,
    },
    "xgboost": {"max_depth": MAX_DEPTH, "eta": LEARNING_RATE, "max_bin": 255},
}
MODULES = {"hedgerow": "hedgerow.tree_crf", "lightgbm": "lightgbm", "xgboost": "xgboost"}
# Peer divided by hedgerow.
LESS_IS_BETTER = ("train_seconds", "train_cpu_seconds", "training_mib", "predict_seconds")


def measure(shape: Shape, options: argparse.Namespace) -> common.Record:
    """One side with one number of threads; `options` name one of each."""
    measure_side = measure_hedgerow if options.side == "hedgerow" else measure_peer
    record, predicted = measure_side(shape, options)
    wrong = predicted != np.concatenate(shape.y_test)
    n_positions = len(wrong)
    return {
        **record,
        "predict_positions_per_second": n_positions / record["predict_seconds"],
        "test_error": float(np.mean(wrong)),
    }


def measure_hedgerow(
    shape: Shape, options: argparse.Namespace
) -> tuple[common.Record, NDArray[Any]]:
    before = common.memory_before_training_mib(MODULES["hedgerow"])
    crf, record = trees_common.fit_trees(
        shape.X,
        shape.y,
        n_rounds=options.rounds,
        window=shape.window,
        n_jobs=options.threads[0],
        **own_settings(options),
    )
    seconds = common.best_seconds(lambda: crf.predict(shape.X_test), PASSES)
    record |= {"mib_before_training": before, "predict_seconds": seconds}
    return record, np.concatenate(crf.predict(shape.X_test))


def measure_peer(shape: Shape, options: argparse.Namespace) -> tuple[common.Record, NDArray[Any]]:
    """Lag features of dense windows are built before timing, the encoding of dicts is timed."""
    classes, codes = np.unique(np.concatenate(shape.y), return_inverse=True)
    encode, encode_test = encoders(shape)
    before = common.memory_before_training_mib(MODULES[options.side])
    with common.Stopwatch() as watch:
        rows = encode()
    fit, predict = {
        "lightgbm": (trees_common.fit_lightgbm, trees_common.predict_lightgbm),
        "xgboost": (trees_common.fit_xgboost, trees_common.predict_xgboost),
    }[options.side]
    booster, record = fit(
        rows, codes, rounds=options.rounds, jobs=options.threads[0], **own_settings(options)
    )
    record |= {
        "encode_seconds": watch.seconds,
        "train_seconds": record["train_seconds"] + watch.seconds,
        "train_cpu_seconds": record["train_cpu_seconds"] + watch.cpu_seconds,
        "mib_before_training": before,
        "training_mib": record["peak_mib_after_training"] - before,
        "predict_seconds": common.best_seconds(lambda: predict(booster, encode_test()), PASSES),
    }
    return record, classes[predict(booster, encode_test())]


def encoders(shape: Shape) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Functions that return the training and test rows; their time is measured."""
    if not isinstance(shape.X[0], list):
        rows, test_rows = (
            spell_out(shape.X, shape.X_test, shape.window)
            if shape.window
            else (np.concatenate(shape.X), np.concatenate(shape.X_test))
        )
        return lambda: rows, lambda: test_rows
    from sklearn.feature_extraction import DictVectorizer

    vectorizer = DictVectorizer(dtype=np.float32)
    items = [item for x in shape.X for item in x]
    test_items = [item for x in shape.X_test for item in x]
    return lambda: vectorizer.fit_transform(items), lambda: vectorizer.transform(test_items)


def own_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Parameters of a side that differ from its defaults."""
    others = dict(options.settings) if options.side == "hedgerow" else {}
    return SETTINGS[options.side] | others


def compare(records: dict[str, common.Record]) -> common.Record:
    """Ratios to each peer that was measured."""
    return {
        f"{peer}_over_hedgerow": common.ratios(records, LESS_IS_BETTER, peer)
        for peer in records
        if peer != "hedgerow"
    }


def run_shape(name: str, options: argparse.Namespace) -> None:
    """All sides with all numbers of threads, medians of alternating runs; printed at once."""
    rounds = options.rounds or SHAPES[name].rounds
    for threads in options.threads:
        runs: dict[str, list[common.Record]] = {side: [] for side in options.sides}
        given = ["--shapes", name, "--threads", str(threads), "--rounds", str(rounds)]
        for _ in range(options.repeat):
            for side, records in runs.items():
                records.append(common.run_side(side, *given))
        where = {"shape": name, "threads": threads, "rounds": rounds}
        medians = {side: common.median_record(records) for side, records in runs.items()}
        for side, record in medians.items():
            print_line({**where, "side": side, **record})
        if "hedgerow" in medians and len(medians) > 1:
            print_line({**where, **compare(medians)})


def print_line(record: common.Record) -> None:
    print(json.dumps(record), flush=True)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )

    def names(known: Any) -> Callable[[str], list[str]]:
        def read(text: str) -> list[str]:
            chosen = text.split(",")
            for name in chosen:
                if name not in known:
                    raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
            return chosen

        return read

    parser.add_argument("--shapes", type=names(SHAPES), default=list(SHAPES), help="all by default")
    parser.add_argument("--sides", type=names(MODULES), default=list(MODULES))
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--rounds", type=int, help="200 for letters, 15 for jpred, else 10")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each; medians are given")
    parser.add_argument("--data", type=Path, help="folder that holds jpred4, dna_genes, conll2003")
    parser.add_argument("--side", choices=MODULES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    trees_common.add_settings(parser)
    options = parser.parse_args()
    options.threads = options.threads or [trees_common.count_threads(None)]
    need = [name for name in options.shapes if SHAPES[name].needs_data]
    if options.data is None and need:
        parser.error(f"{', '.join(need)}: needs --data DIR, or choose others with --shapes")
    return options


def main() -> None:
    options = read_options()
    if options.side:
        shape = SHAPES[options.shapes[0]].read(options)
        common.write_side(options.folder, {**shape.size, **measure(shape, options)})
        return
    settings = SETTINGS | {"hedgerow": SETTINGS["hedgerow"] | dict(options.settings)}
    print_line({"machine": common.machine_facts(), "repeat": options.repeat, "settings": settings})
    for name in options.shapes:
        run_shape(name, options)


if __name__ == "__main__":
    main()
