"""Weights of label patterns: how strongly to hold them back, and how to move them.

    pattern_weights.py [--data DIR] [--tasks NAME ...] [--settings NAME ...] [--orders 1 2 3 5]
                       [--linear] [--jobs N]

Trains on each task with each setting and prints one JSON document: accuracy on the test data by
marginals and by Viterbi, mean log-likelihood of the test labels by their own marginals, calibration
error (15 bins), training loss and seconds. Trees: 60 rounds at a rate of 0.3, half of the sequences
a round. The letters come with hedgerow; all other tasks are read from DIR.
"""

from __future__ import annotations

import argparse
import gzip
import time
import warnings
from pathlib import Path
from typing import Any

import common
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from hedgerow import LinearCRF, TreeCRF
from hedgerow.datasets import load_ocr

ROUNDS = {"n_rounds": 60, "learning_rate": 0.3, "subsample": 0.5, "random_state": 0}
SETTINGS: dict[type, dict[str, dict[str, Any]]] = {
    TreeCRF: {
        "bound, no penalty": {"pattern_lambda": None},
        "exact, no penalty": {"pattern_lambda": None, "transition_step": "exact"},
        "exact": {"transition_step": "exact"},
        "default": {},
    },
    LinearCRF: {"default": {}, "auto": {"pattern_lambda": "auto"}},
}
N_BINS = 15

# Training sequences and labels, test sequences and labels, and how far a window reaches.
Task = tuple[list[Any], list[Any], list[Any], list[Any], int]


def letters(*, one_fold: bool) -> Task:
    X, y, fold = load_ocr()
    train = (fold == 0) == one_fold
    test = np.flatnonzero(~train)[:: 3 if one_fold else 1]
    return *pick(X, y, np.flatnonzero(train)), *pick(X, y, test), 0


def pick(X: Any, y: Any, numbers: NDArray[np.intp]) -> tuple[list[Any], list[Any]]:
    return [X[i] for i in numbers], [list(y[i]) for i in numbers]


def one_hot(texts: list[str]) -> list[NDArray[np.float64]]:
    alphabet = {letter: i for i, letter in enumerate(sorted(set("".join(texts))))}
    return [np.eye(len(alphabet))[[alphabet[letter] for letter in text]] for text in texts]


def read_table(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines]


def nettalk(folder: Path, *, column: int, window: int) -> Task:
    """A thousand words to train on, eight thousand to test on."""
    table = read_table(folder / "nettalk" / "nettalk.tsv.gz")
    table = [row for row in table if len(row[0]) == len(row[1]) == len(row[2])]
    rows = [table[i] for i in np.random.default_rng(0).permutation(len(table))[:9000]]
    X, y = one_hot([row[0] for row in rows]), [list(row[column]) for row in rows]
    return X[:1000], y[:1000], X[1000:], y[1000:], window


def protein(folder: Path) -> Task:
    train, test = (read_table(folder / "protein_qs" / f"{n}.tsv.gz") for n in ("train", "test"))
    X, y = one_hot([row[0] for row in train + test]), [list(row[1]) for row in train + test]
    n = len(train)
    return X[:n], y[:n], X[n:], y[n:], 5


def structure(folder: Path, *, labels: str) -> Task:
    """Three hundred proteins of JPred4 to train on, its blind set to test on."""
    with np.load(folder / "jpred4" / "jpred4.npz") as file:
        rows = np.hstack([file["pssm"].astype(np.float32), file["hmm_e5"] / np.float32(1e5)])
        bounds, codes, blind = file["offsets"][1:-1], file[labels], file["split"] == 1
    X, y = np.split(rows, bounds), np.split(codes, bounds)
    train = np.random.default_rng(0).permutation(np.flatnonzero(~blind))[:300]
    return *pick(X, y, train), *pick(X, y, np.flatnonzero(blind)), 5


def chunks(folder: Path) -> Task:
    """A thousand sentences to train on, as many to test on."""
    parts = []
    for name in ("train", "test"):
        sentences = common.read_conll(folder / "conll2000" / f"{name}.txt.gz")[:1000]
        X = [
            [{"w=" + w.lower(): 1, "p=" + tag: 1, "s=" + w[-3:]: 1} for w, tag, _ in sentence]
            for sentence in sentences
        ]
        parts += [X, [[label for _, _, label in sentence] for sentence in sentences]]
    return parts[0], parts[1], parts[2], parts[3], 2


