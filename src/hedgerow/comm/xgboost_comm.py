"""Communication by the collective operations of XGBoost."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm.protocol import LostContactError

__all__ = ["XGBoostComm"]

T = TypeVar("T")
Number = TypeVar("Number", np.int64, np.float64)

# Bytes of a number.
WORD = 8


class _Quiet:
    """Discards standard output while any thread is in a ``with`` block; the blocks may overlap."""

    def __init__(self) -> None:
        self._lock, self._n_inside = Lock(), 0
        self._redirected = redirect_stdout(None)

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._redirected.__enter__()
            self._n_inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._redirected.__exit__(None, None, None)


_quiet = _Quiet()


class XGBoostComm:
    """Processes in an ``xgboost.collective.CommunicatorContext``, such as Dask workers.

    Create it inside the context, or with `connect`, and use it from one thread only. If a worker
    fails, or does not answer within the timeout, all others raise a `LostContactError`.
    """

    def __init__(self) -> None:
        from xgboost import collective

        self._collective = collective
        self.rank: int = collective.get_rank()
        self.size: int = collective.get_world_size()

    @classmethod
    @contextmanager
    def connect(cls, arguments: Mapping[str, Any]) -> Iterator[XGBoostComm]:
        """Connect this process to the others, as a context manager.

        Parameters
        ----------
        arguments
            Arguments of ``xgboost.collective.init``: the output of a tracker's ``worker_args``,
            and ``dmlc_timeout``, the number of seconds that a worker waits for another.

        Raises
        ------
        LostContactError
            If the workers cannot connect to each other.
        """
        import xgboost
        from xgboost import collective

        with xgboost.config_context(verbosity=0):
            try:
                with _quiet:  # it prints the rank
                    collective.init(**arguments)
            except xgboost.core.XGBoostError as error:
                reason = str(error).partition("Stack trace")[0].strip()
                raise LostContactError(f"the workers could not be connected: {reason}") from error
            try:
                yield cls()
            finally:
                with suppress(xgboost.core.XGBoostError):  # of workers that are gone
                    collective.finalize()

    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum of the arrays of all workers, element by element."""
        return self._reduce(values, self._collective.Op.SUM)

    def max(self, values: NDArray[Number]) -> NDArray[Number]:
        """Maximum of the arrays of all workers, element by element."""
        return self._reduce(values, self._collective.Op.MAX)

    def _reduce(self, values: NDArray[Number], operation: Any) -> NDArray[Number]:
        values = np.asarray(values)  # it may be a single number
        if not values.size:
            return values
        found: NDArray[Number] = self._call(self._collective.allreduce, values, operation)
        return found.reshape(values.shape)

    def gather(self, value: T) -> list[T]:
        """Collect one object from each worker, ordered by rank, on every worker."""
        # Two sums, of arrays in which each worker fills its own part and leaves zeros elsewhere:
        # broadcasting from each worker in turn would take one message per worker.
        own = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        lengths = np.zeros(self.size, np.int64)
        lengths[self.rank] = len(own)
        lengths = self.sum(lengths)
        words = np.concatenate([[0], np.cumsum(-(-lengths // WORD))])
        everything = np.zeros(words[-1], np.int64)
        mine = everything[words[self.rank] : words[self.rank + 1]].view(np.uint8)
        mine[: len(own)] = np.frombuffer(own, np.uint8)
        heard = self.sum(everything).view(np.uint8)
        begins = WORD * words[:-1]
        return [
            pickle.loads(heard[begin : begin + length].data)
            for begin, length in zip(begins, lengths, strict=True)
        ]

    def broadcast(self, value: T, root: int = 0) -> T:
        """Send the object of one worker to all workers."""
        wrapped = (value,) if root == self.rank else None  # None itself cannot be sent
        found: tuple[T] = self._call(self._collective.broadcast, wrapped, root)
        return found[0]

    def _call(self, operation: Any, *arguments: Any) -> Any:
        from xgboost.core import XGBoostError

        try:
            return operation(*arguments)
        except XGBoostError as error:
            raise LostContactError(
                f"worker {self.rank} of {self.size} has lost contact with the others: one of them "
                "failed or did not answer in time; look for its error, and resume from the "
                "checkpoint if there is one"
            ) from error
