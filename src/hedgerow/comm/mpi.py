"""Communication by MPI, with mpi4py."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["MPIComm"]

T = TypeVar("T")
Number = TypeVar("Number", np.int64, np.float64)


class MPIComm:
    """Processes of an MPI program, each of which calls ``fit(..., comm=MPIComm())``.

    Start the program with ``mpiexec -n 4 python -m mpi4py program.py``, so that an error in one
    process ends all of them. Otherwise, the other processes would wait forever.

    Parameters
    ----------
    communicator : mpi4py.MPI.Comm, optional
        The processes that take part; by default all processes of the program, ``MPI.COMM_WORLD``.
        Only NumPy buffers and picklable objects are sent.
    """

    def __init__(self, communicator: Any = None) -> None:
        if communicator is None:
            from mpi4py import MPI

            communicator = MPI.COMM_WORLD
        self._communicator = communicator
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()

    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum of the arrays of all workers, element by element."""
        from mpi4py import MPI

        return self._reduce(values, MPI.SUM)

    def max(self, values: NDArray[Number]) -> NDArray[Number]:
        """Maximum of the arrays of all workers, element by element."""
        from mpi4py import MPI

        return self._reduce(values, MPI.MAX)

    def _reduce(self, values: NDArray[Number], operation: Any) -> NDArray[Number]:
        values = np.asarray(values, order="C")  # without adding a dimension to a single number
        out = np.empty_like(values)
        self._communicator.Allreduce(values, out, operation)
        return out

    def gather(self, value: T) -> list[T]:
        """Collect one object from each worker, ordered by rank, on every worker."""
        objects: list[T] = self._communicator.allgather(value)
        return objects

    def broadcast(self, value: T, root: int = 0) -> T:
        """Send the object of one worker to all workers."""
        found: T = self._communicator.bcast(value, root)
        return found
