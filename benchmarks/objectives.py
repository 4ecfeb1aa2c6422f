"""Objectives: the effect of softmax margin, F1 and others on test data.

    objectives.py --data DIR [--tasks letters chunks gestures rare] [--models trees linear]
                  [--folds N] [--sentences N] [--rounds N] [--iterations N] [--reg-lambda R]
                  [--only NAME ...] [--jobs N]

Letters: trained on nine folds, tested on the tenth, for N folds. Chunks: N sentences of CoNLL-2000
to train on, tested on its test set, or as many sentences of it. Gestures: each of the seven
recordings, or of the first N, is left out once, and cut into pieces of 50 positions to be tested.
Rare: synthetic sequences with a label that is rare and never certain.

Prints one JSON document: for each task, model and objective the accuracy, the macro F1 of labels,
the F1 of chunks if labels are chunks, and the decoder. "gain" is the gain over the likelihood, in
points, with the p-value of a paired bootstrap by sequences; "sequences_p" is McNemar's test of the
number of sequences without an error.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tasks import known_only, pick, spread_windows

from hedgerow import LinearCRF, TreeCRF
from hedgerow.datasets import load_ocr
from hedgerow.stats import bootstrap, mcnemar

PIECE = 50
N_RESAMPLES = 1000
OBJECTIVES: dict[str, dict[str, Any]] = {
    "likelihood": {},
    "likelihood, balanced": {"class_weight": "balanced"},
    "softmax margin 0.3": {"objective": "softmax_margin", "label_costs": 0.3},
    "softmax margin 1": {"objective": "softmax_margin", "label_costs": 1.0},
    "softmax margin 3": {"objective": "softmax_margin", "label_costs": 3.0},
    "softmax margin, balanced": {"objective": "softmax_margin", "label_costs": "balanced"},
    "F1": {"objective": "f1"},
    "F1, micro": {"objective": "f1", "f1_average": "micro"},
    "accuracy": {"objective": "accuracy"},
    "expected accuracy": {"objective": "expected_accuracy"},
    "max margin": {"objective": "max_margin"},
}
# Training sequences and labels, test sequences and labels.
Split = tuple[list[Any], list[Any], list[Any], list[Any]]
Labellings = list[list[Any]]


def letters(options: argparse.Namespace) -> Iterator[Split]:
    X, y, fold = load_ocr()
    for number in range(options.folds):
        train, test = (np.flatnonzero((fold == number) == side) for side in (False, True))
        yield *pick(X, y, train), *pick(X, y, test)


def chunks(options: argparse.Namespace) -> Iterator[Split]:
    parts: list[Any] = []
    for name in ("train", "test"):
        sentences = common.read_conll(options.data / "conll2000" / f"{name}.txt.gz")
        sentences = sentences[: options.sentences]
        parts += [list(map(describe_words, sentences))]
        parts += [[[token[-1] for token in sentence] for sentence in sentences]]
    yield parts[0], parts[1], *known_only(parts[1], parts[2], parts[3])


def describe_words(sentence: list[list[str]]) -> list[list[str]]:
    """Names of attributes: words and tags around each position, and pairs of them."""
    padded = [("", "")] * 2 + [(word, tag) for word, tag, _ in sentence] + [("", "")] * 2
    found = []
    for at in range(len(sentence)):
        words, tags = zip(*padded[at : at + 5], strict=True)
        names = [f"w{place}={word}" for place, word in enumerate(words)]
        names += [f"p{place}={tag}" for place, tag in enumerate(tags)]
        names += [f"pp{place}={tags[place]}|{tags[place + 1]}" for place in range(4)]
        found.append(names)
    return found


def gestures(options: argparse.Namespace) -> Iterator[Split]:
    with np.load(options.data / "gesture_phase" / "gesture_phase.npz") as file:
        rows, bounds, codes = file["vel"], file["offsets"][1:-1], file["y"]
    X, y = np.split(rows, bounds), np.split(codes, bounds)
    for number in range(min(options.folds, len(X))):
        others = np.array([i for i in range(len(X)) if i != number])
        yield *pick(X, y, others), [X[number]], [list(y[number])]


def rare(options: argparse.Namespace) -> Iterator[Split]:
    X, y = draw_rare(0)
    yield X, y, *draw_rare(1)


def draw_rare(seed: int, n_sequences: int = 300, length: int = 20) -> tuple[list[Any], Labellings]:
    """Sequences in which a tenth of the labels are 1, and never certain given the input."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n_sequences, length, 3)), np.zeros((n_sequences, length), int)
    drawn = rng.random((n_sequences, length))
    for t in range(length):
        before = y[:, t - 1] if t > 0 else 0
        y[:, t] = drawn[:, t] < 1 / (1 + np.exp(3 - before - 1.5 * X[:, t, 0]))
    return list(X), y.tolist()


