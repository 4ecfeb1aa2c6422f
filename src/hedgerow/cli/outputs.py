"""Outputs: whether a file can be written, and whether its name matches its contents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.atomic_write import check_place
from hedgerow.cli.errors import CommandError

if TYPE_CHECKING:
    from hedgerow.files.recipe import Format


def check_output(path: str, what: str, sources: list[str | None]) -> None:
    """Check that a file can be written before hours are spent on its contents."""
    place = Path(path)
    if path == "-":
        raise CommandError(f"the {what} cannot go to standard output; name a file")
    is_device = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
    if not is_device:  # or a pipe: these are written to directly
        check_place(place)
        if not os.access(place.parent, os.W_OK):
            raise CommandError(f"the folder {str(place.parent)!r} for the {what} is not writable")
    for source in sources:
        if source is not None and Path(source).resolve() == place.resolve():
            raise CommandError(f"the {what} would be written over {source}; name another file")


def check_model_name(path: str, what: str) -> None:
    """Raise an error for a name that does not suit a model file."""
    from hedgerow.files.endings import FOREIGN_ENDINGS, FORMAT_OF_ENDING, ending_of

    own = (".hedgerow", ".safetensors")
    taken = {*FOREIGN_ENDINGS, *FORMAT_OF_ENDING, ".txt", ".tsv"} - set(own)
    if ending_of(path) in taken:
        raise _misnamed(path, what, own[:1])


def check_page_name(path: str) -> None:
    """Raise an error for a name that does not suit an HTML page."""
    from hedgerow.files.endings import ending_of

    endings = (".html", ".htm")
    if ending_of(path) not in ("", *endings):
        raise _misnamed(path, "an HTML page", endings)


def check_rows_name(path: str, file: str, format: Format) -> None:
    """Raise an error for a name that does not suit the format of the rows from `file`."""
    from hedgerow.files.endings import endings_of, may_hold
    from hedgerow.files.recipe import COLUMNLESS

    if not may_hold(path, format):
        text = (".csv",) if format in ("parquet", "arrow") else ()
        what = "labels as text" if format in COLUMNLESS else f"{format}, as {file} does"
        raise _misnamed(path, what, (*endings_of(format), *text))


def _misnamed(path: str, what: str, endings: tuple[str, ...]) -> CommandError:
    from hedgerow.files.endings import ending_of

    *most, last = endings
    expected = f"{', '.join(most)} or {last}" if most else last
    return CommandError(
        f"{path} would hold {what}, but its name ends in {ending_of(path)}; expected a name that "
        f"ends in {expected}"
    )
