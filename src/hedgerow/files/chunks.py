"""Chunks: the bytes of a text file, split between its sequences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hedgerow.files.errors import FileError, Path
from hedgerow.files.source import Source

# Assumed length of a line before any has been read.
BYTES_PER_LINE = 16
MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8

_BLANK = re.compile(rb"\n[ \t\r]+\n")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Lines of whole sequences, without line breaks.

    Attributes
    ----------
    first : int
        Number of the first line, from 1.
    lines : list of bytes
        All lines, including blank ones.
    newline : bytes
        How the lines of the file end.
    """

    first: int
    lines: list[bytes]
    newline: bytes


def read_chunks(source: Source, n_lines: int) -> Iterator[Chunk]:
    """Split a file at blank lines, into chunks of about this many lines.

    A longer sequence is read completely.
    """
    first, newline = 1, b"\n"
    for data in _cut_at_blanks(source, n_lines):
        if first == 1:
            data = data.removeprefix(MARK)
            newline = b"\r\n" if b"\r\n" in data else b"\n"
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if b"\r" in data:
            lines = [line.removesuffix(b"\r") for line in lines]
        yield Chunk(first, lines, newline)
        first += len(lines)


def decode(cells: Iterable[bytes], path: Path, number: Callable[[int], int]) -> list[str]:
    """Text of cells that contain no line break; ``number(i)`` is the line of cell i."""
    try:
        return b"\n".join(cells).decode().split("\n")
    except UnicodeDecodeError:
        for place, cell in enumerate(cells):
            decode_text(cell, path, number(place))
        raise


def decode_text(text: bytes, path: Path, number: int) -> str:
    """Text of a line or of part of it; raises `FileError` unless it is UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise FileError(
            path,
            f"{text[:40]!r} is not valid UTF-8 ({error.reason}); save the file as UTF-8",
            number,
        ) from None


def _cut_at_blanks(source: Source, n_lines: int) -> Iterator[bytes]:
    ahead, line_size, growth, is_done = b"", BYTES_PER_LINE, 1, False
    while not is_done:
        size = n_lines * line_size * growth
        part = source.read(size)
        is_done = len(part) < size
        data = ahead + part
        end = len(data) if is_done else _last_blank(data, len(ahead))
        if end == 0:
            # No blank line so far: read more and more at a time.
            ahead, growth = data, growth * 2
            continue
        whole, ahead, growth = data[:end], data[end:], 1
        line_size = max(1, len(whole) // (whole.count(b"\n") + 1))
        yield whole


def _last_blank(data: bytes, n_searched: int) -> int:
    """End of the last blank line, or 0; the first `n_searched` bytes are known to have none."""
    start = max(0, n_searched - 2)
    end = max(data.rfind(b"\n\n", start) + 2, data.rfind(b"\n\r\n", start) + 3)
    if end > 3:
        return end
    ends = [match.end() for match in _BLANK.finditer(data)]
    return ends[-1] if ends else 0
