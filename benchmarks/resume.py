"""SIGKILL at random moments of training with checkpoints: is the final model the same?

Each training run, on one fold of the OCR letters, has its own process, is killed one to three
times, and is resumed until it is done. Its model file must have the same bytes as that of an
uninterrupted run.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common

from hedgerow import Checkpoint, LinearCRF, TreeCRF
from hedgerow.datasets import load_ocr

KINDS: dict[str, Callable[[], Any]] = {
    "TreeCRF": lambda: TreeCRF(n_rounds=100, subsample=0.5, random_state=0),
    "LinearCRF": lambda: LinearCRF(max_iter=150, tol=0),
    "LinearCRF, L1": lambda: LinearCRF(reg_alpha=0.5, max_iter=200, tol=0),
    "LinearCRF, max_margin": lambda: LinearCRF(objective="max_margin", warm_iter=30, max_iter=120),
}
# Maximum number of kills per training run.
MAX_KILLS = 3


def train(options: argparse.Namespace) -> None:
    """Fit and save in a folder; one file marks the start of fitting, and another its end."""
    X, y, fold = load_ocr()
    words = [number for number, of in enumerate(fold) if of == 0]
    checkpoint = None
    if options.every:
        checkpoint = Checkpoint(options.folder / "checkpoint", every=options.every)
    crf = KINDS[options.train]()
    (options.folder / "begun").touch()
    with warnings.catch_warnings(), common.Stopwatch() as watch:
        warnings.simplefilter("ignore")  # convergence does not matter here
        crf.fit([X[i] for i in words], [y[i] for i in words], checkpoint=checkpoint)
    (options.folder / "fitted").touch()
    crf.save(options.folder / "model")
    common.write_side(options.folder, {"seconds": watch.seconds})


def start(kind: str, folder: Path, every: int) -> subprocess.Popen[bytes]:
    """Train in a separate process."""
    (folder / "begun").unlink(missing_ok=True)
    options = ["--train", kind, "--folder", str(folder), "--every", str(every)]
    return subprocess.Popen([sys.executable, __file__, *options])


def finish(child: subprocess.Popen[bytes]) -> None:
    """Wait until training ends."""
    if child.wait():
        raise SystemExit(f"a training ended with code {child.returncode}")


def kill(child: subprocess.Popen[bytes], folder: Path, delay: float) -> bool:
    """Kill training after some seconds; returns whether it was still fitting."""
    while not (folder / "begun").exists() and child.poll() is None:
        time.sleep(0.001)
    time.sleep(delay)
    fitting = child.poll() is None and not (folder / "fitted").exists()
    child.kill()
    child.wait()
    return fitting


def measure(kind: str, every: int) -> tuple[bytes, float]:
    """Model file and seconds of an uninterrupted run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        finish(start(kind, folder, every))
        return (folder / "model").read_bytes(), common.read_side(folder)["seconds"]


def interrupt(kind: str, every: int, seconds: float, rng: random.Random) -> tuple[bytes, int]:
    """Model file of a run that is killed repeatedly, and the number of kills while fitting."""
    n_hits = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(rng.randint(1, MAX_KILLS)):
            if (folder / "fitted").exists():
                break
            n_hits += kill(start(kind, folder, every), folder, rng.uniform(0, seconds))
        finish(start(kind, folder, every))
        return (folder / "model").read_bytes(), n_hits


def record_of(kind: str, options: argparse.Namespace, rng: random.Random) -> common.Record:
    expected, seconds = measure(kind, 0)
    watched, checkpointed = measure(kind, options.every)
    n_identical = n_hits = 0
    for trial in range(options.trials):
        found, hits = interrupt(kind, options.every, checkpointed, rng)
        n_identical += found == expected
        n_hits += hits
        common.log(f"{kind}: {n_identical} of {trial + 1} identical, {n_hits} kills while fitting")
    return {
        "trials": options.trials,
        "identical": n_identical,
        "kills_while_fitting": n_hits,
        "identical_without_a_kill": watched == expected,
        "seconds_without_checkpoint": seconds,
        "seconds_with_checkpoint": checkpointed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20, help="trainings of each kind")
    parser.add_argument("--every", type=int, default=10, help="rounds between checkpoints")
    parser.add_argument("--only", choices=KINDS, help="one kind of training alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options)
        return
    machine, rng = common.machine_facts(), random.Random(options.seed)
    kinds = [kind for kind in KINDS if options.only in (None, kind)]
    records = {kind: record_of(kind, options, rng) for kind in kinds}
    common.print_json({"every": options.every, "trainings": records, "machine": machine})


if __name__ == "__main__":
    main()
