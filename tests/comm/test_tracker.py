"""The tracker process, which connects workers."""

from threading import Event

import pytest

from hedgerow.comm import WorkerError
from hedgerow.comm.tracker import TrackerProcess, start_tracking, track


def test_workers_find_each_other_by_a_process_of_its_own():
    with track(2, "127.0.0.1") as first, track(2, "127.0.0.1") as second:
        assert first["dmlc_tracker_uri"] == "127.0.0.1"
        assert first["dmlc_tracker_port"] != second["dmlc_tracker_port"]
    process = TrackerProcess.running()
    process.close()
    with pytest.raises(WorkerError, match="the process that connects the workers has ended"):
        process.ask({"name": "late", "n_workers": 2, "host": "127.0.0.1"})
    assert TrackerProcess.running() is not process
    TrackerProcess.running().close()


def test_nobody_waits_for_a_process_that_takes_long_to_start(monkeypatch):
    may_answer, forgotten = Event(), Event()

    def ask(self, request):
        assert may_answer.wait(60)
        return {"asked": request["n_workers"]}

    monkeypatch.setattr(TrackerProcess, "ask", ask)
    monkeypatch.setattr(TrackerProcess, "forget", lambda self, name: forgotten.set())
    with start_tracking(3, "127.0.0.1") as found:
        assert not found.done()
    assert not forgotten.is_set()
    may_answer.set()
    assert found.result() == {"asked": 3}
    assert forgotten.wait(60)
