"""Comm: the interface of workers that train one model together, and a single worker."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALONE", "Alone", "Comm", "LostContactError", "WorkerError", "check_comm"]

T = TypeVar("T")
Number = TypeVar("Number", np.int64, np.float64)


class WorkerError(RuntimeError):
    """The workers of a training run disagree, or one of them has failed."""


class LostContactError(WorkerError):
    """A worker cannot continue because another one has failed or does not answer."""


@runtime_checkable
class Comm(Protocol):
    """Workers that train one model together.

    All workers call the same methods in the same order, with arrays of the same shape.

    Attributes
    ----------
    rank : int
        Number of this worker, from 0.
    size : int
        Number of workers.
    """

    @property
    def rank(self) -> int:
        """Number of this worker, from 0."""

    @property
    def size(self) -> int:
        """Number of workers."""

    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum of the arrays of all workers, element by element, modulo 2^64.

        Only integers are summed, so that the result does not depend on the order of the workers.
        """

    def max(self, values: NDArray[Number]) -> NDArray[Number]:
        """Maximum of the arrays of all workers, element by element; NaN is not allowed."""

    def gather(self, value: T) -> list[T]:
        """Collect one object from each worker, ordered by rank, on every worker."""

    def broadcast(self, value: T, root: int = 0) -> T:
        """Send the object of one worker to all workers; what the others pass is ignored."""


class Alone:
    """A single worker: nothing is sent."""

    rank = 0
    size = 1

    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The array itself."""
        return values

    def max(self, values: NDArray[Number]) -> NDArray[Number]:
        """The array itself."""
        return values

    def gather(self, value: T) -> list[T]:
        """A list with only this object."""
        return [value]

    def broadcast(self, value: T, root: int = 0) -> T:
        """The object itself."""
        return value


ALONE = Alone()


def check_comm(comm: Any) -> Comm:
    """The argument `comm` of `fit`, where None means a single worker; raises TypeError."""
    if comm is None:
        return ALONE
    if not isinstance(comm, Comm):
        raise TypeError(
            f"comm is of type {type(comm).__name__}; expected an object with rank, size, sum, max, "
            "gather and broadcast, such as hedgerow.comm.MPIComm()"
        )
    return comm
