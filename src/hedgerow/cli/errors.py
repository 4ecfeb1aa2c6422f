"""Errors of the command line: a user error gives a message of one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

MISTAKE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


class CommandError(Exception):
    """A user error: a wrong file, column, label or option."""


@contextmanager
def telling(prefix: str = "") -> Iterator[None]:
    """Turn errors of the library about data and parameters into user errors."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise CommandError(f"{prefix}{error}") from error


def tell(message: str) -> None:
    """Print one line on standard error."""
    print(f"hedgerow: {' '.join(message.split())}", file=sys.stderr, flush=True)


def describe(error: OSError) -> str:
    """The message of an operating system error, after the name of its file if it has one."""
    text = error.strerror or str(error)
    return text if error.filename is None else f"{error.filename}: {text}"
