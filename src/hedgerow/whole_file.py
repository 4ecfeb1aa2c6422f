"""Whole files: one way to write a file whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to be written beside its place, and moved there once it is whole.

    Whatever happens before that, a kill included, what stood in its place stays as it was. A file
    that could not be finished is removed, but for a kill. A link stays a link, and a device or a
    pipe what it is: it is written to as it stands.
    """
    path = Path(path)
    check_folder(path)
    place = path.resolve()
    temporary = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    try:
        if place.exists() and not place.is_file():
            with place.open("wb") as file:
                yield file
            return
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(place)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # the file that the user has named
        raise


def check_folder(path: Path) -> None:
    """Raise FileNotFoundError unless a file can be made there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {str(path)!r}: the folder {str(path.parent)!r} does not exist"
        )


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what writers of a file that were killed have left beside it."""
    path = Path(path).resolve()
    for leftover in path.parent.glob(f".{escape(path.name)}.{'[0-9a-f]' * 32}"):
        leftover.unlink(missing_ok=True)
