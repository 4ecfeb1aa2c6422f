"""Locks: a file that is replaced as a whole is written by one training at a time.

What is locked is another file beside it, which also says who holds the lock. The system releases
the lock when its holder ends, however that happens, so a kill leaves nothing that is in the way.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
import threading
import warnings
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from hedgerow.whole_file import name_beside, resolve

__all__ = ["Lock"]

# What a file system says that knows no locks.
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

    def __init__(self, path: Path, descriptor: int, *, is_safe: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self.is_safe = is_safe  # False on a file system that knows no locks

    @classmethod
    def acquire(cls, path: Path) -> Lock:
        """Get the lock of a file.

        Raises BlockingIOError if someone else has it, another OSError if there is no way to write
        beside the file.
        """
        place = resolve(path)
        beside = place.with_name(f"{name_beside(place)}.lock")
        with _MUTEX:
            try:
                lock = cls._open(path, beside)
            except BlockingIOError:
                raise
            except OSError as error:
                raise OSError(error.errno, f"cannot lock it ({error})", str(path)) from error
            _HELD.add(lock)
        return lock

    @classmethod
    def _open(cls, path: Path, beside: Path) -> Lock:
        while True:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(beside, flags, 0o666)
            try:
                is_safe = _lock(descriptor, path)
                # Else the one who had it has removed the file since it was opened here.
                if _is_at(descriptor, beside):
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, _describe_holder().encode())
                    return cls(beside, descriptor, is_safe=is_safe)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    @property
    def is_held(self) -> bool:
        """Whether this process has it: it was not released, and this is no forked process."""
        return self in _HELD

    def release(self) -> None:
        """Give it back; that is done if it is not held any more."""
        with _MUTEX:
            if self not in _HELD:
                return
            _HELD.remove(self)
            if sys.platform == "win32":  # where what is open cannot be removed
                os.close(self._descriptor)
                with suppress(OSError):  # someone else has opened it
                    self._path.unlink()
            else:
                with suppress(OSError):
                    self._path.unlink()
                os.close(self._descriptor)


# All locks of this process. No process is forked while the mutex is held: what is open then would
# stay open in it, and locked.
_HELD: set[Lock] = set()
_MUTEX = threading.RLock()


def _forget() -> None:
    """Leave all locks to the process that this one was forked from."""
    for lock in _HELD:
        os.close(lock._descriptor)
    _HELD.clear()
    _MUTEX.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_MUTEX.acquire, after_in_parent=_MUTEX.release, after_in_child=_forget
    )


def _lock(descriptor: int, path: Path) -> bool:
    """Lock an open file; False, with a warning, if the file system knows no locks."""
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
        warnings.warn(
            f"the checkpoint {str(path)!r} is on a file system that knows no locks "
            f"({error.strerror}); see to it that no other training uses it",
            stacklevel=2,
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
