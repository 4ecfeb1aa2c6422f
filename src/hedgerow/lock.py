"""Locks: a file that is replaced as a whole is written by one training at a time.

What is locked is another file beside it, which also says who holds the lock. The system releases
the lock when that file is closed: at the latest when it is garbage collected or the process ends,
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

    FAR = 1 << 30  # the byte that is locked; those that are cannot be read

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
    """The right to be the only one that writes a file; made by `acquire`.

    It holds against other processes, on other hosts too where the file system knows of them,
    against other threads, and whatever path leads to the file. A forked process does not have it.
    """

    def __init__(self, file: io.FileIO, path: Path, *, is_safe: bool) -> None:
        self._file = file
        self._path = path
        self.is_safe = is_safe  # False on a file system that does not support locks

    @classmethod
    def acquire(cls, path: Path) -> Lock:
        """Get the lock of a file.

        Raises BlockingIOError if someone else has it, another OSError if there is no way to write
        beside the file.
        """
        with _MUTEX:
            try:
                # No variable holds it: traceback frames would keep it open after Ctrl-C.
                return cls._open(path, _lock_path(path))
            except BlockingIOError:
                raise
            except OSError as error:
                message = f"cannot create the lock file beside it ({error.strerror})"
                raise OSError(error.errno, message, str(path)) from error

    @classmethod
    def _open(cls, path: Path, beside: Path) -> Lock:
        while True:
            file = io.FileIO(beside, "r+", opener=_create)
            try:
                _OPEN.add(file)
                is_safe = _lock(file.fileno(), path)
                # Else the one who had it has removed the file since it was opened here.
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
        """Whether this process has it: it was not released, and this is no forked process."""
        return not self._file.closed

    def release(self) -> None:
        """Release the lock; does nothing if it is not held."""
        with _MUTEX:
            if not self.is_held:
                return
            if sys.platform == "win32":  # where what is open cannot be removed
                self._file.close()
                with suppress(OSError):  # someone else has opened it
                    self._path.unlink()
            else:
                with self._file, suppress(OSError):
                    self._path.unlink()


# The open lock files of this process. No process is forked while the mutex is held: what is open
# then would stay open in it, and locked.
_OPEN: WeakSet[io.FileIO] = WeakSet()
_MUTEX = threading.RLock()


def _forget() -> None:
    """Leave all locks to the process that this one was forked from."""
    for file in _OPEN:
        file.close()
    _MUTEX.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_MUTEX.acquire, after_in_parent=_MUTEX.release, after_in_child=_forget
    )


def _lock_path(path: Path) -> Path:
    """The file that is locked for another.

    Names that a file system may take for the same one, since they differ only in case or in how
    accents are encoded, share a lock.
    """
    place = resolve(path)
    name = unicodedata.normalize("NFD", place.name).casefold()
    return place.with_name(f"{name_beside(place.with_name(name))}.lock")


def _create(name: str, flags: int) -> int:
    """Open a file, which is created if there is none, but not through a link."""
    return os.open(name, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _lock(descriptor: int, path: Path) -> bool:
    """Lock an open file; False, with a warning, if the file system does not support locks."""
    try:
        _try_lock(descriptor)
    except BlockingIOError:
        raise BlockingIOError(
            f"the checkpoint {str(path)!r} is in use by {_read_holder(descriptor)}; wait until "
            "that training is over, or pass another path"
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        warn_user(
            f"the checkpoint {str(path)!r} is on a file system without file locking "
            f"({error.strerror}); make sure that no other training uses it",
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
    """Who has the lock; it may be about to say so, and not every system lets it be read."""
    with suppress(OSError):
        text = os.read(descriptor, 1000).decode(errors="replace")
        if text:
            return text
    return "another process"
