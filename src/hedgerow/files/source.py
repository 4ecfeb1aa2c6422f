"""Sources: the bytes of a file or of standard input, unpacked if they are gzipped."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from types import TracebackType
from typing import BinaryIO, cast

from hedgerow.files.errors import FileError, Path

# Number of bytes that are examined to find the format of a file.
HEAD = 1 << 16
GZIP_MAGIC = b"\x1f\x8b"


class Source:
    """Bytes from beginning to end, with a preview of the next ones."""

    def __init__(self, path: Path, raw: BinaryIO, *, stays_open: bool = False) -> None:
        self.path = path
        self._raw = raw
        self._stays_open = stays_open
        self._ahead = b""

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, fewer only at the end; all remaining ones if it is negative."""
        parts, missing = [self._ahead], size - len(self._ahead)
        if size < 0:
            parts.append(self._read_raw(-1))
        else:
            while missing > 0 and (part := self._read_raw(missing)):
                parts.append(part)
                missing -= len(part)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        if size < 0:
            self._ahead = b""
            return data
        self._ahead = data[size:]
        return data[:size]

    def peek(self, size: int) -> bytes:
        """What `read` would return, without consuming it."""
        data = self.read(size)
        self._ahead = data + self._ahead
        return data

    def unpacked(self) -> Source:
        """A source of the unpacked bytes if they are gzipped, otherwise this source."""
        if self.peek(len(GZIP_MAGIC)) != GZIP_MAGIC:
            return self
        unpacked = cast(BinaryIO, gzip.GzipFile(fileobj=Readable(self)))
        return Source(self.path, unpacked, stays_open=self._stays_open)

    @property
    def is_plain_file(self) -> bool:
        """Whether opening the file by its name gives the same bytes."""
        is_unpacked = isinstance(self._raw, gzip.GzipFile)
        return os.path.isfile(self.path) and not (self._stays_open or is_unpacked)

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if not self._stays_open:
            self._raw.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _read_raw(self, size: int) -> bytes:
        try:
            return self._raw.read(size) or b""
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileError(
                self.path, f"the gzipped data are damaged or cut short ({error})"
            ) from error


class Readable(io.RawIOBase):
    """A source as a raw stream, for GzipFile."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def readable(self) -> bool:
        """Always true: a source is opened for reading only."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        return self._source.read(size)

    def close(self) -> None:
        """Close the source."""
        self._source.close()
        super().close()


def open_source(path: Path) -> Source:
    """Open a file, or standard input for ``-``.

    Standard input is one source for the whole process: bytes that were only peeked at are still
    there when it is opened again.
    """
    if os.fspath(path) == "-":
        return _open_standard_input()
    return Source(path, open(path, "rb", buffering=0)).unpacked()


_standard_input: tuple[BinaryIO, Source] | None = None


def _open_standard_input() -> Source:
    global _standard_input
    buffer = sys.stdin.buffer
    if _standard_input is None or _standard_input[0] is not buffer:
        _standard_input = buffer, Source("-", buffer, stays_open=True).unpacked()
    return _standard_input[1]
