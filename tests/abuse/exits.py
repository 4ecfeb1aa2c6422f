"""The end of Python, or of the process, while threads are at work in the core."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

from hypothesis import strategies as st

from abuse.children import SECONDS
from abuse.interrupts import build
from abuse.kind import Case, Kind

__all__ = ["KINDS"]

# How the main thread ends, and the exit status that the process must have then.
ENDS = {"return": 0, "exit": 3, "error": 1, "SIGTERM": -signal.SIGTERM}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """What daemon threads do, and when and how the main thread ends."""
    return {
        "estimator": draw(st.sampled_from(["LinearCRF", "TreeCRF"])),
        "n_threads": draw(st.sampled_from([3, 1, 2, 4])),
        "n_jobs": draw(st.sampled_from([2, 1, 3])),
        "order": draw(st.integers(1, 2)),
        "seconds": draw(st.sampled_from([0.3, 0.03, 0.1, 0.5])),
        "end": draw(st.sampled_from(list(ENDS))),
    }


def check(case: Case) -> None:
    """The process ends as it would without those threads."""
    done = subprocess.run(
        [sys.executable, "-c", "from abuse.exits import work; work()", json.dumps(case)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == ENDS[case["end"]], f"{done.returncode}: {done.stderr}"
    errors = [line for line in done.stderr.splitlines() if "planned" not in line]
    assert case["end"] == "error" or not errors, done.stderr


def work() -> None:
    """Begin trainings that take for ever, in daemon threads, and end."""
    import numpy as np

    case = json.loads(sys.argv[1])
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(300, 8)) for _ in range(10)], list(rng.integers(0, 5, (10, 300)))
    for _ in range(case["n_threads"]):
        threading.Thread(target=build(case, 10**6).fit, args=(X, y), daemon=True).start()
    begin = time.process_time()
    while time.process_time() < begin + case["seconds"]:
        time.sleep(0.001)
    if case["end"] == "exit":
        sys.exit(3)
    if case["end"] == "error":
        raise RuntimeError("planned")
    if case["end"] == "SIGTERM":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(SECONDS)


KINDS = [Kind("concurrency-exit", cases(), check, in_suite=1, share=0.5)]
