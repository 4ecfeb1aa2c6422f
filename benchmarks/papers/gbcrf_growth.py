"""How time and memory of TreeCRF grow: with positions, with labels and with the order.

Positions: bases of genomes labelled by gene (K = 3), one column, a window of 10, pieces of 10,000.
Labels: 50,000 positions, 20 columns of numbers, labels drawn from a Markov chain. Order: OCR
letters, nine folds. Each has a few rounds. A growth exponent is the slope of a line through the
logarithms, so 1 means linear growth.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

import common
import numpy as np
import trees_common

N_POSITIONS = (10**4, 10**5, 10**6, 10**7)
N_LABELS = (2, 5, 10, 26, 50, 100)
ORDERS = (1, 2, 3, 4)
PARTS = (
    *(f"N={n}" for n in N_POSITIONS),
    *(f"K={n}" for n in N_LABELS),
    *(f"order={n}" for n in ORDERS),
)
ROUNDS = 5

PIECE = 10_000
# Before this position genes of the reverse strand are rare: a label would be missing.
FIRST_BASE = 80_000
WINDOW = 10

SYNTHETIC_POSITIONS = 50_000
SYNTHETIC_LENGTH = 50
N_COLUMNS = 20
NOISE = 1.0
FIGURES = ("seconds_per_round", "training_mib")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder that holds dna_genes/")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--repeat", type=int, default=1, help="runs; medians are given")
    parser.add_argument("--depth", type=int, default=6)
    trees_common.add_settings(parser)


def read_bases(folder: Path, n_positions: int) -> tuple[list[Any], list[Any]]:
    """Bases 0 to 3 as columns (PIECE, 1), and gene labels, in pieces."""
    end = FIRST_BASE + n_positions
    with np.load(folder / "dna_genes" / "dna_genes.npz") as arrays:
        packed, n = arrays["seq_packed"][: -(-end // 4)], int(arrays["n"])
        lengths = np.diff(np.append(arrays["run_start"], n))
        labels = np.repeat(arrays["run_label"], lengths)[FIRST_BASE:end]
    bases = np.stack([packed >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)
    column = bases.reshape(-1, 1)[FIRST_BASE:end].copy()
    bounds = range(PIECE, n_positions, PIECE)
    return np.split(column, bounds), np.split(labels, bounds)


def draw_sequences(n_labels: int, n_positions: int) -> tuple[list[Any], list[Any]]:
    """Labels of a random Markov chain, and a mean of each label plus noise in 20 columns."""
    rng = np.random.default_rng([n_labels, 1])
    means = rng.standard_normal((n_labels, N_COLUMNS))
    reached = rng.dirichlet(np.full(n_labels, 0.5), size=n_labels).cumsum(axis=1)
    n_sequences = n_positions // SYNTHETIC_LENGTH
    labels = np.empty((n_sequences, SYNTHETIC_LENGTH), dtype=np.int64)
    labels[:, 0] = np.arange(n_sequences) % n_labels
    for t in range(1, SYNTHETIC_LENGTH):
        passed = rng.random((n_sequences, 1)) > reached[labels[:, t - 1], :-1]
        labels[:, t] = passed.sum(axis=1)
    X = means[labels] + NOISE * rng.standard_normal((*labels.shape, N_COLUMNS))
    return list(X.astype(np.float32)), list(labels)


def read_part(
    axis: str, size: int, options: argparse.Namespace
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """X, y and parameters."""
    if axis == "N":
        n_positions = PIECE * (1 + N_POSITIONS.index(size)) if options.quick else size
        return *read_bases(options.data, n_positions), {"window": WINDOW}
    if axis == "K":
        n_positions = SYNTHETIC_POSITIONS // (10 if options.quick else 1)
        return *draw_sequences(size, n_positions), {}
    from peers.ocr_linear import split_words

    X, y, _, _ = split_words()
    n_words = 500 if options.quick else None
    return X[:n_words], y[:n_words], {"order": size}


def measure(part: str, options: argparse.Namespace) -> common.Record:
    axis, number = part.split("=")
    X, y, parameters = read_part(axis, int(number), options)
    common.memory_before_training_mib("hedgerow.tree_crf")
    parameters |= {
        "n_rounds": 3 if options.quick else options.rounds,
        "max_depth": options.depth,
        "n_jobs": options.jobs,
    }
    crf, record = trees_common.fit_trees(X, y, **(parameters | dict(options.settings)))
    n_positions = sum(map(len, X))
    common.log(f"{part}: {record['seconds_per_round']:.4f} s, {record['training_mib']:.0f} MiB")
    return {
        "axis": axis,
        "size": n_positions if axis == "N" else int(number),
        "n_positions": n_positions,
        "n_labels": len(crf.classes_),
        "n_patterns": len(crf.label_patterns_),
        **record,
        "nanoseconds_per_round_position_and_label": 1e9
        * record["seconds_per_round"]
        / (n_positions * len(crf.classes_)),
        "training_bytes_per_position": record["training_mib"] * 2**20 / n_positions,
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    by_axis: dict[str, list[common.Record]] = {}
    for records in runs.values():
        record = common.median_record(records)
        by_axis.setdefault(record["axis"], []).append(record)
    return {
        "setting": __doc__,
        **{
            axis: {
                "points": records,
                "exponents": {name: growth(records, name) for name in FIGURES},
            }
            for axis, records in by_axis.items()
        },
    }


def growth(records: list[common.Record], name: str) -> common.Record:
    """Exponents from each size to the next, and over all."""
    sizes = np.array([record["size"] for record in records], dtype=np.float64)
    figures = np.array([max(record[name], 1e-9) for record in records])
    logs = list(zip(np.log(sizes).tolist(), np.log(figures).tolist(), strict=True))
    return {
        "steps": [slope(one, other) for one, other in pairwise(logs)],
        "overall": float(np.polyfit(*np.array(logs).T, 1)[0]) if len(logs) > 1 else None,
    }


def slope(one: tuple[float, float], other: tuple[float, float]) -> float:
    return (other[1] - one[1]) / (other[0] - one[0])
