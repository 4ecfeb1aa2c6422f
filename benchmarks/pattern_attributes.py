"""Attributes on label patterns of any length, on label pairs, and on labels only.

    pattern_attributes.py --data DIR [--tasks chunks phonemes] [--orders 1 2] [--models NAME ...]
                          [--sequences N] [--iterations N]

Each line has a task, an order and a model; accuracy in % and, for chunks, F1, by Viterbi; mean
log-likelihood per position; seconds of training, number of weights. Chunks: CoNLL-2000 with CRF++'s
template, within BIO; the attributes on patterns are the shape of the word and its tag. Phonemes: a
thousand words of NETtalk to train on, eight thousand to test on, letters three to the left and
right; the attributes on patterns are the letter, and the letter with each neighbour. In the model
"labels" these have weights on labels instead.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import common
import numpy as np
from peers.chunking import read_sequences
from sklearn.exceptions import ConvergenceWarning
from tasks import read_table

from hedgerow import LinearCRF
from hedgerow.metrics import chunk_scores, flat_accuracy_score

PREFIX = "Z:"
MODELS: dict[str, dict[str, Any]] = {
    "labels": {},
    "pairs": {"transition_attributes": PREFIX},
    "patterns": {"pattern_attributes": PREFIX},
}
Data = tuple[list[Any], list[list[str]], list[Any], list[list[str]]]


def shape_of(word: str) -> str:
    """Such as Xx-d: runs of capitals, small letters and digits."""
    kinds = [
        "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word
    ]
    return "".join(kind for at, kind in enumerate(kinds) if kinds[at - 1 : at] != [kind])


def chunks(folder: Path) -> Data:
    parts: list[Any] = []
    for name in ("train", "test"):
        path = folder / "conll2000" / f"{name}.txt.gz"
        X, y = read_sequences(path)
        for positions, sentence in zip(X, common.read_conll(path), strict=True):
            for attributes, (word, tag, _) in zip(positions, sentence, strict=True):
                attributes += [f"{PREFIX}shape={shape_of(word)}", f"{PREFIX}tag={tag}"]
        parts += [X, y]
    return parts[0], parts[1], parts[2], parts[3]


def phonemes(folder: Path) -> Data:
    table = read_table(folder / "nettalk" / "nettalk.tsv.gz")
    table = [row for row in table if len(row[0]) == len(row[1]) == len(row[2])]
    rows = [table[i] for i in np.random.default_rng(0).permutation(len(table))[:9000]]
    X, y = [letters_of(row[0]) for row in rows], [list(row[1]) for row in rows]
    known = {label for labels in y[:1000] for label in labels}
    test = [i for i in range(1000, len(y)) if known.issuperset(y[i])]
    return X[:1000], y[:1000], [X[i] for i in test], [y[i] for i in test]


def letters_of(word: str) -> list[list[str]]:
    padded = f"___{word}___"
    found = []
    for t in range(3, len(word) + 3):
        around = [f"{n - 3:+d}={padded[t + n - 3]}" for n in range(7)]
        pairs = [f"{PREFIX}{padded[t - 1 : t + 1]}-", f"{PREFIX}-{padded[t : t + 2]}"]
        found.append([*around, f"{PREFIX}{padded[t]}", *pairs])
    return found


TASKS = {"chunks": (chunks, {"constraints": "BIO"}), "phonemes": (phonemes, {})}


def measure(crf: LinearCRF, data: Data, *, of_chunks: bool) -> dict[str, Any]:
    X, y, X_test, y_test = data
    begin = time.perf_counter()
    crf.fit(X, y)
    seconds = time.perf_counter() - begin
    predicted = crf.predict(X_test, decode="viterbi")
    n_positions = sum(map(len, y_test))
    found = {"accuracy": round(100 * flat_accuracy_score(y_test, predicted), 2)}
    if of_chunks:
        found["f1"] = round(100 * chunk_scores(y_test, predicted).f1, 2)
    return found | {
        "log_likelihood": round(crf.log_likelihood(X_test, y_test).sum() / n_positions, 4),
        "seconds": round(seconds, 1),
        "n_weights": crf.n_weights_,
        "n_arcs": int(np.prod(crf.model_.trellis.arc_shape)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--orders", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--sequences", type=int, default=None, help="how many to train on")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--reg-lambda", type=float, default=2.0)
    parser.add_argument("--jobs", type=int, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for task in options.tasks:
        load, more = TASKS[task]
        X, y, X_test, y_test = load(options.data)
        X, y = X[: options.sequences], y[: options.sequences]
        for order in options.orders:
            for model in options.models:
                crf = LinearCRF(
                    order=order,
                    reg_lambda=options.reg_lambda,
                    max_iter=options.iterations,
                    n_jobs=options.jobs,
                    **MODELS[model],
                    **more,
                )
                row = {"task": task, "order": order, "model": model}
                row |= measure(crf, (X, y, X_test, y_test), of_chunks=task == "chunks")
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
