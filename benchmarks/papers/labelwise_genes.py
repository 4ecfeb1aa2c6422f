"""Figures 2b to 2d: learning curves of gene prediction, starting from generative estimates.

Five bacterial genomes, each base labelled N (no gene), C (gene) or R (gene of the reverse strand);
attributes are the three bases around a position, 64 in all, and pairs of labels. Trained on four
genomes, tested on the fifth. Every objective starts from log P(trimer | label) and
log P(label | label before). Accuracy is that of the most probable label of each position. Genomes
are cut into pieces, so that all cores have work.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import common
import numpy as np
from labelwise_training import (
    LEGENDS,
    OBJECTIVES,
    accuracies,
    build_generative,
    default_decoder,
    one_hot,
)
from numpy.typing import NDArray
from scipy import sparse

from hedgerow import LinearCRF
from hedgerow.objectives import ExpectedAccuracy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = OBJECTIVES
LABELS = np.array(["N", "C", "R"])
N_TRIMERS = 64
PIECE = 50_000
# The training accuracy is computed on one in this many pieces of the training genomes.
WATCH_EVERY = 4
QUICK_LENGTH = 200_000
QUICK_ITERATIONS = 4

Figures = dict[str, float]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder that holds dna_genes/")
    parser.add_argument("--iterations", type=int, default=60, help="of L-BFGS")
    parser.add_argument("--test", type=int, default=4, choices=range(5), help="genome to test on")
    parser.add_argument("--piece", type=int, default=PIECE, help="bases of a piece")


@dataclass(frozen=True, eq=False)
class Genomes:
    """Positions of some genomes, end to end."""

    trimers: NDArray[np.uint8]
    labels: NDArray[Any]
    pieces: NDArray[np.int32]
    """(N,) number of each position's piece."""

    @property
    def rows(self) -> sparse.csr_matrix:
        return one_hot(self.trimers, N_TRIMERS)

    @property
    def data(self) -> tuple[Any, Any, Any]:
        """X, y and groups."""
        return self.rows, self.labels, self.pieces

    def sample(self, every: int) -> Genomes:
        """One in this many pieces."""
        kept = self.pieces % every == 0
        return Genomes(self.trimers[kept], self.labels[kept], self.pieces[kept])


