"""Errors and losses of training on a GPU and on the CPU, which should differ by noise only.

    gpu_errors.py --data DIR [--cases letters,gesture,jpred] [--devices cpu,cuda] [--jobs N]

Letters: each of ten folds is held out in turn. Gesture phases: each of seven recordings. JPred4:
the test set. Prints a line of JSON for each case and device, with the error and the loss per label
of every fold, and the seconds of all training runs; with both devices also their differences.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import numpy as np
from gpu import Rows, from_lists
from gpu import jpred as read_jpred

Folds = Iterator[tuple[Rows, Rows]]


def letters(options: argparse.Namespace) -> Folds:
    from ocr_linear import split_words

    for held in range(10):
        X, y, X_test, y_test = split_words(held)
        yield from_lists(X, y), from_lists(X_test, y_test)


def gesture(options: argparse.Namespace) -> Folds:
    data = np.load(options.data / "gesture_phase" / "gesture_phase.npz")
    X, y, offsets = np.hstack([data["pos"], data["vel"]]), data["y"], data["offsets"]
    lengths = np.diff(offsets)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    for held in range(len(lengths)):
        is_test, others = owners == held, np.delete(lengths, held)
        yield Rows(X[~is_test], y[~is_test], others), Rows(X[is_test], y[is_test], lengths[[held]])


def jpred(options: argparse.Namespace) -> Folds:
    yield read_jpred(options)


CASES: dict[str, tuple[Callable[[argparse.Namespace], Folds], dict[str, Any]]] = {
    "letters": (letters, {"n_rounds": 200, "decode": "viterbi"}),
    "gesture": (gesture, {"n_rounds": 100, "window": 5}),
    "jpred": (jpred, {"n_rounds": 150, "window": 7}),
}


def measure(name: str, device: str, options: argparse.Namespace) -> dict[str, Any]:
    from hedgerow import TreeCRF

    read, parameters = CASES[name]
    errors, losses, seconds = [], [], 0.0
    for train, test in read(options):
        crf = TreeCRF(**parameters, random_state=0, device=device, n_jobs=options.jobs)
        begin = time.perf_counter()
        crf.fit(train.X, train.codes, groups=train.groups)
        seconds += time.perf_counter() - begin
        wrong = crf.predict(test.X, groups=test.groups) != test.codes
        errors.append(float(np.mean(wrong)))
        losses.append(crf.loss_)
    found = {"case": name, "device": device, "mean_error": float(np.mean(errors))}
    return {**found, "seconds": seconds, "errors": errors, "losses": losses}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--devices", default="cpu,cuda")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    for name in options.cases.split(","):
        found = [measure(name, device, options) for device in options.devices.split(",")]
        for record in found:
            print(json.dumps(record), flush=True)
        if len(found) == 2:
            loss, error = (
                np.max(np.abs(np.subtract(found[0][key], found[1][key])))
                for key in ("losses", "errors")
            )
            print(json.dumps({"case": name, "largest_gaps": {"loss": loss, "error": error}}))


if __name__ == "__main__":
    main()
