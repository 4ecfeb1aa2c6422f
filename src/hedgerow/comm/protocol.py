"""Comm: the interface of workers that train one model together, and the one worker alone."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALONE", "Alone", "Comm", "LostContactError", "WorkerError", "check_comm"]

T = TypeVar("T")
Number = TypeVar("Number", np.int64, np.float64)


class WorkerError(RuntimeError):
    """The workers of a training do not agree, or one of them has failed."""


class LostContactError(WorkerError):
    """A worker cannot go on because another one has failed or does not answer."""


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

        Integers alone, so that it does not depend on the order of the workers.
        """

    def max(self, values: NDArray[Number]) -> NDArray[Number]:
        """Maximum of the arrays of all workers, element by element; no NaN."""

    def gather(self, value: T) -> list[T]:
        """Objects of all workers, by rank, on every worker."""

    def broadcast(self, value: T, root: int = 0) -> T:
        """The object of one worker, on every worker; what the others pass is ignored."""


class Alone:
    """One worker alone: nothing is sent."""

    rank = 0
    size = 1

    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The array itself."""
        return values

    def max(self, values: NDArray[Number]) -> NDArray[Number]:
        """The array itself."""
        return values

    def gather(self, value: T) -> list[T]:
        """The object alone."""
        return [value]

    def broadcast(self, value: T, root: int = 0) -> T:
        """The object itself."""
        return value


ALONE = Alone()


def check_comm(comm: Any) -> Comm:
    """The argument of `fit`, None being one worker alone; raises TypeError."""
    if comm is None:
        return ALONE
    if not isinstance(comm, Comm):
        raise TypeError(
            f"comm is of type {type(comm).__name__}; expected an object with rank, size, sum, max, "
            "gather and broadcast, such as hedgerow.comm.MPIComm()"
        )
    return comm
