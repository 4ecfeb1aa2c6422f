"""Clusters: which worker reads what, one task for each, and what if one of them fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from distributed import Client, MultiLock, wait
from distributed.comm import get_address_host
from distributed.utils import get_ip

from hedgerow.comm import WorkerError
from hedgerow.dask.partitions import Part
from hedgerow.dask.task import Job, Outcome, run_task

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
    with (
        MultiLock(locks, client=client),
        _listen(client, job.topic, report),
        _tracker(client, len(plan), timeout) as collective,
    ):
        futures = {}
        for rank, (address, parts) in enumerate(plan.items()):
            named = None if collective is None else {**collective, "dmlc_task_id": f"{rank:06d}"}
            future = client.submit(
                run_task,
                job,
                [part.name for part in parts],
                [part.rows for part in parts],
                named,
                workers=[address],
                allow_other_workers=False,
                pure=False,
                retries=0,
            )
            futures[address] = future
        try:
            return _collect(client, futures)
        finally:
            client.cancel(list(futures.values()), force=True)


@contextmanager
def _listen(client: Client, topic: str, report: Callable[[Any], None]) -> Iterator[None]:
    client.subscribe_topic(topic, lambda event: report(event[1]))
    try:
        yield
    finally:
        client.unsubscribe_topic(topic)


@contextmanager
def _tracker(client: Client, n_workers: int, timeout: float) -> Iterator[dict[str, Any] | None]:
    """Where workers find each other; None for one worker alone."""
    if n_workers == 1:
        yield None
        return
    from xgboost.core import XGBoostError
    from xgboost.tracker import RabitTracker

    assert client.scheduler is not None
    host = get_ip(get_address_host(client.scheduler.address))
    tracker = RabitTracker(n_workers=n_workers, host_ip=host, sortby="task")
    tracker.start()
    try:
        yield {**tracker.worker_args(), "dmlc_timeout": max(1, round(timeout))}
    finally:
        with suppress(XGBoostError):  # it waits for workers that are gone
            tracker.free()


def _collect(client: Client, futures: Mapping[str, Any]) -> dict[str, Any]:
    """Wait for all workers, or for the first reason why not all of them will come to an end."""
    outcomes: dict[str, Outcome] = {}
    waiting = dict(futures)
    deadline: float | None = None
    while waiting:
        with suppress(TimeoutError):
            wait(list(waiting.values()), timeout=PERIOD, return_when="FIRST_COMPLETED")
        for address, future in list(waiting.items()):
            if future.done():
                del waiting[address]
                outcomes[address] = _read_outcome(future)
        failed = [each for each in outcomes.values() if each.error is not None]
        for outcome in failed:
            if not outcome.is_consequence:
                assert outcome.error is not None
                raise outcome.error
        lost = [address for address in waiting if address not in _addresses(client)]
        if lost:
            raise _failure(f"was lost: {_listed(lost)}")
        if failed and deadline is None:
            deadline = time.monotonic() + GRACE
        if deadline is not None and (not waiting or time.monotonic() > deadline):
            if waiting:
                raise _failure(f"did not answer in time: {_listed(waiting)}")
            raise _failure("could not be reached by the others") from failed[0].error
    (fitted,) = [each.fitted for each in outcomes.values() if each.fitted is not None]
    return fitted


def _read_outcome(future: Any) -> Outcome:
    if future.status == "finished":
        outcome: Outcome = future.result()
        return outcome
    if future.status == "error":
        return Outcome(error=future.exception())
    return Outcome(error=WorkerError(f"a task of the training was {future.status}"))


def _addresses(client: Client) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])


def _listed(addresses: Any) -> str:
    return ", ".join(sorted(addresses))


def _failure(what: str) -> WorkerError:
    return WorkerError(
        f"the training has failed: a worker {what}; fit again on the workers that are there, with "
        "the same checkpoint if there is one: it goes on from it, and gives the same model"
    )
