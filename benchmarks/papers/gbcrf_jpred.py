"""JPred4: secondary structure of proteins, 3 and 8 states, on the blind set; cost of windows.

A residue has 44 numbers, 20 of its PSI-BLAST profile and 24 of its HMMER profile. TreeCRF looks at
a window of residues; XGBoost and the linear CRF get the same windows as lag features, NaN beyond
the ends (0, the mean, for the linear CRF, whose columns are standardised). One fold of the training
sequences is used for early stopping. The memory parts train for a few rounds with windows of
several widths.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
import numpy as np
import trees_common
from numpy.typing import NDArray

SIDES = ("trees", "xgboost", "linear")
STATES = ("3", "8")
MEMORY_SIDES = {"trees": "hedgerow.tree_crf", "xgboost": "xgboost"}
WINDOWS = (0, 3, 7, 15)
PARTS = (
    *(f"{side}-q{states}" for states in STATES for side in SIDES),
    *(f"{side}-memory-{window}" for window in WINDOWS for side in MEMORY_SIDES),
)
DEV_FOLD = 7
MEMORY_ROUNDS = 3
QUICK_SEQUENCES = 320
QUICK_ROUNDS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder that holds jpred4/")
    parser.add_argument("--rounds", type=int, default=500, help="most rounds")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--patience", type=int, default=30, help="rounds without a better loss")
    parser.add_argument("--window", type=int, default=7, help="residues on either side")
    parser.add_argument("--reg-lambda", type=float, default=1.0, help="of the linear CRF")
    parser.add_argument("--iterations", type=int, default=100, help="of L-BFGS, linear CRF")
    trees_common.add_settings(parser)


@dataclass(frozen=True, eq=False)
class Proteins:
    """N residues of some proteins."""

    rows: NDArray[np.float32]
    """(N, 44) profiles."""
    codes: NDArray[np.uint8]
    """(N,) states."""
    offsets: NDArray[np.int64]

    def windows(self, reach: int, outside: float) -> NDArray[np.float32]:
        """Rows of the residues from `reach` before to `reach` after, (N, 44 (2 reach + 1))."""
        n_rows, n_columns = self.rows.shape
        wide = np.full((n_rows, 2 * reach + 1, n_columns), outside, np.float32)
        lengths = np.diff(self.offsets)
        first, end = np.repeat(self.offsets[:-1], lengths), np.repeat(self.offsets[1:], lengths)
        for place in range(2 * reach + 1):
            source = np.arange(n_rows) + place - reach
            inside = (source >= first) & (source < end)
            wide[inside, place] = self.rows[source[inside]]
        return wide.reshape(n_rows, -1)

    def cut(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Split an array over all residues into one array per protein."""
        return np.split(rows, self.offsets[1:-1])


def read_proteins(options: argparse.Namespace, states: str) -> dict[str, Proteins]:
    """Proteins for training, early stopping (dev) and testing."""
    with np.load(options.data / "jpred4" / "jpred4.npz") as arrays:
        pssm, hmm = arrays["pssm"], arrays["hmm_e5"]
        rows = np.hstack([pssm.astype(np.float32), hmm.astype(np.float32) / np.float32(1e5)])
        codes, offsets = arrays[f"y{states}"], arrays["offsets"].astype(np.int64)
        fold, is_test = arrays["fold"], arrays["split"] == 1
    if options.quick:
        fold = np.where(np.arange(len(fold)) < QUICK_SEQUENCES, fold, 0)
    chosen = {
        "train": (fold > 0) & (fold != DEV_FOLD),
        "dev": fold == DEV_FOLD,
        "test": is_test,
    }
    lengths = np.diff(offsets)
    return {
        name: Proteins(
            rows[np.repeat(which, lengths)],
            codes[np.repeat(which, lengths)],
            np.concatenate([[0], np.cumsum(lengths[which])]),
        )
        for name, which in chosen.items()
    }


def tree_parameters(options: argparse.Namespace, window: int, **others: Any) -> dict[str, Any]:
    parameters = {
        "max_depth": options.depth,
        "learning_rate": options.learning_rate,
        "window": window,
        "n_jobs": options.jobs,
    }
    return parameters | others | dict(options.settings)


