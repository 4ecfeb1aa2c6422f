"""Communication between threads of one process, to try out what several workers would do."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from threading import Barrier, BrokenBarrierError
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm.protocol import LostContactError

__all__ = ["ThreadComm"]

T = TypeVar("T")
Number = TypeVar("Number", np.int64, np.float64)


class ThreadComm:
    """One of several threads that act as workers; `run` creates them.

    Parameters
    ----------
    rank
        Number of this worker, from 0.
    barrier
        The barrier at which all threads meet; its timeout is how long they wait for each other.
    slots
        The values that are exchanged, one slot per worker.
    """

    def __init__(self, rank: int, barrier: Barrier, slots: list[Any]) -> None:
        self.rank = rank
        self.size = len(slots)
        self._barrier = barrier
        self._slots = slots

    @classmethod
    def run(cls, size: int, work: Callable[[ThreadComm], T], *, timeout: float = 60.0) -> list[T]:
        """Call a function once for each of ``size`` workers, in threads, and return the results.

        If workers fail, the first error that is not a consequence of another one is raised.
        """
        barrier, slots = Barrier(size, timeout=timeout), [None] * size

        def run_one(rank: int) -> T:
            try:
                return work(cls(rank, barrier, slots))
            except BaseException:
                barrier.abort()
                raise

        with ThreadPoolExecutor(size) as pool:
            futures = [pool.submit(run_one, rank) for rank in range(size)]
            errors = [error for future in futures if (error := future.exception()) is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, LostContactError)):
            raise error
        return [future.result() for future in futures]

    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum of the arrays of all workers, element by element."""
        total: NDArray[np.int64] = reduce(np.add, self.gather(np.array(values)))
        return total

    def max(self, values: NDArray[Number]) -> NDArray[Number]:
        """Maximum of the arrays of all workers, element by element."""
        largest: NDArray[Number] = reduce(np.maximum, self.gather(np.array(values)))
        return largest

    def gather(self, value: T) -> list[T]:
        """Collect one object from each worker, ordered by rank, on every worker."""
        try:
            self._slots[self.rank] = value
            self._barrier.wait()
            found = list(self._slots)
            self._barrier.wait()  # no thread continues before all have read
        except BrokenBarrierError:
            raise LostContactError(
                f"worker {self.rank} of {self.size} cannot continue: another worker has failed or "
                "did not answer in time"
            ) from None
        return found

    def broadcast(self, value: T, root: int = 0) -> T:
        """Send the object of one worker to all workers."""
        return self.gather(value)[root]
