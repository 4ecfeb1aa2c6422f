"""Clusters: which worker reads which data, and one task per worker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from distributed import Client, MultiLock
from distributed.comm import get_address_host
from distributed.utils import get_ip

from hedgerow.comm.tracker import start_tracking
from hedgerow.dask.partitions import Part
from hedgerow.dask.task import Event, Figures, Job, Outcome, read_parts, train_model
from hedgerow.dask.watch import Watch, answer_time

__all__ = ["Plan", "spread", "train"]

# Which partitions each worker trains on, by the address of the worker.
Plan = Mapping[str, Sequence[Part]]


def spread(sizes: Mapping[Any, int], addresses: Sequence[str]) -> dict[str, list[Any]]:
    """Assign parts by number of rows: the largest first, each to the worker with the fewest."""
    plan: dict[str, list[Any]] = {address: [] for address in sorted(addresses)}
    loads = dict.fromkeys(plan, 0)
    for part in sorted(sizes, key=lambda each: -sizes[each]):
        address = min(loads, key=lambda each: loads[each])
        plan[address].append(part)
        loads[address] += sizes[part]
    return {address: parts for address, parts in plan.items() if parts}


def train(
    client: Client, plan: Plan, job: Job, *, timeout: float, report: Callable[[Figures], None]
) -> list[Outcome]:
    """Train on all workers of a plan, and return the outcome of each.

    All workers read their data first, without a time limit. Only then are they connected; from
    then on, they wait for each other no longer than the timeout.

    Parameters
    ----------
    client
        The client of the workers.
    plan
        The data that each of them trains on.
    job
        What all of them need.
    timeout
        Seconds that a worker waits for the others.
    report
        Called with the figures of every step.

    Raises
    ------
    WorkerError
        A worker was lost, or did not answer in time.
    Exception
        What a worker raised.
    """
    locks = [f"hedgerow-{address}" for address in plan]
    watch = Watch(client, timeout)
    with MultiLock(locks, client=client), _listen(client, job.topic, report) as connected:
        read = {}
        for address, parts in plan.items():
            names, rows = [part.name for part in parts], [part.rows for part in parts]
            is_alone = len(plan) == 1
            read[address] = _submit(client, address, read_parts, job.reader, names, rows, is_alone)
        with _ending(client, read), _tracking(client, len(plan)) as tracking:
            watch.wait_for(read)
            found = tracking and watch.wait_with(tracking, plan)
            training = {}
            for rank, (address, data) in enumerate(read.items()):
                own = found and _connection(found, rank, timeout)
                training[address] = _submit(client, address, train_model, job, data, own)
            with _ending(client, training):
                watch.wait_for(training, connected if len(plan) > 1 else None)
                return [future.result() for future in training.values()]


def _submit(client: Client, address: str, task: Callable[..., Any], *arguments: Any) -> Any:
    """Start a task that is pinned to this worker."""
    return client.submit(
        task, *arguments, workers=[address], allow_other_workers=False, pure=False, retries=0
    )


@contextmanager
def _listen(
    client: Client, topic: str, report: Callable[[Figures], None]
) -> Iterator[Collection[str]]:
    """Receive the reports of workers; yields the addresses of those that are connected."""
    connected: set[str] = set()

    def hear(event: tuple[float, Event]) -> None:
        _, (address, figures) = event
        connected.add(address)
        if figures is not None:
            report(figures)

    client.subscribe_topic(topic, hear)
    try:
        yield connected
    finally:
        client.unsubscribe_topic(topic)


@contextmanager
def _ending(client: Client, futures: Mapping[str, Any]) -> Iterator[None]:
    """Release tasks and their results at the end of a ``with`` block, even after an error."""
    try:
        yield
    finally:
        client.cancel(list(futures.values()), force=True)


def _tracking(
    client: Client, n_workers: int
) -> AbstractContextManager[Future[dict[str, Any]] | None]:
    """A future of the arguments with which workers connect; None for a single worker."""
    if n_workers == 1:
        return nullcontext()
    return start_tracking(n_workers, get_ip(get_address_host(client.scheduler.address)))


def _connection(found: Mapping[str, Any], rank: int, timeout: float) -> dict[str, Any]:
    """Arguments with which a worker connects to the others."""
    # A refused connection is not tried again: all listen before any connects, so a worker that
    # refuses is gone.
    waiting = {"dmlc_timeout": answer_time(timeout), "dmlc_retry": 1}
    return {**found, **waiting, "dmlc_task_id": f"{rank:06d}"}