def measure_trees(
    data: dict[str, Proteins], options: argparse.Namespace
) -> tuple[common.Record, NDArray[Any]]:
    train, dev, test = (data[name] for name in ("train", "dev", "test"))
    crf, record = trees_common.fit_trees(
        train.cut(train.rows),
        train.cut(train.codes),
        (dev.cut(dev.rows), dev.cut(dev.codes)),
        **tree_parameters(
            options,
            options.window,
            n_rounds=options.rounds,
            early_stopping_rounds=options.patience,
        ),
    )
    record["dev_accuracy"] = crf.history_["eval_accuracy"][crf.n_rounds_ - 1]
    marginal = np.concatenate(crf.predict(test.cut(test.rows), decode="marginal"))
    record["accuracy_of_marginals"] = float(np.mean(marginal == test.codes))
    return record, np.concatenate(crf.predict(test.cut(test.rows)))


def measure_xgboost(
    data: dict[str, Proteins], options: argparse.Namespace
) -> tuple[common.Record, NDArray[Any]]:
    train, dev, test = (data[name] for name in ("train", "dev", "test"))
    wide_dev = dev.windows(options.window, np.nan)
    booster, record = trees_common.fit_xgboost(
        train.windows(options.window, np.nan),
        train.codes,
        (wide_dev, dev.codes),
        rounds=options.rounds,
        max_depth=options.depth,
        eta=options.learning_rate,
        patience=options.patience,
        jobs=options.jobs,
    )
    right = trees_common.predict_xgboost(booster, wide_dev) == dev.codes
    record["dev_accuracy"] = float(np.mean(right))
    return record, trees_common.predict_xgboost(booster, test.windows(options.window, np.nan))


def measure_linear(
    data: dict[str, Proteins], options: argparse.Namespace
) -> tuple[common.Record, NDArray[Any]]:
    from high_order_training import train as train_linear

    mean, deviation = data["train"].rows.mean(axis=0), data["train"].rows.std(axis=0)
    scaled = {
        name: Proteins((part.rows - mean) / deviation, part.codes, part.offsets)
        for name, part in data.items()
    }
    wide = {name: part.cut(part.windows(options.window, 0.0)) for name, part in scaled.items()}
    labels = {name: part.cut(part.codes) for name, part in scaled.items()}
    crf, record = train_linear(
        wide["train"],
        labels["train"],
        reg_lambda=options.reg_lambda,
        max_iter=QUICK_ROUNDS if options.quick else options.iterations,
        tol=0,
        n_jobs=options.jobs,
    )
    record["dev_accuracy"] = float(crf.score(wide["dev"], labels["dev"]))
    return record, np.concatenate(crf.predict(wide["test"]))


def measure_memory(side: str, window: int, options: argparse.Namespace) -> common.Record:
    """Memory from the rows to the trained model, including the windows that XGBoost needs."""
    train = read_proteins(options, "3")["train"]
    before = common.memory_before_training_mib(MEMORY_SIDES[side])
    if side == "trees":
        _, record = trees_common.fit_trees(
            train.cut(train.rows),
            train.cut(train.codes),
            **tree_parameters(options, window, n_rounds=MEMORY_ROUNDS),
        )
    else:
        _, record = trees_common.fit_xgboost(
            train.windows(window, np.nan),
            train.codes,
            rounds=MEMORY_ROUNDS,
            max_depth=options.depth,
            jobs=options.jobs,
        )
    return {
        "side": side,
        "window": window,
        "rows_mib": train.rows.nbytes / 2**20,
        "mib_above_rows": common.peak_memory_mib() - before,
        "seconds_per_round": record.get("seconds_per_round"),
        "train_seconds": record["train_seconds"],
    }


def measure(part: str, options: argparse.Namespace) -> common.Record:
    side, what, *rest = part.split("-")
    if what == "memory":
        return measure_memory(side, int(rest[0]), options)
    if options.quick:
        options.rounds = QUICK_ROUNDS
    states = what.removeprefix("q")
    data = read_proteins(options, states)
    action = {"trees": measure_trees, "xgboost": measure_xgboost, "linear": measure_linear}[side]
    record, predicted = action(data, options)
    accuracy = float(np.mean(predicted == data["test"].codes))
    common.log(f"{part}: {accuracy:.4f}, {record['train_seconds']:.1f} s")
    return {"side": side, "states": int(states), "accuracy": accuracy, **record}


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    records = [records[0] for records in runs.values()]
    return {
        "setting": "six folds of JPred4 to train on, one to stop by, accuracy on the blind set",
        "published": "Q3 82.0 of JPred4 itself on its blind set (neural networks, all seven folds)",
        "models": [record for record in records if "states" in record],
        "memory_setting": f"{MEMORY_ROUNDS} rounds, 3 states; MiB above what was in use when the "
        "rows of single residues had been read",
        "memory": [record for record in records if "states" not in record],
    }
