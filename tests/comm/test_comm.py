"""Communication between workers: the same results with every implementation.

`on_dask/test_two_workers.py` has that of XGBoost, where there are two processes.
"""

import sys
from typing import Any

import numpy as np
import pytest

from comm.conversation import expected, talk
from hedgerow import LinearCRF
from hedgerow.comm import (
    ALONE,
    Comm,
    LostContactError,
    ThreadComm,
    WorkerError,
    XGBoostComm,
    check_comm,
)


def test_alone():
    assert talk(ALONE) == expected(1)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_threads(size: int):
    assert ThreadComm.run(size, talk) == [expected(size)] * size


def test_a_thread_that_fails_stops_the_others():
    def work(comm: Comm) -> None:
        if comm.rank == 1:
            raise ZeroDivisionError("of worker 1")
        comm.gather(0)

    with pytest.raises(ZeroDivisionError, match="of worker 1"):
        ThreadComm.run(3, work)


def test_a_thread_that_is_silent_is_an_error():
    def work(comm: Comm) -> None:
        if comm.rank == 0:
            comm.gather(0)

    with pytest.raises(WorkerError, match="worker 0 of 2 cannot continue: another worker has"):
        ThreadComm.run(2, work, timeout=0.05)


def test_a_failure_of_xgboost_is_named(monkeypatch: pytest.MonkeyPatch):
    core = pytest.importorskip("xgboost.core")

    def fail(*arguments: Any) -> None:
        raise core.XGBoostError("poll timeout")

    monkeypatch.setattr("xgboost.collective.allreduce", fail)
    with pytest.raises(LostContactError, match="worker 0 of 1 has lost contact with the others"):
        XGBoostComm().sum(np.ones(1, np.int64))


@pytest.mark.skipif(sys.platform == "win32", reason="xgboost has no tracker there")
def test_workers_that_do_not_find_each_other():
    pytest.importorskip("xgboost")
    nowhere = {"dmlc_tracker_uri": "127.0.0.1", "dmlc_tracker_port": 9, "dmlc_retry": 1}
    with (
        pytest.raises(LostContactError, match=r"the workers could not be connected: "),
        XGBoostComm.connect(nowhere | {"dmlc_timeout": 1, "dmlc_task_id": "0"}),
    ):
        pass


def test_what_is_no_comm():
    assert check_comm(None) is ALONE
    with pytest.raises(TypeError, match=r"comm is of type int; expected an object with rank, size"):
        LinearCRF().fit([[["a"]]], [["x"]], comm=3)
