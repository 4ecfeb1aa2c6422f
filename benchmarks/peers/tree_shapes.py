"""Shapes: data of different kinds on which the tree learners are compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "papers"))

import numpy as np
from gbcrf_jpred import read_proteins
from gbcrf_ner import read_items
from numpy.typing import NDArray
from ocr_linear import split_words
from tasks import read_genome

N_TEST = 200_000
SEQUENCE = 100
DNA_PIECE = 2_000
DNA_POSITIONS = 1_000_000


@dataclass(frozen=True, eq=False)
class Shape:
    """Sequences to train on and to test on, and how far a window reaches."""

    X: list[Any]
    y: list[Any]
    X_test: list[Any]
    y_test: list[Any]
    window: int = 0

    @property
    def size(self) -> dict[str, int]:
        """The size of the data, for a record."""
        width = {} if isinstance(self.X[0], list) else {"columns": self.X[0].shape[1]}
        return {
            "positions": sum(map(len, self.X)),
            "test_positions": sum(map(len, self.X_test)),
            "sequences": len(self.X),
            **width,
            "window": self.window,
            "labels": len(np.unique(np.concatenate(self.y))),
        }


def letters(options: argparse.Namespace) -> Shape:
    return Shape(*split_words())


def jpred(options: argparse.Namespace) -> Shape:
    """All training proteins, including those used elsewhere for early stopping, and the blind
    set."""
    parts = read_proteins(argparse.Namespace(data=options.data, quick=False), "3")
    X, y = {}, {}
    for name, part in parts.items():
        X[name], y[name] = part.cut(part.rows), part.cut(part.codes)
    return Shape(X["train"] + X["dev"], y["train"] + y["dev"], X["test"], y["test"], 7)


def numbers(n_positions: int, n_columns: int, n_labels: int) -> Callable[[Any], Shape]:
    """Normal numbers in sequences of 100; a few columns depend on the label, one of them on the
    next one."""

    def read(options: argparse.Namespace) -> Shape:
        rng = np.random.default_rng(0)
        n = n_positions + N_TEST
        rows = rng.standard_normal((n, n_columns), np.float32)
        score = rows[:, 0] + np.roll(rows[:, 1], 1) + 0.5 * rows[:, 2] * rows[:, 3]
        codes = np.searchsorted(np.quantile(score, np.arange(1, n_labels) / n_labels), score)
        X, y = cut(rows, SEQUENCE), cut(codes, SEQUENCE)
        n_train = n_positions // SEQUENCE
        return Shape(X[:n_train], y[:n_train], X[n_train:], y[n_train:])

    return read


def dna(options: argparse.Namespace) -> Shape:
    """Bases as four columns of 0 and 1: a million of a genome, and some of another to test on."""
    parts: list[Any] = []
    for genome, n_positions in ((0, DNA_POSITIONS), (1, N_TEST)):
        bases, labels = read_genome(options.data, genome)
        rows = np.eye(4, dtype=np.float32)[bases[:n_positions]]
        parts += [cut(rows, DNA_PIECE), cut(labels[:n_positions], DNA_PIECE)]
    return Shape(*parts, window=10)


def dicts(options: argparse.Namespace) -> Shape:
    """CoNLL-2003, words and neighbours as attributes of dicts."""
    reading = argparse.Namespace(data=options.data, quick=False, sentences=None)
    return Shape(*read_items(reading, "train", spelled=True), *read_items(reading, "test", True))


def cut(rows: NDArray[Any], length: int) -> list[NDArray[Any]]:
    return np.split(rows, range(length, len(rows), length))


@dataclass(frozen=True)
class Kind:
    """How a shape is read, how many rounds it is trained for, and whether it needs ``--data``."""

    read: Callable[[argparse.Namespace], Shape]
    rounds: int = 10
    needs_data: bool = False


SHAPES = {
    "letters": Kind(letters, rounds=200),
    "jpred": Kind(jpred, rounds=15, needs_data=True),
    "1000000x20-k2": Kind(numbers(1_000_000, 20, 2)),
    "1000000x20-k3": Kind(numbers(1_000_000, 20, 3)),
    "1000000x20-k10": Kind(numbers(1_000_000, 20, 10)),
    "200000x200-k5": Kind(numbers(200_000, 200, 5)),
    "dna": Kind(dna, needs_data=True),
    "conll2003": Kind(dicts, needs_data=True),
}
