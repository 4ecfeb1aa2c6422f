"""Errors: what is wrong with a file, and where."""

from __future__ import annotations

import os

Path = str | os.PathLike[str]


def display_name(path: Path) -> str:
    """The name of a file in messages; ``-`` is standard input."""
    return "standard input" if os.fspath(path) == "-" else os.fspath(path)


class FileError(ValueError):
    """A file cannot be read as expected; the message says where, and what was expected.

    Attributes
    ----------
    path : str
        The file name as it was given; ``-`` is standard input.
    line : int or None
        The line, counted from 1.
    """

    def __init__(self, path: Path, complaint: str, line: int | None = None) -> None:
        self.path = os.fspath(path)
        self.line = line
        self._complaint = complaint
        name = display_name(path)
        where = name if line is None else f"{name}, line {line}"
        super().__init__(f"{where}: {' '.join(complaint.splitlines()).strip()}")

    def __reduce__(self) -> tuple[type[FileError], tuple[str, str, int | None]]:
        """Support for raising it again in another process."""
        return FileError, (self.path, self._complaint, self.line)
