"""Clusters: which worker reads what, one task for each, and what if one of them fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from distributed import Client, MultiLock, wait
from distributed.comm import get_address_host
from distributed.scheduler import KilledWorker
from distributed.utils import get_ip

from hedgerow.comm import WorkerError
from hedgerow.comm.tracker import track
from hedgerow.dask.partitions import Part
from hedgerow.dask.task import Job, read_parts, train_model

__all__ = ["Plan", "spread", "train"]

# Which partitions each worker trains on, by the address of the worker.
Plan = Mapping[str, Sequence[Part]]

# Seconds between two looks at whether all workers are still there.
PERIOD = 0.5
# Seconds for others to say why, once a worker has lost contact with them.
GRACE = 5.0


def spread(sizes: Mapping[Any, int], addresses: Sequence[str]) -> dict[str, list[Any]]:
    """Deal out parts by their numbers of rows: the largest first, each to whoever has least."""
    plan: dict[str, list[Any]] = {address: [] for address in sorted(addresses)}
    loads = dict.fromkeys(plan, 0)
    for part in sorted(sizes, key=lambda each: -sizes[each]):
        address = min(loads, key=lambda each: loads[each])
        plan[address].append(part)
        loads[address] += sizes[part]
    return {address: parts for address, parts in plan.items() if parts}


def train(
    client: Client, plan: Plan, job: Job, *, timeout: float, report: Callable[[Any], None]
) -> dict[str, Any]:
    """Train on all workers of a plan; returns the attributes of the fitted estimator.

    All workers read first, for as long as it takes; only then are they connected, and wait for each
    other no longer than the timeout.

    Parameters
    ----------
    client
        Whose workers they are.
    plan
        What each of them trains on.
    job
        What all of them have to know.
    timeout
        Seconds that a worker waits for the others.
    report
        Called with the number and the figures of every step.

    Raises
    ------
    WorkerError
        A worker was lost, or did not answer in time.
    Exception
        What a worker raised.
    """
    locks = [f"hedgerow-{address}" for address in plan]
    with MultiLock(locks, client=client), _listen(client, job.topic, report):
        read = {}
        for address, parts in plan.items():
            names, rows = [part.name for part in parts], [part.rows for part in parts]
            is_alone = len(plan) == 1
            read[address] = _submit(client, address, read_parts, job.reader, names, rows, is_alone)
        with _ending(client, read), _connection(client, len(plan), timeout) as connection:
            _wait_for_all(client, read)
            training = {}
            for rank, (address, data) in enumerate(read.items()):
                own = connection and {**connection, "dmlc_task_id": f"{rank:06d}"}
                training[address] = _submit(client, address, train_model, job, data, own)
            with _ending(client, training):
                _wait_for_all(client, training)
                fitted: dict[str, Any] = next(iter(training.values())).result()
                return fitted


def _submit(client: Client, address: str, task: Callable[..., Any], *arguments: Any) -> Any:
    """Begin a task that only this worker can do."""
    return client.submit(
        task, *arguments, workers=[address], allow_other_workers=False, pure=False, retries=0
    )


@contextmanager
def _listen(client: Client, topic: str, report: Callable[[Any], None]) -> Iterator[None]:
    client.subscribe_topic(topic, lambda event: report(event[1]))
    try:
        yield
    finally:
        client.unsubscribe_topic(topic)


@contextmanager
def _ending(client: Client, futures: Mapping[str, Any]) -> Iterator[None]:
    """Forget tasks and their results at the end of a ``with``, whatever has become of them."""
    try:
        yield
    finally:
        client.cancel(list(futures.values()), force=True)


@contextmanager
def _connection(client: Client, n_workers: int, timeout: float) -> Iterator[dict[str, Any] | None]:
    """Arguments with which workers connect to each other; None for one worker alone."""
    host = get_ip(get_address_host(client.scheduler.address)) if n_workers > 1 else ""
    with nullcontext() if n_workers == 1 else track(n_workers, host) as found:
        yield None if found is None else {**found, "dmlc_timeout": max(1, round(timeout))}


def _wait_for_all(client: Client, futures: Mapping[str, Any]) -> None:
    """Wait until all tasks are done, or there is a reason why not all of them will be.

    What a worker raised is raised here, unless it is the consequence of what another one did.
    """
    waiting = dict(futures)
    consequence: Exception | None = None
    deadline = float("inf")
    while waiting:
        with suppress(TimeoutError):
            wait(list(waiting.values()), timeout=PERIOD, return_when="FIRST_COMPLETED")
        for address, future in list(waiting.items()):
            if not future.done():
                continue
            del waiting[address]
            if future.status == "finished":
                continue
            error = future.exception() if future.status == "error" else None
            if error is None or isinstance(error, KilledWorker):
                raise _failure(f"was lost: {address}") from error
            if not isinstance(error, WorkerError):
                raise error
            consequence, deadline = error, min(deadline, time.monotonic() + GRACE)
        if lost := set(waiting) - set(client.scheduler_info(n_workers=-1)["workers"]):
            raise _failure(f"was lost: {', '.join(sorted(lost))}")
        if waiting and time.monotonic() > deadline:
            raise _failure(f"did not answer in time: {', '.join(sorted(waiting))}")
    if consequence is not None:
        raise _failure("lost contact with the others") from consequence


def _failure(what: str) -> WorkerError:
    return WorkerError(
        f"the training has failed: a worker {what}; fit again on the workers that are there, with "
        "the same checkpoint if there is one: it goes on from it, and gives the same model"
    )
