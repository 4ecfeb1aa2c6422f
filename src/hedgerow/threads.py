"""Threads: the number of threads for a parameter `n_jobs`."""

from __future__ import annotations

import os

import numpy as np

__all__ = ["count_threads"]

# More than the number of cores of any machine.
MAX_THREADS = 10_000


def count_threads(n_jobs: int | None) -> int:
    """Number of threads for `n_jobs`: None or -1 for all cores, -2 for all but one, and so on."""
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    else:
        n_cores = os.cpu_count() or 1
    if n_jobs is None:
        return n_cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(
            f"n_jobs is {n_jobs!r}; expected the number of threads, a positive integer; None or -1 "
            "for all cores; or -2 for all but one"
        )
    if n_jobs > MAX_THREADS:
        raise ValueError(f"n_jobs is {n_jobs}; expected at most {MAX_THREADS} threads")
    return int(n_jobs) if n_jobs > 0 else max(1, n_cores + 1 + int(n_jobs))
