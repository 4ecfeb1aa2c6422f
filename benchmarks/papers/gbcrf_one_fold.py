"""OCR letters, trained on one fold and tested on the nine others, orders 1 to 5.

The protocol of Ye et al. (2009) with trees in place of linear scores. The parts are the orders.
"""

from __future__ import annotations

import argparse

import common
from gbcrf_table2 import (
    add_options,
    chosen_folds,
    measure_folds,
    summarise_folds,
    tree_trainer,
)

__all__ = ["PARTS", "add_options", "measure", "summarise"]

PARTS = ("1", "2", "3", "4", "5")
# There are few examples of each letter: small steps, and sampling.
SETTINGS = {"learning_rate": 0.1, "colsample_bytree": 0.15, "subsample": 0.8}
ROUNDS = (300, 100)  # for pairs only, and for longer patterns


def measure(part: str, options: argparse.Namespace) -> common.Record:
    order = int(part)
    fit = tree_trainer(options, order=order, n_rounds=ROUNDS[order > 1], **SETTINGS)
    return {
        "fits": measure_folds(f"order {part}", fit, chosen_folds(options), train_on_one=True),
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    return {
        "setting": "trained on one fold, tested on the nine others; means of errors and medians of "
        "seconds over folds",
        "orders": [
            {"order": int(part), **summarise_folds(records[0])} for part, records in runs.items()
        ],
    }
