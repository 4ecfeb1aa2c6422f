"""Defaults of TreeCRF, chosen by measurement: many settings on many data sets, and peers.

    defaults.py --data DIR [--json-out FILE] [--jobs N] [--limit SECONDS] [--list]
                [--tasks NAME ...] [--settings PATTERN ...] [--also "KEY=VALUE ..."]
    defaults.py --summary FILE ... [--by better|viterbi|marginals|default] [--chosen NAME]

Trains every setting on every task, each with one thread in its own process, the longest first. One
training run is measured after 50, 100, 200 and 400 rounds. Each measurement is a line of JSON in
FILE, written at once: accuracy on the test data by Viterbi, by marginals and by the better of the
two, mean log-likelihood of a test label by its marginal, seconds and rounds. Results that are
already in FILE are not computed again, so an interrupted run can be repeated. XGBoost and LightGBM,
with their own defaults, get the same window as lag features. `defaults_settings.py` has the
settings; --also adds one, given by its differences from the old defaults.

--summary compares them: mean rank, and mean difference in accuracy from the best setting of each
task.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import common
import defaults_tables
import numpy as np
from defaults_settings import BEFORE, SETTINGS, STAGES, Setting
from numpy.typing import NDArray
from spelled_windows import spell_out
from tasks import TASKS, Task, known_only

from hedgerow import TreeCRF

# Seconds of one core for 400 rounds with the old defaults, estimated from the first 15, which take
# longer than later ones. The longest training runs start first.
SECONDS = {
    "structure, 8 states": 400,
    "structure, 3 states": 200,
    "chunks": 75,
    "letters": 65,
    "parts of speech": 60,
    "gestures": 50,
    "entities": 25,
    "phonemes": 20,
    "genes": 17,
    "hyphenation": 8,
    "letters, one fold": 8,
    "protein": 6,
    "stress": 4,
}
Job = tuple[str, str, Setting, Path, Path]


@cache
def load(name: str, folder: Path) -> Task:
    """The task, without test sequences that have labels unknown in training; kept in memory."""
    X, y, X_test, y_test, window = TASKS[name](folder)
    return X, y, *known_only(y, X_test, y_test), window


def run_job(job: Job) -> str:
    """Train a setting on a task, and record the results."""
    task, name, setting, folder, out = job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure = measure_trees if setting.library == "hedgerow" else measure_peer
        for record in measure(load(task, folder), setting):
            line = json.dumps({"task": task, "setting": name, **record}) + "\n"
            with out.open("a") as file:
                file.write(line)
    return f"{task}: {name}"


def measure_trees(task: Task, setting: Setting) -> Iterator[common.Record]:
    """Measurements of one training run after each stage; a stage starts from the previous one."""
    X, y, X_test, y_test, window = task
    crf, n_done, seconds, cpu_seconds = None, 0, 0.0, 0.0
    for n_rounds in setting.stages:
        parameters = BEFORE | setting.parameters | {"n_rounds": n_rounds - n_done}
        before, crf = crf, TreeCRF(**parameters, window=window, n_jobs=1, random_state=0)
        with common.Stopwatch() as watch:
            crf.fit(X, y, init=before)
        n_done, seconds = n_rounds, seconds + watch.seconds
        cpu_seconds += watch.cpu_seconds
        marginals = crf.predict_proba(X_test)
        own = crf.log_likelihood(X_test, y_test).sum()
        yield {
            **compare(marginals, crf.classes_, y_test),
            "viterbi": share(np.concatenate(crf.predict(X_test, decode="viterbi")), y_test),
            "decode": crf.decode_,
            "sequence_log_likelihood": round(float(own / sum(map(len, y_test))), 5),
            "rounds": n_rounds,
            "rounds_used": crf.n_rounds_,
            "stops_early": crf.early_stopping_rounds is not None,
            "seconds": round(seconds, 2),
            "cpu_seconds": round(cpu_seconds, 2),
        }


def measure_peer(task: Task, setting: Setting) -> Iterator[common.Record]:
    X, y, X_test, y_test, window = task
    rows, test_rows = spell_out(X, X_test, window)
    classes, codes = np.unique(np.concatenate(y), return_inverse=True)
    if setting.library == "xgboost":
        from xgboost import XGBClassifier

        peer = XGBClassifier(n_jobs=1, random_state=0, **setting.parameters)
    else:
        from lightgbm import LGBMClassifier

        peer = LGBMClassifier(n_jobs=1, random_state=0, verbose=-1, **setting.parameters)
    with common.Stopwatch() as watch:
        peer.fit(rows, codes)
    yield {
        **compare(peer.predict_proba(test_rows), classes, y_test),
        "seconds": round(watch.seconds, 2),
        "cpu_seconds": round(watch.cpu_seconds, 2),
    }


def compare(marginals: NDArray[Any], classes: NDArray[Any], y_test: list[Any]) -> common.Record:
    """Metrics from the probabilities of labels, (N, K)."""
    truth = np.concatenate(y_test)
    own = marginals[np.arange(len(truth)), np.searchsorted(classes, truth)]
    return {
        "marginals": share(classes[marginals.argmax(axis=1)], y_test),
        "log_likelihood": round(float(np.log(own.clip(1e-300)).mean()), 5),
        "n_test": len(truth),
    }


def share(found: NDArray[Any], y_test: list[Any]) -> float:
    """Accuracy in percent."""
    return round(100 * float(np.mean(found == np.concatenate(y_test))), 3)


def read_records(paths: Sequence[Path]) -> list[common.Record]:
    """Records of earlier runs, without a line that was written incompletely."""
    records = []
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                common.log(f"{path}: a line that was cut off is left out")
    return records


def plan(options: argparse.Namespace, settings: dict[str, Setting]) -> list[Job]:
    """The remaining jobs, the longest first."""
    done = {(r["task"], r["setting"], r.get("rounds")) for r in read_records([options.json_out])}
    jobs = [
        (task, name, setting, options.data, options.json_out)
        for task in options.tasks
        for name, setting in settings.items()
        if (task, name, max(setting.stages, default=None)) not in done
    ]
    return sorted(jobs, key=lambda job: -SECONDS[job[0]] * job[2].cost)


def choose_settings(patterns: Sequence[str], also: Sequence[str]) -> dict[str, Setting]:
    chosen = {
        name: setting
        for name, setting in SETTINGS.items()
        if any(fnmatch(name, pattern) for pattern in patterns)
    }
    for text in also:
        pairs = [pair.split("=", 1) for pair in text.split()]
        parameters = {key: None if value == "None" else json.loads(value) for key, value in pairs}
        stages = STAGES[-1:] if parameters.get("early_stopping_rounds") else STAGES
        chosen[text] = Setting(parameters=parameters, stages=stages)
    return chosen


def run_all(jobs: list[Job], n_processes: int, limit: float) -> None:
    """Run jobs in separate processes until all are done or time is up."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    begin = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(n_processes) as pool:
        results = pool.imap_unordered(run_job, jobs)
        try:
            for n_done in range(1, len(jobs) + 1):
                done = results.next(timeout=max(0.0, limit - (time.monotonic() - begin)))
                common.log(f"{time.monotonic() - begin:6.0f} s  {n_done} of {len(jobs)}  {done}")
        except multiprocessing.TimeoutError:
            common.log(f"{limit:g} s are over; repeat the command to go on")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--data", type=Path, metavar="DIR")
    add("--json-out", type=Path, default=Path("defaults.jsonl"), metavar="FILE")
    add("--jobs", type=int, default=os.cpu_count(), metavar="N", help="number of processes")
    add("--limit", type=float, default=float("1e6"), metavar="SECONDS")
    add("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="NAME")
    add("--settings", nargs="+", default=["*"], metavar="PATTERN")
    add("--also", action="append", default=[], metavar="KEY=VALUE ...")
    add("--list", action="store_true", help="only show what would be done")
    add("--summary", type=Path, nargs="+", metavar="FILE")
    add("--by", choices=defaults_tables.MEASURES, default="better")
    add("--chosen", metavar="NAME", help="the setting to compare with peers; the best unless given")
    options = parser.parse_args()
    if options.summary:
        records = read_records(options.summary)
        common.print_json(defaults_tables.summarise(records, options.by, options.chosen))
        return
    if options.data is None and not all(name.startswith("letters") for name in options.tasks):
        parser.error("tasks other than the letters need --data")
    jobs = plan(options, choose_settings(options.settings, options.also))
    common.log(f"{len(jobs)} trainings in {options.jobs} processes")
    if options.list:
        for task, name, *_ in jobs:
            common.log(f"  {task}: {name}")
        return
    run_all(jobs, options.jobs, options.limit)


if __name__ == "__main__":
    main()
