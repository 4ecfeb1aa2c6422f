"""Tracker: connects the workers of a training run, in a separate process.

XGBoost's tracker ends its process if a worker is lost while it connects. That must not be the
user's process.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import IO, Any
from uuid import uuid4

from hedgerow.comm.protocol import WorkerError

__all__ = ["start_tracking", "track"]

Arguments = dict[str, Any]


@contextmanager
def track(n_workers: int, host: str) -> Iterator[Arguments]:
    """Arguments with which workers connect to each other, valid within the ``with`` block."""
    with start_tracking(n_workers, host) as found:
        yield found.result()


@contextmanager
def start_tracking(n_workers: int, host: str) -> Iterator[Future[Arguments]]:
    """Like `track`, but a future of the arguments: the process takes seconds to start."""
    process, name = TrackerProcess.running(), uuid4().hex
    found: Future[Arguments] = Future()

    def ask() -> None:
        try:
            found.set_result(process.ask({"name": name, "n_workers": n_workers, "host": host}))
        except Exception as error:
            found.set_exception(error)

    Thread(target=ask, daemon=True).start()
    try:
        yield found
    finally:
        # After it has answered; in a callback, so that nobody has to wait for the answer here.
        found.add_done_callback(lambda _: process.forget(name))


class TrackerProcess:
    """The process that runs trackers; started when first needed, and again if it has ended."""

    _current: TrackerProcess | None = None
    _lock = Lock()

    def __init__(self) -> None:
        command = [sys.executable, "-m", "hedgerow.comm.tracker"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        atexit.register(self.close)

    @classmethod
    def running(cls) -> TrackerProcess:
        """The process, started if necessary."""
        with cls._lock:
            if cls._current is None or cls._current._process.poll() is not None:
                cls._current = cls()
            return cls._current

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start a tracker; returns the arguments with which workers connect to it."""
        with self._lock:
            self._write(request)
            out = self._file(self._process.stdout)
            answer = None if out.closed else out.readline()
        if not answer:
            raise WorkerError("the process that connects the workers has ended; train again")
        found: dict[str, Any] = json.loads(answer)
        return found

    def forget(self, name: str) -> None:
        """End a tracker."""
        with self._lock:
            self._write({"name": name})

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._file(self._process.stdin).close()
        self._file(self._process.stdout).close()

    def _write(self, request: dict[str, Any]) -> None:
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except (OSError, ValueError):
            return  # it has ended, which the next request for an answer will notice

    def _file(self, file: IO[str] | None) -> IO[str]:
        assert file is not None
        return file


def main() -> None:
    """Read requests, one JSON object per line, to start a tracker or to end one."""
    from xgboost.tracker import RabitTracker

    # From here on it would only print why it ends, which the workers report themselves.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    trackers: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "n_workers" not in request:
            if request["name"] in trackers:
                Thread(target=_end, args=[trackers.pop(request["name"])], daemon=True).start()
            continue
        tracker = RabitTracker(
            n_workers=request["n_workers"], host_ip=request["host"], sortby="task"
        )
        tracker.start()
        trackers[request["name"]] = tracker
        print(json.dumps(tracker.worker_args()), flush=True)


def _end(tracker: Any) -> None:
    from xgboost.core import XGBoostError

    with suppress(XGBoostError):  # the connections of workers that are gone
        tracker.free()


if __name__ == "__main__":
    main()
