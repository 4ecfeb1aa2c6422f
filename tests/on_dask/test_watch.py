"""Waiting for tasks of workers that fail in every way, without a cluster."""

from concurrent.futures import Future

import pytest
from distributed.scheduler import KilledWorker

from hedgerow.comm import LostContactError, WorkerError
from hedgerow.dask import watch
from hedgerow.dask.watch import Watch, answer_time


class Task:
    """A task of a worker that is done, or never will be."""

    def __init__(self, status, error=None):
        self.status = status
        self.error = error

    def done(self):
        return self.status != "pending"

    def exception(self):
        return self.error


class Cluster:
    """A client whose workers are there, and send heartbeats or none."""

    def __init__(self, addresses, beating=True):
        self.addresses = addresses
        self.beating = beating
        self.now = 0.0

    @property
    def scheduler(self):
        return self

    def sync(self, ask):
        return ask()

    def identity(self):
        self.now += self.beating
        return {"workers": {address: {"last_seen": self.now} for address in self.addresses}}


LOST = LostContactError("worker 0 of 2 has lost contact")
PENDING, DONE = Task("pending"), Task("finished")


def wait_for(tasks, cluster=None, connected=None):
    Watch(cluster or Cluster(tasks), 0.01).wait_for(tasks, connected)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    def wait(*_, **__):
        raise TimeoutError

    monkeypatch.setattr(watch, "wait", wait)


def test_all_is_well():
    wait_for({"a": DONE, "b": DONE})


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task("error", KilledWorker("k", None, 1)), "a worker was lost: b; train again on the"),
        (Task("cancelled"), "a worker was lost: b"),
        (Task("error", LOST), "a worker lost contact with the others; train again"),
        (Task("error", WorkerError("they round differently")), "they round differently"),
    ],
)
def test_a_task_that_fails(task, message):
    with pytest.raises(WorkerError, match=message):
        wait_for({"a": DONE, "b": task})


def test_errors_of_the_data_are_raised_as_they_are():
    with pytest.raises(ZeroDivisionError, match="of worker b"):
        wait_for({"a": Task("error", LOST), "b": Task("error", ZeroDivisionError("of worker b"))})


def test_a_worker_that_is_not_there_any_more():
    with pytest.raises(WorkerError, match="a worker was lost: b"):
        wait_for({"a": PENDING, "b": PENDING}, Cluster(["a"]))


def test_a_worker_without_heartbeats():
    with pytest.raises(WorkerError, match="a worker did not answer in time: a, b"):
        wait_for({"a": PENDING, "b": PENDING}, Cluster(["a", "b"], beating=False))


def test_a_worker_that_others_have_lost_contact_with():
    with pytest.raises(WorkerError, match="a worker did not answer in time: b"):
        wait_for({"a": Task("error", LOST), "b": PENDING})


def test_a_worker_that_is_not_connected_in_time():
    with pytest.raises(WorkerError, match=r"a worker was not connected after 0\.01 seconds: b"):
        wait_for({"a": PENDING, "b": PENDING}, connected={"a"})


def test_a_worker_that_is_gone_before_the_others_can_connect(monkeypatch):
    monkeypatch.setattr(watch, "PERIOD", 0.001)
    with pytest.raises(WorkerError, match="a worker was lost: b"):
        Watch(Cluster(["a"]), 0.01).wait_with(Future(), ["a", "b"])
    with pytest.raises(WorkerError, match="a worker did not answer in time: a"):
        Watch(Cluster(["a"], beating=False), 0.01).wait_with(Future(), ["a"])
    found = Future()
    found.set_result("how to connect")
    assert Watch(Cluster([]), 0.01).wait_with(found, ["a"]) == "how to connect"


def test_workers_wait_for_each_other_less_than_the_client_does():
    assert [answer_time(timeout) for timeout in (0.5, 2, 8, 300)] == [1, 2, 6, 295]
