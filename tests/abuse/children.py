"""Children: forked processes that must come to a good end in time."""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["fork", "join"]

SECONDS = 100  # until a child counts as hanging: the machine may be busy


def fork(call: Callable[[], Any]) -> int:
    """Start a child process that makes a call; returns its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads
        child = os.fork()
    if child != 0:
        return child
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    status = 0
    try:
        call()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        status = 1
    os._exit(status)


def join(child: int) -> None:
    """Wait for a child; AssertionError unless all went well."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code == 0, f"a child process ended with {code} (below 0: a signal; -14: a hang)"
