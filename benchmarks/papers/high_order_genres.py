"""Figure 3: trained on one genre, tested on another, with and without high-order patterns.

The paper's data, named entities in four genres, are not free. Instead, we use the parts of speech
of the English Web Treebank, whose documents have five genres: all 20 pairs of a genre for training
and another for testing. Attributes are those of the paper: the word, its neighbours, and the case
of all three. "Attributes on patterns" has weights for the case together with each label pattern
too. The sign test assumes that the pairs are independent, which they are not: each genre is in
eight of them.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import common
from experiments import run_trainings
from high_order_training import train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASE = "Z:"  # prefix of the names of attributes on label patterns
MODELS: dict[str, dict[str, Any]] = {
    "order 1": {"order": 1},
    "order 2": {"order": 2},
    "order 1, attributes on patterns": {"order": 1, "pattern_attributes": CASE},
    "order 2, attributes on patterns": {"order": 2, "pattern_attributes": CASE},
}
BASELINE = "order 1"
AROUND = (-1, 0, 1)
PARTS = tuple(MODELS)
REPEATS = 1
REG_LAMBDA = 1.0  # sigma_reg = 1 in the paper
GENRES = ("answers", "email", "newsgroup", "reviews", "weblog")
ITERATIONS = 100
QUICK_ITERATIONS = 3
QUICK_SENTENCES = 100

Sentences = list[list[tuple[str, str]]]


def read_genres(folder: Path) -> dict[str, Sentences]:
    """Sentences of (word, part of speech) by genre; the treebank's own split does not matter."""
    found = defaultdict(list)
    for name in ("train", "dev", "test"):
        path = folder / "ud_english_ewt" / f"en_ewt-ud-{name}.conllu.gz"
        with gzip.open(path, "rt", encoding="utf8") as file:
            for block in file.read().split("\n\n"):
                lines = block.splitlines()
                names = [line for line in lines if line.startswith("# sent_id = ")]
                rows = [line.split("\t") for line in lines if line[:1].isdigit()]
                words = [(row[1], row[3]) for row in rows if row[0].isdigit()]
                if words:
                    genre = names[0].removeprefix("# sent_id = ").split("-")[0]
                    found[genre].append(words)
    return {genre: found[genre] for genre in GENRES}


def case_of(word: str) -> str:
    """Capitalisation of a word."""
    if word.islower():
        return "lower"
    if word.isupper():
        return "upper" if len(word) > 1 else "capital"
    if word[:1].isupper() and word[1:].islower():
        return "title"
    return "mixed" if any(map(str.isalpha, word)) else "none"


def attributes_of(words: list[str]) -> list[list[str]]:
    """The words at t - 1, t and t + 1, and their case."""
    padded = ["", *words, ""]
    own = [(word.lower(), case_of(word)) for word in padded]
    return [
        [f"{o}={own[t + o][0]}" for o in AROUND] + [f"{CASE}{o}={own[t + o][1]}" for o in AROUND]
        for t in range(1, len(words) + 1)
    ]


def split(sentences: Sentences) -> tuple[list[Any], list[list[str]]]:
    """X and y."""
    X = [attributes_of([word for word, _ in sentence]) for sentence in sentences]
    return X, [[tag for _, tag in sentence] for sentence in sentences]


def train_genre(
    genres: dict[str, Sentences], genre: str, parameters: dict[str, Any]
) -> common.Record:
    """Train on one genre; returns the accuracy on each of the others."""
    crf, record = train(*split(genres[genre]), reg_lambda=REG_LAMBDA, tol=0, **parameters)
    accuracies = {}
    for other in genres:
        if other != genre:
            X, y = split(genres[other])
            accuracies[other] = 1 - common.error_rate(y, crf.predict(X, decode="viterbi"))
    return {"genre": genre, "accuracy": accuracies, **record}


def measure(part: str, options: argparse.Namespace) -> common.Record:
    genres = read_genres(options.data)
    # There are few genres, so the cores are divided among them.
    n_threads = max((options.jobs or os.cpu_count() or 1) // len(genres), 1)
    parameters = MODELS[part] | {"max_iter": ITERATIONS, "n_jobs": n_threads}
    if options.quick:
        genres = {genre: sentences[:QUICK_SENTENCES] for genre, sentences in genres.items()}
        parameters |= {"max_iter": QUICK_ITERATIONS}
    cases = [(genres, genre, parameters) for genre in genres]
    return {"trainings": run_trainings(train_genre, cases, options.jobs)}


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    models = {part: summarise_model(records[0]["trainings"]) for part, records in runs.items()}
    if BASELINE in models:
        for model in models.values():
            model["over_order_1"] = compare(model["accuracy"], models[BASELINE]["accuracy"])
    return {
        "setting": __doc__,
        "published": "order 2 better than order 1 for 10 of 12 pairs, by 0.62 points of F1 on "
        "average",
        "models": models,
    }


def summarise_model(trainings: list[common.Record]) -> common.Record:
    accuracies = pairs_of(trainings)
    figures = ("train_seconds", "train_cpu_seconds", "iterations", "n_weights", "loss")
    return {
        "mean_accuracy": statistics.mean(accuracies.values()),
        **{name: [one[name] for one in trainings] for name in figures},
        "accuracy": accuracies,
    }


def pairs_of(trainings: list[common.Record]) -> dict[str, float]:
    """Accuracy by "genre of training to genre of test"."""
    return {
        f"{one['genre']} to {other}": accuracy
        for one in trainings
        for other, accuracy in one["accuracy"].items()
    }


def compare(accuracies: dict[str, float], others: dict[str, float]) -> common.Record:
    """Mean change, and a sign test."""
    from scipy.stats import binomtest

    changes = [accuracy - others[pair] for pair, accuracy in accuracies.items()]
    n_up, n_down = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    return {
        "mean_change": statistics.mean(changes),
        "n_better": n_up,
        "n_worse": n_down,
        "p_value": float(binomtest(n_up, n_up + n_down).pvalue) if n_up + n_down else 1.0,
    }


def draw(summary: common.Record) -> Figure:
    """Draw the gain of each model over the first, for each pair of genres."""
    from matplotlib import pyplot as plt

    (first, record), *others = summary["models"].items()
    base = record["accuracy"]
    pairs = sorted(base, key=base.__getitem__)
    figure, panel = plt.subplots(figsize=(9, 5), layout="constrained")
    for (model, other), marker in zip(others, "osD", strict=False):
        changes = [100 * (other["accuracy"][pair] - base[pair]) for pair in pairs]
        panel.plot(changes, range(len(pairs)), marker, label=model)
    panel.axvline(0, color="black", linewidth=0.8, label=first)
    panel.set_yticks(range(len(pairs)), [f"{pair} ({100 * base[pair]:.1f})" for pair in pairs])
    panel.set_xlabel(f"points of accuracy more than {first} (whose accuracy is in brackets)")
    panel.grid(alpha=0.3)
    panel.legend()
    return figure
