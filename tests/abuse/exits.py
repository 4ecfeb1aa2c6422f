"""Exit of Python, or of the process, while threads are running in the core."""

import json
import os
import signal
import subprocess
import sys

from hypothesis import strategies as st

from abuse.children import SECONDS
from abuse.kind import Case, Kind

__all__ = ["KINDS"]

# How the main thread ends, and the exit status that the process must have then. On Windows a signal
# ends a process with its number.
SIGNALLED = -signal.SIGTERM if os.name == "posix" else signal.SIGTERM
ENDS = {"return": 0, "exit": 3, "error": 1, "SIGTERM": SIGNALLED}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Actions of daemon threads, and when and how the main thread ends."""
    return {
        "estimator": draw(st.sampled_from(["LinearCRF", "TreeCRF"])),
        "n_threads": draw(st.sampled_from([2, 1, 3, 4])),
        "n_jobs": draw(st.sampled_from([2, 1, 3])),
        "order": draw(st.integers(1, 2)),
        "seconds": draw(st.sampled_from([0.1, 0.03, 0.3, 0.5])),
        "end": draw(st.sampled_from(list(ENDS))),
    }


def check(case: Case) -> None:
    """The process ends as it would without those threads."""
    done = subprocess.run(
        [sys.executable, "-m", "abuse.long_trainings", json.dumps(case)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == ENDS[case["end"]], f"{done.returncode}: {done.stderr}"
    errors = [line for line in done.stderr.splitlines() if "planned" not in line]
    assert case["end"] == "error" or not errors, done.stderr


KINDS = [Kind("concurrency-exit", cases(), check, in_suite=1, share=0.5)]
