"""Locks: a file that is replaced atomically is written by one training run at a time.

The lock is on another file next to it, which also names the holder of the lock. The system releases
the lock when that file is closed: at the latest when it is garbage-collected or the process ends,
so neither Ctrl-C nor a kill leaves a checkpoint locked.
"""

from __future__ import annotations

import errno
import io
import os
import platform
import sys
import threading
import unicodedata
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from weakref import WeakSet

from hedgerow.atomic_write import name_beside, resolve
from hedgerow.data_warning import warn_user

__all__ = ["Lock"]

# Errors of a file system that does not support locks.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

if sys.platform == "win32":
    import msvcrt

    FAR = 1 << 30  # the byte that is locked; locked bytes cannot be read

    def _try_lock(descriptor: int) -> None:
        os.lseek(descriptor, FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lock:
    """The exclusive right to write a file; made by `acquire`.

    It excludes other processes, even on other hosts if the file system supports that, and other
    threads, whatever path they use for the file. A forked process does not hold it.
    """

    def __init__(self, file: io.FileIO, path: Path, *, is_safe: bool) -> None:
        self._file = file
        self._path = path
        self.is_safe = is_safe  # False on a file system that does not support locks

    @classmethod
    def acquire(cls, path: Path) -> Lock:
        """Get the lock of a file.

        Raises BlockingIOError if it is already held, another OSError if the folder is not writable.
        """
        with _MUTEX:
            try:
                # No variable holds it: traceback frames would keep it open after Ctrl-C.
                return cls._open(path, _lock_path(path))
            except BlockingIOError:
                raise
            except OSError as error:
                message = f"cannot create the lock file beside the checkpoint ({error.strerror})"
                raise OSError(error.errno, message, str(path)) from error

    @classmethod
    def _open(cls, path: Path, beside: Path) -> Lock:
        while True:
            file = io.FileIO(beside, "r+", opener=_create)
            try:
                _OPEN.add(file)
                is_safe = _lock(file.fileno(), path)
                # Otherwise the previous holder has removed the file since it was opened here.
                if _is_at(file.fileno(), beside):
                    file.truncate(0)
                    file.write(_describe_holder().encode())
                    return cls(file, beside, is_safe=is_safe)
            except BaseException:
                file.close()
                raise
            file.close()

    @property
    def is_held(self) -> bool:
        """Whether this process holds it: not released, and not a forked process."""
        return not self._file.closed

    def release(self) -> None:
        """Release the lock; does nothing if it is not held."""
        with _MUTEX:
            if not self.is_held:
                return
            if sys.platform == "win32":  # not every system can remove open files
                self._file.close()
                with suppress(OSError):  # opened by another process
                    self._path.unlink()
            else:
                with self._file, suppress(OSError):
                    self._path.unlink()


# The open lock files of this process. No process is forked while the mutex is held: otherwise the
# files would stay open, and locked, in the new process.
_OPEN: WeakSet[io.FileIO] = WeakSet()
_MUTEX = threading.RLock()


def _forget() -> None:
    """Leave all locks to the parent process after a fork."""
    for file in _OPEN:
        file.close()
    _MUTEX.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_MUTEX.acquire, after_in_parent=_MUTEX.release, after_in_child=_forget
    )


def _lock_path(path: Path) -> Path:
    """The lock file of a file.

    Names that are the same on some file systems, since they differ only in case or in the encoding
    of accents, share a lock.
    """
    place = resolve(path)
    name = unicodedata.normalize("NFD", place.name).casefold()
    return place.with_name(f"{name_beside(place.with_name(name))}.lock")


def _create(name: str, flags: int) -> int:
    """Open a file, which is created if it does not exist, but do not follow links."""
    return os.open(name, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _lock(descriptor: int, path: Path) -> bool:
    """Lock an open file; False, with a warning, if the file system does not support locks."""
    try:
        _try_lock(descriptor)
    except BlockingIOError:
        raise BlockingIOError(
            f"the checkpoint {str(path)!r} is in use by {_read_holder(descriptor)}; wait until "
            "that training run is over, or pass another path"
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        warn_user(
            f"the checkpoint {str(path)!r} is on a file system without file locking "
            f"({error.strerror}); make sure that no other training run uses it",
            UserWarning,
        )
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _describe_holder() -> str:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"process {os.getpid()} on {platform.node() or 'this host'} since {now}"


def _read_holder(descriptor: int) -> str:
    """The holder of the lock, if it has written its name and the system allows reading the file."""
    with suppress(OSError):
        text = os.read(descriptor, 1000).decode(errors="replace")
        if text:
            return text
    return "another process"
