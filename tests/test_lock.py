"""Locks: one training run at a time, released after a kill."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hedgerow import Checkpoint
from hedgerow import checkpoint as checkpoint_module
from hedgerow import lock as lock_module
from hedgerow.atomic_write import name_beside
from hedgerow.checkpoint import Identity, Record
from hedgerow.lock import Lock

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
CANNOT_CREATE = r"cannot create the lock file beside the checkpoint \({}\): '.*kept'"


@contextmanager
def held(path):
    lock = Lock.acquire(path)
    try:
        yield lock
    finally:
        lock.release()


def lock_file(path):
    return path.with_name(f"{name_beside(path)}.lock")


@contextmanager
def holder(path, then="input()"):
    """Another process that holds a lock and does something; it says a number first."""
    script = (
        f"import os, sys, time; sys.path[:0] = {sys.path}; from pathlib import Path; "
        f"from hedgerow.lock import Lock; lock = Lock.acquire(Path({str(path)!r}))\n{then}"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kept"


def say(number):
    return f"print({number}, flush=True); input()"


def test_whatever_path_leads_to_the_file(path, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(path)
    monkeypatch.chdir(tmp_path)
    with held(link) as lock:
        assert lock.is_held
        assert lock.is_safe
        for other in (path, link, Path("kept"), tmp_path / ".." / tmp_path.name / "kept"):
            with pytest.raises(
                BlockingIOError,
                match=rf"is in use by process {os.getpid()} on \S+ since [-0-9]+ [:0-9]+ UTC; wait",
            ):
                Lock.acquire(other)
        with held(tmp_path / "other"):
            pass
    assert not lock.is_held
    with held(path):
        pass
    lock.release()  # again: nothing happens
    assert list(tmp_path.iterdir()) == [link]


@pytest.mark.parametrize(
    ("one", "other"), [("run.ckpt", "Run.CKPT"), ("caf\u00e9", "cafe\u0301"), ("\u01f0", "J\u030c")]
)
def test_names_that_may_be_the_same_file_share_a_lock(one, other, tmp_path):
    with held(tmp_path / one), pytest.raises(BlockingIOError):
        Lock.acquire(tmp_path / other)


def test_another_thread_does_not_get_it(path):
    refused = []

    def acquire():
        try:
            Lock.acquire(path)
        except BlockingIOError as error:
            refused.append(error)

    with held(path):
        thread = threading.Thread(target=acquire)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_a_kill_releases_it(path, tmp_path):
    with holder(path, say(0)) as process:
        process.stdout.readline()
        with pytest.raises(BlockingIOError, match=f"in use by process {process.pid} on "):
            Lock.acquire(path)
        process.kill()
        process.wait()
        assert lock_file(path).exists()
        with held(path):
            assert lock_file(path).read_text().startswith(f"process {os.getpid()} on ")
    assert list(tmp_path.iterdir()) == []


class Interrupt:
    """A Ctrl-C after this many executed lines and returns in the given modules."""

    def __init__(self, n_left, *modules):
        self._n_left = n_left
        self._files = {module.__file__ for module in modules}
        self.is_done = False

    def trace(self, frame, event, _):
        if frame.f_code.co_filename not in self._files:
            return None
        if event in ("line", "return") and not self.is_done:
            self._n_left -= 1
            if self._n_left < 0:
                self.is_done = True
                raise KeyboardInterrupt
        return self.trace

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_an_interrupt_at_any_line_releases_it(path, tmp_path):
    checkpoint, identity = Checkpoint(path), Identity("TreeCRF", {}, {})
    for n_before in itertools.count():
        with (
            suppress(KeyboardInterrupt),
            Interrupt(n_before, lock_module, checkpoint_module) as interrupt,
            Record(checkpoint, identity),
        ):
            pass
        with held(checkpoint.path):
            pass
        if not interrupt.is_done:
            break
    assert n_before > 40
    assert list(tmp_path.iterdir()) == []


@needs_fork
def test_a_forked_process_that_outlives_its_parent_does_not_keep_it(path):
    child = "print(os.getpid(), flush=True); time.sleep(100)"
    with holder(path, f"if not os.fork(): {child}\ninput()") as process:
        child = int(process.stdout.readline())
        process.kill()
        process.wait()
        try:
            with held(path):
                pass
        finally:
            os.kill(child, signal.SIGKILL)


@needs_fork
def test_a_forked_process_does_not_take_it_away(path):
    script = (
        "child = os.fork()\nif not child: held = lock.is_held; lock.release(); os._exit(held)\n"
    )
    with holder(path, script + say("os.waitpid(child, 0)[1]")) as process:
        assert process.stdout.readline() == b"0\n"
        with pytest.raises(BlockingIOError):
            Lock.acquire(path)
        process.stdin.close()
        process.wait()


def test_a_file_that_its_holder_removes_is_not_locked(path, monkeypatch):
    real, descriptors = lock_module._try_lock, []

    def lock_late(descriptor):
        if not descriptors:
            lock_file(path).unlink()
        descriptors.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(lock_module, "_try_lock", lock_late)
    with held(path), pytest.raises(BlockingIOError):
        Lock.acquire(path)
    assert len(descriptors) == 3


def test_a_holder_that_has_not_said_who_it_is(path):
    with held(path):
        lock_file(path).write_text("")
        with pytest.raises(BlockingIOError, match="is in use by another process; wait"):
            Lock.acquire(path)


def failing(number):
    def fail(_):
        raise OSError(number, os.strerror(number))

    return fail


def test_a_file_system_without_locks(path, tmp_path, monkeypatch):
    monkeypatch.setattr(lock_module, "_try_lock", failing(errno.ENOLCK))
    message = (
        r"the checkpoint '.*kept' is on a file system without file locking \(.*\); make sure that "
        "no other training run uses it"
    )
    with pytest.warns(UserWarning, match=message):
        lock = Lock.acquire(path)
    assert not lock.is_safe
    lock.release()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_fails_names_the_file(path, monkeypatch):
    monkeypatch.setattr(lock_module, "_try_lock", failing(errno.EIO))
    with pytest.raises(OSError, match=CANNOT_CREATE.format(os.strerror(errno.EIO))) as error:
        Lock.acquire(path)
    assert error.value.filename == str(path)


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed here")
def test_a_link_in_the_place_of_the_lock_is_not_written_through(path, tmp_path):
    lock_file(path).symlink_to(tmp_path / "precious")
    (tmp_path / "precious").write_text("old")
    with pytest.raises(OSError, match=CANNOT_CREATE.format(".*")):
        Lock.acquire(path)
    assert (tmp_path / "precious").read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no users here")
def test_a_folder_that_cannot_be_written_to():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        try:
            with pytest.raises(PermissionError, match=CANNOT_CREATE.format("Permission denied")):
                Lock.acquire(Path(folder, "kept"))
        finally:
            if is_root:
                os.seteuid(0)