TASKS = {"letters": letters, "chunks": chunks, "gestures": gestures, "rare": rare}
# Size of the window.
WINDOWS = {"letters": 0, "chunks": 0, "gestures": 3, "rare": 0}


def make(model: str, name: str, y: Labellings, window: int, options: argparse.Namespace) -> Any:
    """The estimator for an objective."""
    parameters: dict[str, Any] = {"n_jobs": options.jobs, "random_state": 0, **OBJECTIVES[name]}
    if parameters.get("label_costs") == "balanced":
        counts = Counter(label for labels in y for label in labels)
        mean = sum(counts.values()) / len(counts)
        parameters["label_costs"] = {label: mean / count for label, count in counts.items()}
    if model == "linear":
        return LinearCRF(max_iter=options.iterations, reg_lambda=options.reg_lambda, **parameters)
    return TreeCRF(n_rounds=options.rounds, max_depth=6, window=window, **parameters)


def predict(
    model: str, name: str, splits: list[Split], window: int, options: argparse.Namespace
) -> tuple[Labellings, list[str], float]:
    """Labels of the test sequences of all splits, the decoders, and seconds of training."""
    found: Labellings = []
    decoders, seconds = set(), 0.0
    for X, y, X_test, _ in splits:
        crf = make(model, name, y, window, options)
        if model == "linear":
            X, X_test = spread_windows(X, window), spread_windows(X_test, window)
        with warnings.catch_warnings(), common.Stopwatch() as watch:
            warnings.simplefilter("ignore", ConvergenceWarning)
            crf.fit(X, y)
        seconds += watch.seconds
        decoders.add(crf.decode_)
        found += [labels.tolist() for labels in crf.predict(X_test)]
    return found, sorted(decoders), seconds


def cut(labellings: Labellings, size: int) -> Labellings:
    """Pieces of this many positions."""
    return [
        labels[begin : begin + size]
        for labels in labellings
        for begin in range(0, len(labels), size)
    ]


def compare(truth: Labellings, found: Labellings, base: Labellings, metric: str) -> common.Record:
    """A score in percent, and the gain over another model."""
    score = bootstrap(metric, truth, found, n_resamples=2, random_state=0).value
    gain = bootstrap(metric, truth, found, base, n_resamples=N_RESAMPLES, random_state=0)
    assert gain.p_value is not None
    return {
        "score": round(100 * score, 2),
        "gain": round(100 * gain.value, 2),
        "error": round(100 * gain.standard_error, 2),
        "p": round(gain.p_value, 4),
    }


def are_right(truth: Labellings, found: Labellings) -> list[bool]:
    return [list(a) == list(b) for a, b in zip(truth, found, strict=True)]


def measure(task: str, model: str, options: argparse.Namespace) -> list[common.Record]:
    """A row for each objective."""
    splits = list(TASKS[task](options))
    truth = [list(labels) for *_, y_test in splits for labels in y_test]
    size = PIECE if task == "gestures" else max(map(len, truth))
    truth, rows, base = cut(truth, size), [], None
    metrics = ["accuracy", "f1_macro"] + ["chunk_f1"] * (task == "chunks")
    for name in ["likelihood", *(each for each in options.only if each != "likelihood")]:
        if name == "max margin" and model != "linear":
            continue
        found, decoders, seconds = predict(model, name, splits, WINDOWS[task], options)
        found = cut(found, size)
        base = found if base is None else base
        right, right_before = are_right(truth, found), are_right(truth, base)
        row: common.Record = {
            "task": task,
            "model": model,
            "objective": name,
            **{metric: compare(truth, found, base, metric) for metric in metrics},
            "sequences": round(100 * float(np.mean(right)), 2),
            "sequences_p": round(mcnemar(right, right_before).p_value, 4),
            "decoders": decoders,
            "seconds": round(seconds, 1),
        }
        common.log(str(row))
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--models", nargs="+", choices=("trees", "linear"), default=["trees"])
    parser.add_argument("--only", nargs="+", choices=OBJECTIVES, default=list(OBJECTIVES))
    parser.add_argument("--folds", type=int, default=10, help="letters and gestures")
    parser.add_argument("--sentences", type=int, help="of CoNLL-2000; all unless given")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--reg-lambda", type=float, default=1.0, help="of linear models")
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    rows = [
        row
        for task in options.tasks
        for model in options.models
        for row in measure(task, model, options)
    ]
    common.print_json({"machine": common.machine_facts(), "rows": rows})


if __name__ == "__main__":
    main()
