"""Whole files: one way to write a file whole or not at all."""

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
    """Open a file to be written beside its place, and moved there once it is whole.

    Whatever happens before that, a kill included, what stood in its place stays as it was. A file
    that could not be finished is removed, but for a kill. A file that takes the place of another
    has its permissions, and its owner and group where that is permitted; a new one has those that
    `open` would give it. A link stays a link, and a device or a pipe what it is: it is written to
    as it stands.
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
            error.filename = str(path)  # the file that the user has named
        raise


def check_folder(path: Path) -> None:
    """Raise FileNotFoundError unless a file can be made there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {str(path)!r}: the folder {str(path.parent)!r} does not exist"
        )


def check_place(path: Path) -> None:
    """Raise OSError if a file, not a device or a pipe, can never be made there.

    Whether the folder can be written to shows when a file is made in it.
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
    """Where a path leads to, through all links; a circle of links is left as it is."""
    return Path(os.path.realpath(path))


def name_beside(place: Path) -> str:
    """Prefix of the names of temporary and lock files for this file.

    They are short, whatever the length of its own name, and hidden.
    """
    digest = hashlib.sha256(os.fsencode(os.path.normcase(place.name))).hexdigest()
    return f".hedgerow-{digest[:16]}"


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what writers of a file that were killed have left beside it.

    What a writer that lives is about to finish is removed too: see to it that there is none.
    """
    place = resolve(path)
    for leftover in place.parent.glob(f"{name_beside(place)}-{'[0-9a-f]' * 16}"):
        leftover.unlink(missing_ok=True)


def _find(place: Path) -> os.stat_result | None:
    """What is there, if anything."""
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
    """Give a file the owner, group and permissions of another, as far as that is permitted.

    Where the group cannot be the same, it may do no more than everybody may.
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
    with suppress(PermissionError):  # of a file system that does not support them
        os.fchmod(descriptor, mode)
