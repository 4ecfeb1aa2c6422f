"""Atomic writes: a file is written completely or not at all."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces the target when it is complete.

    Until then the old file is unchanged, even if the process is killed. A file that could not be
    finished is removed, unless the process was killed. A file that replaces another gets its
    permissions, and its owner and group if permitted; a new one has those that `open` would give
    it. Links are followed, and devices and pipes are written to directly.
    """
    path = Path(path)
    check_folder(path)
    place = resolve(path)
    temporary = place.with_name(f"{name_beside(place)}-{uuid.uuid4().hex[:16]}")
    try:
        before = _find(place)
        if before is not None and not stat.S_ISREG(before.st_mode):
            with place.open("wb") as file:
                yield file
            return
        with _create(temporary, private=before is not None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if before is not None:
                _take_permissions(file.fileno(), before)
        temporary.replace(place)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(temporary), str(place)):
            error.filename = str(path)  # the name that the user gave
        raise


def check_folder(path: Path) -> None:
    """Raise FileNotFoundError unless the folder exists."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {str(path)!r}: the folder {str(path.parent)!r} does not exist"
        )


def check_place(path: Path) -> None:
    """Raise OSError if the folder does not exist, or the path is a folder, a device or a pipe.

    Whether the folder is writable turns out only when a file is created in it.
    """
    check_folder(path)
    try:
        found = _find(resolve(path))
    except OSError as error:
        error.filename = str(path)
        raise
    if found is not None and not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or a pipe"
        raise FileExistsError(f"cannot save to {str(path)!r}: it is {what}; name a file")


def resolve(path: str | os.PathLike[str]) -> Path:
    """The target of a path, through all links; a loop of links is left unchanged."""
    return Path(os.path.realpath(path))


def name_beside(place: Path) -> str:
    """Prefix of the names of temporary and lock files for this file.

    They are hidden, and short whatever the length of the file name.
    """
    digest = hashlib.sha256(os.fsencode(os.path.normcase(place.name))).hexdigest()
    return f".hedgerow-{digest[:16]}"


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files of killed writers.

    The file of an active writer would be removed too: make sure that there is none.
    """
    place = resolve(path)
    for leftover in place.parent.glob(f"{name_beside(place)}-{'[0-9a-f]' * 16}"):
        leftover.unlink(missing_ok=True)


def _find(place: Path) -> os.stat_result | None:
    """The file status, if it exists."""
    try:
        return place.stat()
    except FileNotFoundError:
        return None


def _create(path: Path, *, private: bool) -> BinaryIO:
    """Create a file: for its owner only, or with the permissions that new files have."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600 if private else 0o666)

    return open(path, "xb", opener=opener)


def _take_permissions(descriptor: int, other: os.stat_result) -> None:
    """Give a file the owner, group and permissions of another, as far as permitted.

    If the group cannot be the same, its permissions are limited to those of the class "others".
    """
    if sys.platform == "win32":
        return
    mode = other.st_mode & 0o777
    mine = os.fstat(descriptor)
    if mine.st_gid != other.st_gid:
        try:
            os.fchown(descriptor, -1, other.st_gid)
        except OSError:
            mode &= ~0o070 | (mode & 0o007) << 3
    if mine.st_uid != other.st_uid:
        with suppress(OSError):
            os.fchown(descriptor, other.st_uid, -1)
    with suppress(PermissionError):  # not supported by the file system
        os.fchmod(descriptor, mode)
