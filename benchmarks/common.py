"""Shared by the benchmark scripts: data, clocks, memory, machine facts, and the two sides.

A comparison runs each library (a *side*) in a fresh process, so that neither pays for the
other's imports or memory. The script starts itself again with ``--side NAME --folder DIR``;
the side leaves its record in ``DIR/record.json``. Nothing here imports numpy at the top: the
CRFsuite process holds Python lists and CRFsuite only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow import LinearCRF

Record = dict[str, Any]
Tag = Callable[[Sequence[Any]], Sequence[Sequence[Any]]]

SIDES = ("crfsuite", "hedgerow")
PACKAGES = ("hedgerow", "lightgbm", "numpy", "python-crfsuite", "xgboost", "xgboost-cpu")


def log(message: str) -> None:
    """Progress goes to stderr; stdout is kept for the one JSON document."""
    print(message, file=sys.stderr, flush=True)


def read_conll(path: Path) -> list[list[list[str]]]:
    """Sentences of tokens of columns, from a gzipped file with a blank line between sentences."""
    sentences: list[list[list[str]]] = [[]]
    with gzip.open(path, "rt", encoding="utf8") as lines:
        for line in lines:
            columns = line.split()
            if columns:
                sentences[-1].append(columns)
            elif sentences[-1]:
                sentences.append([])
    return sentences if sentences[-1] else sentences[:-1]


def peak_memory_mib() -> float:
    """Largest resident memory of this process so far, in MiB.

    Linux keeps ``ru_maxrss`` across exec, so a child would start from its parent's peak;
    ``VmHWM`` belongs to this program alone.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def memory_before_training_mib(library: str) -> float:
    """MiB in use after a library is imported; also resets the peak (Linux).

    Reading a file may briefly take more memory than the training that is measured.
    """
    import_module(library)
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")
    return peak_memory_mib()


def machine_facts() -> Record:
    """Facts about the machine that times depend on. Call it before the work starts."""
    return {
        "cpu": cpu_name(),
        "cpu_count": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES if version(name)},
    }


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


class Stopwatch:
    """``with Stopwatch() as watch: ...`` measures wall-clock seconds and processor time."""

    def __enter__(self) -> Stopwatch:
        self._cpu, self._clock = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.seconds = time.perf_counter() - self._clock
        self.cpu_seconds = time.process_time() - self._cpu


