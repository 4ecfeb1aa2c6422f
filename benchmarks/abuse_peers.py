"""Stress tests of hedgerow and its peers: forks while training, and Ctrl-C during training.

Every trial runs in its own process and is killed after a time limit. The output counts the outcomes
of each library, by section:

fork
    A process forks while another thread is training, or after training on several threads. The
    child predicts with an old model and trains a new one; both must give the same as in the parent.
interrupt
    SIGINT at a random moment of a long training run. It should end with KeyboardInterrupt within
    two seconds, and the old model and a new training run should work as before.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common

JOBS = 2
SHORT, LONG = 5, 10**6  # rounds or iterations
PREPARE = 60.0  # seconds that imports and short training runs may take on a busy machine


class Library(Protocol):
    """What a trial needs from a library. Results are plain lists, so that they can be compared."""

    def train(self, n_steps: int) -> Any: ...

    def predict(self, model: Any) -> list[Any]: ...


def draw_data() -> tuple[np.ndarray, np.ndarray]:
    """X (sequences, positions, columns), and labels (sequences, positions) that depend on it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 50, 10))
    y = (X[..., 0] + rng.normal(size=X.shape[:2]) > 0) + 2 * (X[..., 1] > 0)
    return X, y.astype(np.int64)


class Crfsuite:
    def __init__(self) -> None:
        X, y = draw_data()
        signs = np.where(X > 0, "+", "-")
        self.items = [[[f"{i}{s}" for i, s in enumerate(row)] for row in part] for part in signs]
        self.labels = y.astype(str).tolist()
        self.folder = tempfile.mkdtemp(prefix="abuse-")

    def train(self, n_steps: int) -> Any:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({"c2": 1e-6, "max_iterations": n_steps, "epsilon": 0.0, "delta": 0.0})
        for items, labels in zip(self.items, self.labels, strict=True):
            trainer.append(items, labels)
        place = Path(self.folder, f"{time.monotonic_ns()}")
        trainer.train(str(place))
        tagger = pycrfsuite.Tagger()
        tagger.open(str(place))
        return tagger

    def predict(self, model: Any) -> list[Any]:
        return [model.tag(items) for items in self.items]


class Xgboost:
    def __init__(self) -> None:
        X, y = draw_data()
        self.X, self.y = X.reshape(-1, X.shape[-1]), y.ravel()

    def train(self, n_steps: int) -> Any:
        import xgboost

        data = xgboost.DMatrix(self.X, self.y)
        parameters = {"objective": "multi:softprob", "num_class": 4, "nthread": JOBS}
        return xgboost.train(parameters, data, n_steps)

    def predict(self, model: Any) -> list[Any]:
        import xgboost

        answers: list[Any] = model.predict(xgboost.DMatrix(self.X)).tolist()
        return answers


class Lightgbm:
    def __init__(self) -> None:
        X, y = draw_data()
        self.X, self.y = X.reshape(-1, X.shape[-1]), y.ravel()

    def train(self, n_steps: int) -> Any:
        import lightgbm

        parameters = {"objective": "multiclass", "num_class": 4, "num_threads": JOBS, "verbose": -1}
        return lightgbm.train(parameters, lightgbm.Dataset(self.X, self.y), n_steps)

    def predict(self, model: Any) -> list[Any]:
        answers: list[Any] = model.predict(self.X, num_threads=JOBS).tolist()
        return answers


class Trees:
    def __init__(self) -> None:
        self.X, self.y = draw_data()

    def train(self, n_steps: int) -> Any:
        from hedgerow import TreeCRF

        return TreeCRF(n_rounds=n_steps, n_jobs=JOBS).fit(self.X, self.y)

    def predict(self, model: Any) -> list[Any]:
        return [part.tolist() for part in model.predict_marginals(self.X)]


class Linear:
    def __init__(self) -> None:
        self.X, self.y = draw_data()

    def train(self, n_steps: int) -> Any:
        from hedgerow import LinearCRF

        crf = LinearCRF(reg_lambda=1e-6, max_iter=n_steps, tol=0, n_jobs=JOBS)
        while n_steps == LONG:  # it finds its minimum too soon
            crf.fit(self.X, self.y)
        return crf.fit(self.X, self.y)

    def predict(self, model: Any) -> list[Any]:
        return [part.tolist() for part in model.predict_marginals(self.X)]


LIBRARIES: dict[str, Callable[[], Library]] = {
    "crfsuite": Crfsuite,
    "xgboost": Xgboost,
    "lightgbm": Lightgbm,
    "hedgerow trees": Trees,
    "hedgerow linear": Linear,
}


