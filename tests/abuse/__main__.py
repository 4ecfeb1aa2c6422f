"""``python -m abuse --minutes 60``: all kinds of abuse in turn, until the time is up."""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from abuse.batch import Failure
from abuse.kind import Kind
from abuse.kinds import KINDS
from abuse.saved import save_failure

MOST_OUTPUT = 5000  # characters of the output of a worker and its children
SLICE = 20.0  # time limit of a worker, in seconds


@dataclass
class Count:
    """Counts for one kind."""

    n_cases: int = 0
    n_failures: int = 0
    seconds: float = 0.0


@dataclass
class Worker:
    """A running worker, see `abuse.worker`."""

    kind: Kind
    number: int
    seconds: float
    death: Failure | None = None  # the case that killed an earlier worker, which this one shrinks
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="abuse-")
        self.folder = Path(self._folder.name)
        arguments = [self.kind.name, str(self.number), str(self.seconds), str(self.folder)]
        self._output = (self.folder / "output").open("wb")
        self.process = subprocess.Popen(
            [
                sys.executable,
                *["-S"] * sys.flags.no_site,
                "-m",
                "abuse.worker",
                *arguments,
                *["isolated"] * (self.death is not None),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def poll(self) -> bool:
        """Whether it has ended; a worker that hangs is killed."""
        if self.process.poll() is not None:
            return True
        place = self.folder / "case.json"
        since = place.stat().st_mtime if place.exists() else time.time() - self.age
        if time.time() - since > self.kind.seconds + 30:
            self.kill()
            return True
        return False

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.started

    def kill(self) -> None:
        """Kill it and its children."""
        os.killpg(self.process.pid, 9)
        self.process.wait()

    def result(self) -> tuple[int, Failure | None, bool]:
        """Number of cases checked, the failure, and whether it killed the worker."""
        self._output.close()
        output = (self.folder / "output").read_text(errors="replace")
        place = self.folder / "result.json"
        if place.exists():
            result = json.loads(place.read_text())
            if result["failure"] is None:
                return result["n_checked"], None, False
            case, error = result["failure"]["case"], result["failure"]["error"]
            return result["n_checked"], Failure(case, f"{error}\n{output[-MOST_OUTPUT:]}"), False
        place = self.folder / "case.json"
        if not place.exists():
            raise SystemExit(f"the worker of {self.kind.name} could not begin:\n{output}")
        error = f"{output}\nthe process ended with {self.process.returncode}"
        return 0, Failure(json.loads(place.read_text()), error), True


def main() -> int:
    """Run until the time is up; the exit status is 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="abuse", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}: make abuse MINUTES={arguments.minutes:g} SEED={arguments.seed}")
    counts = {name: Count() for name in arguments.kinds}
    numbers = dict.fromkeys(arguments.kinds, arguments.seed * 1000003)
    end = time.monotonic() + 60 * arguments.minutes
    workers: list[Worker] = []
    try:
        while workers or time.monotonic() < end:
            while len(workers) < arguments.workers and time.monotonic() < end:
                running = {worker.kind.name for worker in workers}
                name = min(
                    counts,
                    key=lambda name: (name in running, counts[name].seconds / KINDS[name].share),
                )
                seconds = min(SLICE, max(1.0, end - time.monotonic()))
                workers.append(Worker(KINDS[name], numbers[name], seconds))
                counts[name].seconds += seconds
                numbers[name] += 10_000
            time.sleep(0.1)
            for worker in [worker for worker in workers if worker.poll()]:
                workers.remove(worker)
                finish(worker, counts[worker.kind.name], workers)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        for worker in workers:
            worker.kill()
    return report(counts, arguments.seed)


def finish(worker: Worker, count: Count, workers: list[Worker]) -> None:
    """Add the counts of a worker; if it died, another one shrinks the case that killed it."""
    n_cases, failure, died = worker.result()
    count.n_cases += n_cases
    count.seconds += max(0.0, worker.age - worker.seconds)
    if died and worker.death is None:
        workers.append(Worker(worker.kind, worker.number, worker.seconds, death=failure))
        return
    failure = failure or worker.death
    if failure is None:
        return
    count.n_failures += 1
    path = save_failure(worker.kind, failure)
    print(f"FAILED {worker.kind.name} (number {worker.number}): {path}\n{failure.error}")
    sys.stdout.flush()


def report(counts: dict[str, Count], seed: int) -> int:
    """Print the counts, as a table and as JSON."""
    print(f"{'kind':<28}{'cases':>10}{'failures':>10}{'seconds':>10}")
    for name, count in counts.items():
        print(f"{name:<28}{count.n_cases:>10,}{count.n_failures:>10}{count.seconds:>10,.0f}")
    n_cases = sum(count.n_cases for count in counts.values())
    n_failures = sum(count.n_failures for count in counts.values())
    print(f"{'all':<28}{n_cases:>10,}{n_failures:>10}")
    print(json.dumps({"seed": seed, **{name: asdict(count) for name, count in counts.items()}}))
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
