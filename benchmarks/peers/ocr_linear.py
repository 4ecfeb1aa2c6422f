"""OCR letters, fold 0 held out: LinearCRF on pixel arrays against CRFsuite on pixel names.

A pixel that is 0 adds nothing to a linear score, so CRFsuite's items name the set pixels only.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common


def split_words(held: int = 0) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """X and y of nine folds, then of the one held out.

    X are arrays (n_letters, 128), y arrays of letters.
    """
    from hedgerow.datasets import load_ocr

    X, y, fold = load_ocr()
    test = [i for i, f in enumerate(fold) if f == held]
    train = [i for i, f in enumerate(fold) if f != held]
    return [X[i] for i in train], [y[i] for i in train], [X[i] for i in test], [y[i] for i in test]


def pixel_names(X: list[Any]) -> list[list[list[str]]]:
    """Names of the set pixels of each letter, words as lists of letters."""
    return [[[f"p{pixel}" for pixel in row.nonzero()[0]] for row in word] for word in X]


def side_record(options: argparse.Namespace) -> common.Record:
    X, y, X_test, _ = split_words()
    if options.side == "crfsuite":
        labels = [[str(label) for label in word] for word in y]
        trained, tag = common.train_crfsuite(
            pixel_names(X), labels, options.iterations, options.folder
        )
        return {**trained, **common.tag_record(tag, pixel_names(X_test))}
    trained, tag = common.train_hedgerow(X, y, options.iterations, options.jobs)
    return {**trained, **common.tag_record(tag, X_test)}


def main() -> None:
    parser = common.side_parser(__doc__)
    parser.add_argument("--iterations", type=int, default=200)
    options = parser.parse_args()
    if options.side:
        common.write_side(options.folder, side_record(options))
        return
    machine = common.machine_facts()

    def score(record: common.Record) -> common.Record:
        return {"error": common.error_rate(split_words()[3], record["predicted"])}

    sides = common.run_sides(options, score)
    names = ("train_seconds", "train_cpu_seconds", "tag_seconds")
    common.print_json(
        {
            "task": "ocr letters, fold 0 held out",
            "iterations": options.iterations,
            "jobs": options.jobs,
            "repeat": options.repeat,
            **sides,
            "crfsuite_over_hedgerow": common.ratios(sides, names),
            "machine": machine,
        }
    )


if __name__ == "__main__":
    main()
