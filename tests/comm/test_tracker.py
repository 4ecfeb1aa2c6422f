"""The tracker process, which connects workers."""

import pytest

from hedgerow.comm import WorkerError
from hedgerow.comm.tracker import TrackerProcess, track


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