def hyphenation(folder: Path) -> Task:
    """Where words may be divided, from binary features."""
    parts: list[Any] = []
    for path in ("train", "test"):
        (file,) = (folder / "treecrf_sparse").glob(f"*hyph*{path}*")
        rows = read_table(file)
        n_features = int(rows[0][0].split()[2])
        numbers = np.array([row[0].split() for row in rows[1:] if row[0]], np.int64)
        X = np.zeros((len(numbers), n_features))
        np.put_along_axis(X, numbers[:, 3:-1], 1, axis=1)
        bounds = np.flatnonzero(np.diff(numbers[:, 0])) + 1
        parts += [np.split(X, bounds), np.split(numbers[:, -1], bounds)]
    return parts[0], parts[1], parts[2], parts[3], 0


TASKS: dict[str, Any] = {
    "letters": lambda folder: letters(one_fold=False),
    "letters, one fold": lambda folder: letters(one_fold=True),
    "phonemes": lambda folder: nettalk(folder, column=1, window=3),
    "stress": lambda folder: nettalk(folder, column=2, window=6),
    "hyphenation": hyphenation,
    "protein": protein,
    "structure, 3 states": lambda folder: structure(folder, labels="y3"),
    "structure, 8 states": lambda folder: structure(folder, labels="y8"),
    "chunks": chunks,
}


def spread_windows(X: list[Any], reach: int) -> list[Any]:
    """What a linear model sees of neighbours: their columns beside its own."""
    if reach == 0 or isinstance(X[0], list):
        return X
    padded = [np.pad(rows, ((reach, reach), (0, 0))) for rows in X]
    offsets = range(2 * reach + 1)
    return [
        np.hstack([wide[at : at + len(rows)] for at in offsets])
        for rows, wide in zip(X, padded, strict=True)
    ]


def measure(kind: type, task: Task, order: int, jobs: int | None, **more: Any) -> common.Record:
    X, y, X_test, y_test, window = task
    known = set().union(*map(set, y))
    kept = [i for i, labels in enumerate(y_test) if known.issuperset(labels)]
    X_test, y_test = [X_test[i] for i in kept], [y_test[i] for i in kept]
    if kind is TreeCRF:
        crf = TreeCRF(order=order, window=window, n_jobs=jobs, **ROUNDS, **more)
    else:
        X, X_test = spread_windows(X, window), spread_windows(X_test, window)
        crf = LinearCRF(order=order, n_jobs=jobs, max_iter=200, tol=1e-4, **more)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        crf.fit(X, y)
    seconds = time.perf_counter() - begin
    truth = np.concatenate(y_test)
    marginals = crf.predict_proba(X_test)
    found = crf.classes_[marginals.argmax(axis=1)]
    own = marginals[np.arange(len(truth)), np.searchsorted(crf.classes_, truth)]
    return {
        "marginals": round(100 * float(np.mean(found == truth)), 2),
        "viterbi": round(
            100 * float(np.mean(np.concatenate(crf.predict(X_test, decode="viterbi")) == truth)), 2
        ),
        "log_likelihood": round(float(np.log(own.clip(1e-300)).mean()), 4),
        "calibration_error": round(calibration_error(marginals.max(axis=1), found == truth), 4),
        "training_loss": round(crf.loss_, 4),
        "seconds": round(seconds, 2),
    }


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(bins, confidence, N_BINS) - np.bincount(bins, right, N_BINS)
    return float(np.abs(gaps).sum() / len(right))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="NAME")
    parser.add_argument("--settings", nargs="+", metavar="NAME", help="all unless given")
    parser.add_argument("--orders", nargs="+", type=int, default=[1, 2, 3, 5])
    parser.add_argument("--linear", action="store_true", help="LinearCRF in place of TreeCRF")
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    kind = LinearCRF if options.linear else TreeCRF
    rows = []
    for name in options.tasks:
        if options.data is None and not name.startswith("letters"):
            parser.error(f"the task {name} needs --data")
        task = TASKS[name](options.data)
        for order in options.orders:
            for setting in options.settings or SETTINGS[kind]:
                more = SETTINGS[kind][setting]
                record = measure(kind, task, order, options.jobs, **more)
                rows.append({"task": name, "order": order, "setting": setting, **record})
                common.log(str(rows[-1]))
    common.print_json({"machine": common.machine_facts(), "rows": rows})


if __name__ == "__main__":
    main()