def read_genomes(options: argparse.Namespace) -> tuple[Genomes, Genomes]:
    """Four genomes for training, and one for testing."""
    with np.load(options.data / "dna_genes" / "dna_genes.npz") as arrays:
        packed, n = arrays["seq_packed"], int(arrays["n"])
        codes = np.repeat(arrays["run_label"], np.diff(np.append(arrays["run_start"], n)))
        bounds = arrays["offsets"].astype(np.int64)
    bases = np.stack([packed >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).ravel()[:n]
    length = QUICK_LENGTH if options.quick else n
    genomes = [slice(a, min(b, a + length)) for a, b in pairwise(bounds)]
    test = genomes.pop(options.test)
    return cut(bases, codes, genomes, options.piece), cut(bases, codes, [test], options.piece)


def cut(bases: NDArray[np.uint8], codes: NDArray[Any], genomes: list[slice], piece: int) -> Genomes:
    """Split genomes into pieces. They are circular: the last base is next to the first."""
    trimers, pieces, n_pieces = [], [], 0
    for genome in genomes:
        own = bases[genome]
        trimers.append(16 * np.roll(own, 1) + 4 * own + np.roll(own, -1))
        pieces.append(n_pieces + np.arange(len(own), dtype=np.int32) // piece)
        n_pieces = int(pieces[-1][-1]) + 1
    labels = LABELS[np.concatenate([codes[genome] for genome in genomes])]
    return Genomes(np.concatenate(trimers), labels, np.concatenate(pieces))


class WatchedCRF(LinearCRF):
    """A LinearCRF that evaluates several sets after each iteration, with both decoders.

    ``eval_set`` is a dict of sets by name. The history gets ``NAME_loss``, the objective per
    position, ``NAME_accuracy`` by marginals, ``NAME_own`` by the objective's own decoder, and
    ``seconds`` of the iteration itself.
    """

    def _read_watched(self, eval_set: Any, data: Any, objective: Any) -> Any:
        read = super()._read_watched
        return {
            name: [read(one, data, watched) for watched in (objective, ExpectedAccuracy())]
            for name, one in eval_set.items()
        }

    def _watch(self, watched: Any, index: Any, n_threads: int) -> Callable[[Any], Figures]:
        watch = super()._watch
        measures = {
            name: [watch(one, index, n_threads) for one in sets] for name, sets in watched.items()
        }
        ends = [time.perf_counter()]

        def measure(weights: Any) -> Figures:
            figures = {"seconds": time.perf_counter() - ends[-1]}
            for name, (own, marginal) in measures.items():
                found = own(weights)
                figures[f"{name}_loss"] = found["eval_loss"]
                figures[f"{name}_own"] = found["eval_accuracy"]
                figures[f"{name}_accuracy"] = marginal(weights)["eval_accuracy"]
            ends.append(time.perf_counter())
            return figures

        return measure


def measure(part: str, options: argparse.Namespace) -> common.Record:
    train, test = read_genomes(options)
    begins = np.flatnonzero(np.diff(train.pieces, prepend=-1))
    start = build_generative(train.trimers, train.labels, begins, N_TRIMERS)
    sets: Any = {"train": train.sample(WATCH_EVERY).data, "test": test.data}
    before = {name: accuracies(start, *one) for name, one in sets.items()}
    common.log(f"{part}: generative start {before}")
    crf = WatchedCRF(
        objective=part,
        max_iter=QUICK_ITERATIONS if options.quick else options.iterations,
        tol=0,
        all_pairs=True,
        n_jobs=options.jobs,
    )
    mib_before = common.memory_before_training_mib("hedgerow.linear_crf")
    X, y, groups = train.data
    with common.Stopwatch() as watch:
        crf.fit(X, y, groups=groups, eval_set=sets, init=start)
    history = crf.history_
    common.log(f"{part}: test accuracy {history['test_accuracy'][-1]:.4f}, {watch.seconds:.0f} s")
    return {
        "n_positions": len(train.labels),
        "n_test_positions": len(test.labels),
        "start": before,
        "train_seconds": watch.seconds,
        "seconds_per_iteration": statistics.median(history["seconds"]),
        "mib_before_training": mib_before,
        "peak_mib_after_training": common.peak_memory_mib(),
        "history": history,
    }


def summarise_part(part: str, record: common.Record) -> common.Record:
    history, start = record["history"], record["start"]
    test = history["test_accuracy"]
    best = max(range(len(test)), key=test.__getitem__)
    return {
        "objective": part,
        "decoder": "marginal",
        "train_accuracy_at_start": start["train"]["marginal"],
        "train_accuracy": history["train_accuracy"][-1],
        "test_accuracy_at_start": start["test"]["marginal"],
        "test_accuracy": test[-1],
        "test_accuracy_by_own_decoder": history["test_own"][-1],
        "own_decoder": default_decoder(part),
        "best_test_accuracy": test[best],
        "best_iteration": best + 1,
        "test_loss_at_first_and_last_iteration": [
            history["test_loss"][0],
            history["test_loss"][-1],
        ],
        **{name: value for name, value in record.items() if name != "peak_memory_mib"},
    }


def summarise(runs: dict[str, list[common.Record]]) -> common.Record:
    return {
        "setting": "four genomes to train on, one to test on, labels N, C and R, 64 trimers; all "
        f"start from generative estimates; training accuracy on every {WATCH_EVERY}th piece; "
        "seconds of an iteration leave out the watching, MiB do not",
        "published": "on 28 million bases of the fruit fly: accuracy training improves on the "
        "generative start, likelihood and pointwise likelihood lose against it",
        "objectives": [summarise_part(part, records[0]) for part, records in runs.items()],
    }


def draw(summary: common.Record) -> Figure:
    """One panel per objective: accuracies on the left axis, the objective on the right."""
    from matplotlib import pyplot as plt

    records = summary["objectives"]
    n_rows = -(-len(records) // 2)
    figure, panels = plt.subplots(
        n_rows, 2, figsize=(11, 0.5 + 3.7 * n_rows), layout="constrained", squeeze=False
    )
    accuracy_panels = list(panels.ravel())
    for panel, record in zip(accuracy_panels, records, strict=False):
        lines = draw_panel(panel, record)
    for panel in accuracy_panels[len(records) :]:
        panel.set_axis_off()
    share_limits(accuracy_panels[: len(records)])
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines))
    return figure


def draw_panel(panel: Axes, record: common.Record) -> list[Any]:
    history, start = record["history"], record["start"]
    lines = []
    for name, style in (("train", "--"), ("test", "-")):
        curve = [start[name]["marginal"], *history[f"{name}_accuracy"]]
        percent = [100 * value for value in curve]
        lines += panel.plot(percent, style, color="C3", label=f"{name} accuracy")
    at_start = 100 * start["test"]["marginal"]
    lines.append(panel.axhline(at_start, color="grey", lw=1, ls=":", label="test, generative"))
    panel.set_title(LEGENDS[record["objective"]])
    panel.set_xlabel("iteration")
    panel.set_ylabel("accuracy, %")
    panel.grid(alpha=0.3)
    twin = panel.twinx()
    value = [-loss for loss in history["train_loss"]]
    lines += twin.plot(range(1, len(value) + 1), value, color="C0", label="objective, training")
    twin.set_ylabel("objective a position")
    return lines


def share_limits(panels: list[Axes]) -> None:
    """The same scale of accuracy in all panels."""
    low = min(panel.get_ylim()[0] for panel in panels)
    high = max(panel.get_ylim()[1] for panel in panels)
    for panel in panels:
        panel.set_ylim(low, high)
