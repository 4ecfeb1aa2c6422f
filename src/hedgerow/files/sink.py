"""Sinks: destinations of output, a file or standard output."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from hedgerow.atomic_write import open_atomic
from hedgerow.files.errors import Path


@contextmanager
def open_sink(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write bytes to, ``-`` for standard output; gzipped if its name ends in .gz.

    A file is written atomically.
    """
    with _open(os.fspath(path)) as raw:
        if not str(path).endswith(".gz"):
            yield raw
            return
        # Without a name and a time, equal rows give equal files.
        with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
            yield cast(BinaryIO, packed)


@contextmanager
def _open(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with open_atomic(path) as file:
            yield file
