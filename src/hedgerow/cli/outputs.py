"""Outputs: whether a file can be written, and whether its name says what goes into it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.atomic_write import check_place
from hedgerow.cli.errors import CommandError

if TYPE_CHECKING:
    from hedgerow.files.recipe import Format


def check_output(path: str, what: str, sources: list[str | None]) -> None:
    """See that a file can be written here before hours are spent on what goes into it."""
    place = Path(path)
    if path == "-":
        raise CommandError(f"the {what} cannot go to standard output; name a file for it")
    is_device = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
    if not is_device:  # or a pipe: these are written to as they are
        check_place(place)
        if not os.access(place.parent, os.W_OK):
            raise CommandError(f"the folder {str(place.parent)!r} for the {what} is not writable")
    for source in sources:
        if source is not None and Path(source).resolve() == place.resolve():
            raise CommandError(f"the {what} would be written over {source}; name another file")


def check_model_name(path: str, what: str) -> None:
    """Refuse a name that says that a model file holds something else."""
    from hedgerow.files.endings import FOREIGN_ENDINGS, FORMAT_OF_ENDING, ending_of

    own = (".hedgerow", ".safetensors")
    taken = {*FOREIGN_ENDINGS, *FORMAT_OF_ENDING, ".txt", ".tsv"} - set(own)
    if ending_of(path) in taken:
        raise _misnamed(path, what, own[:1])


def check_page_name(path: str) -> None:
    """Refuse a name that does not say that a page is HTML, unless it says nothing."""
    from hedgerow.files.endings import ending_of

    endings = (".html", ".htm")
    if ending_of(path) not in ("", *endings):
        raise _misnamed(path, "a page in HTML", endings)


def check_rows_name(path: str, file: str, format: Format) -> None:
    """Refuse a name that says another format than that of the rows, which came from `file`."""
    from hedgerow.files.endings import endings_of, may_hold

    if not may_hold(path, format):
        text = (".csv",) if format in ("parquet", "arrow") else ()
        raise _misnamed(path, f"{format}, as {file} does", (*endings_of(format), *text))


def _misnamed(path: str, what: str, endings: tuple[str, ...]) -> CommandError:
    from hedgerow.files.endings import ending_of

    *most, last = endings
    expected = f"{', '.join(most)} or {last}" if most else last
    return CommandError(
        f"{path} would hold {what}, but its name ends in {ending_of(path)}; expected a name that "
        f"ends in {expected}"
    )
