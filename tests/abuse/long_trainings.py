"""Long training runs, which only an external event ends.

``python -m abuse.long_trainings CASE`` starts some in daemon threads and exits while they run, see
`abuse.exits`. It imports as little as possible.
"""

import json
import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

from hedgerow import LinearCRF, TreeCRF

__all__ = ["build", "draw_data", "sleep"]


def draw_data() -> tuple[list[Any], list[Any]]:
    """X and y: ten sequences of 300 positions, 8 columns, 5 labels."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(300, 8)) for _ in range(10)], list(rng.integers(0, 5, (10, 300)))


def build(case: dict[str, Any], n_steps: int) -> Any:
    """An estimator with this many rounds or iterations."""
    common = {"order": case["order"], "n_jobs": case["n_jobs"]}
    if case["estimator"] == "TreeCRF":
        return TreeCRF(n_rounds=n_steps, **common)
    return LinearCRF(max_iter=n_steps, tol=0, **common)


def sleep(seconds: float) -> None:
    """Wait until this process has used this much more processor time, in any thread."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        time.sleep(0.001)


def main() -> None:
    """Exit while daemon threads are training."""
    case = json.loads(sys.argv[1])
    X, y = draw_data()
    for _ in range(case["n_threads"]):
        threading.Thread(target=build(case, 10**6).fit, args=(X, y), daemon=True).start()
    sleep(case["seconds"])
    if case["end"] == "exit":
        sys.exit(3)
    if case["end"] == "error":
        raise RuntimeError("planned")
    if case["end"] == "SIGTERM":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)  # it comes at once


if __name__ == "__main__":
    main()