def fork_trial(library: Library, delay: float, moment: str, limit: float) -> None:
    """Print the outcome of a child that predicts and trains: ok, wrong, crash or hang."""
    model = library.train(SHORT)
    expected = library.predict(model)
    if moment == "during training":
        threading.Thread(target=library.train, args=(LONG,), daemon=True).start()
        time.sleep(delay)
    child = os.fork()
    if child == 0:
        same = library.predict(model) == expected
        same &= library.predict(library.train(SHORT)) == expected
        os._exit(0 if same else 3)
    end = time.monotonic() + limit
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.01)
    outcomes = {0: "ok", 3: "wrong"}
    say(outcomes.get(os.waitstatus_to_exitcode(done[1]), "crash") if done[0] else "hang")
    os._exit(0)


def interrupt_trial(library: Library, delay: float, moment: str, limit: float) -> None:
    """Train until SIGINT; print "begun", "stopped", and "usable" if everything still works."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    model = library.train(SHORT)
    expected = library.predict(model)
    try:
        say("begun")
        library.train(LONG)
    except KeyboardInterrupt:
        say("stopped")
    same = library.predict(model) == expected
    if same and library.predict(library.train(SHORT)) == expected:
        say("usable")
    os._exit(0)


def say(word: str) -> None:
    print(word, flush=True)


TRIALS = {"fork": fork_trial, "interrupt": interrupt_trial}


def start(
    section: str, library: str, delay: float, moment: str, limit: float
) -> subprocess.Popen[str]:
    trial = [section, library, str(delay), moment, str(limit)]
    command = [sys.executable, __file__, "--trial", *trial]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def end(process: subprocess.Popen[str]) -> None:
    """Kill a trial and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def run_fork(library: str, moment: str, delay: float, limit: float) -> str:
    """The outcome of a child, see `fork_trial`."""
    process = start("fork", library, delay, moment, limit)
    try:
        return hear(process, limit + PREPARE) or "crash"
    finally:
        end(process)


def run_interrupt(library: str, delay: float, limit: float) -> tuple[str, float | None]:
    """How training ended (stopped, late, never or crash), and after how many seconds."""
    process = start("interrupt", library, delay, "", limit)
    try:
        if wait_for(process, "begun", PREPARE) is None:
            return "crash", None
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        seconds = wait_for(process, "stopped", limit)
        if seconds is None:
            return ("never" if process.poll() is None else "crash"), None
        usable = wait_for(process, "usable", PREPARE) is not None
        if not usable:
            return "stopped, not usable", seconds
        return ("stopped" if seconds <= 2 else "late"), seconds
    finally:
        end(process)


def wait_for(process: subprocess.Popen[str], word: str, limit: float) -> float | None:
    """Seconds until a trial prints this word; None if it does not."""
    begin = time.monotonic()
    return time.monotonic() - begin if hear(process, limit) == word else None


def hear(process: subprocess.Popen[str], limit: float) -> str:
    """The next line that a trial prints; "hang" if it takes too long, "" if it has ended."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], limit)
    return process.stdout.readline().strip() if readable else "hang"


def fork_section(libraries: list[str], options: argparse.Namespace) -> common.Record:
    """Counts of the outcomes of children, by moment and library."""
    found: common.Record = {}
    for moment in ("during training", "after training"):
        for library in libraries:
            common.log(f"fork {moment}: {library}")
            rng = random.Random(0)
            outcomes = [
                run_fork(library, moment, rng.uniform(0.05, 0.5), options.limit)
                for _ in range(options.trials)
            ]
            found.setdefault(moment, {})[library] = dict(Counter(outcomes))
    return found


def interrupt_section(libraries: list[str], options: argparse.Namespace) -> common.Record:
    """Counts of how training runs ended, and the seconds until they did, by library."""
    found: common.Record = {}
    for library in libraries:
        common.log(f"interrupt: {library}")
        rng = random.Random(0)
        results = [
            run_interrupt(library, rng.uniform(0.05, 1.0), options.limit)
            for _ in range(options.trials)
        ]
        seconds = [second for _, second in results if second is not None]
        found[library] = {
            "outcomes": dict(Counter(outcome for outcome, _ in results)),
            "median_seconds": statistics.median(seconds) if seconds else None,
            "worst_seconds": max(seconds, default=None),
        }
    return found


SECTIONS = {"fork": fork_section, "interrupt": interrupt_section}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=30, help="of each library and moment")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds until a trial hangs")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--trial", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trial:
        section, library, delay, moment, limit = options.trial
        TRIALS[section](LIBRARIES[library](), float(delay), moment, float(limit))
        return
    facts = common.machine_facts()
    found = {name: SECTIONS[name](options.libraries, options) for name in options.sections}
    common.print_json({"trials": options.trials, **found, "machine": facts})


if __name__ == "__main__":
    main()
