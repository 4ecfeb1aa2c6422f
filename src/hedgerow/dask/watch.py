"""Watch: waits for the tasks of a training run, and notices when one of them cannot finish."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_here
from contextlib import suppress
from typing import Any, TypeVar

from distributed import Client, wait
from distributed.scheduler import KilledWorker

from hedgerow.comm import LostContactError, WorkerError

__all__ = ["Watch", "answer_time", "find_workers"]

T = TypeVar("T")

# Seconds between two checks that all workers are alive.
PERIOD = 0.5
# Once a worker has lost contact with the others: seconds to wait for the error of the one that
# failed; if the timeout is short, a share of it.
GRACE, SHARE = 5.0, 0.25


def answer_time(timeout: float) -> int:
    """Whole seconds that a worker waits for another one.

    It is shorter than the client's timeout, so that the client learns which worker failed before it
    gives up.
    """
    return max(1, round(timeout - _grace(timeout)))


def find_workers(client: Client) -> dict[str, Any]:
    """What the scheduler knows about each worker, by its address.

    `Client.scheduler_info` is not used: its result is a copy that the client refreshes in the
    background, and that at times contains no workers.
    """
    found: dict[str, Any] = client.sync(client.scheduler.identity)["workers"]
    return found


class Watch:
    """Waits for tasks, one per worker.

    Parameters
    ----------
    client
        The client of the workers.
    timeout
        Seconds without a heartbeat after which a worker has failed.
    """

    def __init__(self, client: Client, timeout: float) -> None:
        self._client = client
        self._timeout = timeout
        # The last heartbeat of each worker, by the clock of the scheduler, and when it became known
        # here, by the clock of this process.
        self._heartbeats: dict[str, tuple[float, float]] = {}

    def wait_for(self, tasks: Mapping[str, Any], connected: Collection[str] | None = None) -> None:
        """Wait until all tasks are done, or one of them cannot finish.

        Parameters
        ----------
        tasks
            Futures, by the addresses of workers.
        connected
            Addresses of the workers that are connected so far, a collection that grows while this
            waits; all workers must be connected before the timeout. None: they do not connect.

        Raises
        ------
        WorkerError
            A worker was lost, or did not answer in time.
        Exception
            The error of a worker, unless it is a consequence of the error of another one.
        """
        waiting, begin = dict(tasks), time.monotonic()
        consequence: Exception | None = None
        deadline = float("inf")
        while waiting:
            with suppress(TimeoutError):
                wait(list(waiting.values()), timeout=PERIOD, return_when="FIRST_COMPLETED")
            for address in [each for each, future in waiting.items() if future.done()]:
                error = _error_of(waiting.pop(address), address)
                if error is not None:
                    consequence = error
                    deadline = min(deadline, time.monotonic() + _grace(self._timeout))
            self._check_heartbeats(waiting)
            now = time.monotonic()
            if waiting and now > deadline:
                raise _failure("did not answer in time", waiting)
            missing = () if connected is None else set(waiting) - set(connected)
            if missing and now > begin + self._timeout:
                raise _failure(f"was not connected after {self._timeout:g} seconds", missing)
        if consequence is not None:
            raise _failure("lost contact with the others", []) from consequence

    def wait_with(self, found: Future[T], addresses: Collection[str]) -> T:
        """Wait for a future of this process while all workers are alive, and return its result.

        Raises
        ------
        WorkerError
            A worker was lost, or did not answer in time.
        """
        while found not in wait_here([found], timeout=PERIOD).done:
            self._check_heartbeats(addresses)
        return found.result()

    def _check_heartbeats(self, addresses: Collection[str]) -> None:
        """Raise WorkerError if a worker is gone, or its last heartbeat is too long ago."""
        workers, now = find_workers(self._client), time.monotonic()
        if lost := set(addresses) - set(workers):
            raise _failure("was lost", lost)
        silent = []
        for address in addresses:
            last = workers[address]["last_seen"]
            if self._heartbeats.get(address, (None, now))[0] != last:
                self._heartbeats[address] = last, now
            if now - self._heartbeats[address][1] > self._timeout:
                silent.append(address)
        if silent:
            raise _failure("did not answer in time", silent)


def _error_of(task: Any, address: str) -> LostContactError | None:
    """The error of a finished task if another worker caused it; raises any other error."""
    if task.status == "finished":
        return None
    error = task.exception() if task.status == "error" else None
    if error is None or isinstance(error, KilledWorker):
        raise _failure("was lost", [address]) from error
    if not isinstance(error, LostContactError):
        raise error
    return error


def _failure(what: str, addresses: Iterable[str]) -> WorkerError:
    who = ", ".join(sorted(addresses))
    return WorkerError(
        f"training has failed: a worker {what}{who and f': {who}'}; train again on the "
        "workers that are left, with the same checkpoint if there is one: training resumes from it "
        "and gives the same model"
    )


def _grace(timeout: float) -> float:
    return min(GRACE, SHARE * timeout)