def best_seconds(action: Callable[[], object], passes: int) -> float:
    """Fewest seconds over several passes."""
    seconds = []
    for _ in range(passes):
        with Stopwatch() as watch:
            action()
        seconds.append(watch.seconds)
    return min(seconds)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and its standard error, of at least two values."""
    return statistics.mean(values), statistics.stdev(values) / len(values) ** 0.5


def median_record(records: Sequence[Record]) -> Record:
    """Medians over repeated runs; values that are not numbers are those of the first run."""
    return {
        name: statistics.median(record[name] for record in records)
        if isinstance(value, int | float)
        else value
        for name, value in records[0].items()
    }


def train_crfsuite(X: Any, y: Any, iterations: int, folder: Path) -> tuple[Record, Tag]:
    """Train CRFsuite end to end (append and train); L-BFGS, c2 = 1, exactly ``iterations``."""
    import pycrfsuite

    model = str(folder / "crfsuite.model")
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    # A threshold of 0 never holds, so neither stopping rule ends the run early.
    trainer.set_params(
        {"c1": 0.0, "c2": 1.0, "max_iterations": iterations, "epsilon": 0.0, "delta": 0.0}
    )
    with Stopwatch() as watch:
        with Stopwatch() as append_watch:
            for items, labels in zip(X, y, strict=True):
                trainer.append(items, labels)
        trainer.train(model)
    progress = trainer.logparser
    record = {
        "train_seconds": watch.seconds,
        "train_cpu_seconds": watch.cpu_seconds,
        "append_seconds": append_watch.seconds,
        "iterations": progress.last_iteration["num"],
        "loss": progress.last_iteration["loss"],
        "n_weights": progress.featgen_num_features,
    }
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    return record, lambda X_test: [tagger.tag(items) for items in X_test]


def make_linear(iterations: int, jobs: int | None) -> LinearCRF:
    """LinearCRF with the objective of CRFsuite: its c2 |w|^2 is reg_lambda / 2 |w|^2."""
    from hedgerow import LinearCRF

    return LinearCRF(reg_lambda=2.0, max_iter=iterations, tol=0, n_jobs=jobs)


def train_hedgerow(X: Any, y: Any, iterations: int, jobs: int | None) -> tuple[Record, Tag]:
    """Train LinearCRF."""
    crf = make_linear(iterations, jobs)
    with Stopwatch() as watch:
        crf.fit(X, y)
    record = {
        "train_seconds": watch.seconds,
        "train_cpu_seconds": watch.cpu_seconds,
        "iterations": int(crf.n_iter_),
        "loss": float(crf.loss_),
        "n_weights": int(crf.n_weights_),
    }
    return record, crf.predict


def tag_record(tag: Tag, X_test: Sequence[Any], passes: int = 5) -> Record:
    """Best tagging time, and the predicted labels as plain strings (under ``predicted``)."""
    seconds = best_seconds(lambda: tag(X_test), passes)
    predicted = [[str(label) for label in labels] for labels in tag(X_test)]
    n_positions = sum(len(labels) for labels in predicted)
    return {
        "tag_seconds": seconds,
        "tag_positions_per_second": n_positions / seconds,
        "predicted": predicted,
    }


def side_parser(description: str | None, sides: Sequence[str] = SIDES) -> argparse.ArgumentParser:
    """Options of a script that compares two sides, the peer's first."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--jobs", type=int, help="threads; all cores unless given (CRFsuite: one)")
    parser.add_argument("--repeat", type=int, default=1, help="pairs of runs; medians are given")
    parser.add_argument("--only", choices=sides, help="run one side alone")
    parser.add_argument("--side", choices=sides, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser


def write_side(folder: Path, record: Record) -> None:
    (folder / "record.json").write_text(json.dumps(record))


def read_side(folder: Path) -> Record:
    record: Record = json.loads((folder / "record.json").read_text())
    return record


def run_side(side: str, *others: str) -> Record:
    """Run this script again, with the same options and `others`, as one side in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        log(" ".join(["running", side, *others]))
        command = [sys.executable, *sys.argv, *others, "--side", side, "--folder", folder]
        subprocess.run(command, check=True, stdout=sys.stderr)
        return read_side(Path(folder))


def run_sides(
    options: argparse.Namespace,
    score: Callable[[Record], Record],
    sides: Sequence[str] = SIDES,
) -> dict[str, Record]:
    """Medians for each side over alternating runs; ``score`` turns predictions into figures."""
    runs: dict[str, list[Record]] = {side: [] for side in sides if options.only in (None, side)}
    for _ in range(options.repeat):
        for side, records in runs.items():
            record = run_side(side)
            record.update(score(record))
            del record["predicted"]
            records.append(record)
    return {side: median_record(records) for side, records in runs.items()}


def ratios(sides: dict[str, Record], names: Sequence[str], peer: str = "crfsuite") -> Record:
    """The peer's figure divided by hedgerow's: above 1 where hedgerow needs less."""
    if peer not in sides or "hedgerow" not in sides:
        return {}
    return {name: sides[peer][name] / sides["hedgerow"][name] for name in names}


def error_rate(truth: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> float:
    """Share of positions whose label is wrong."""
    pairs = [
        (t, p)
        for labels, others in zip(truth, predicted, strict=True)
        for t, p in zip(labels, others, strict=True)
    ]
    return sum(t != p for t, p in pairs) / len(pairs)


def print_json(document: Record) -> None:
    print(json.dumps(document, indent=2))
