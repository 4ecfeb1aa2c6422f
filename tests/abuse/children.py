"""Children: forked processes that must end successfully in time."""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable

__all__ = ["SECONDS", "fork", "join", "wait"]

SECONDS = 100.0  # until a child counts as hanging; the machine may be busy


def fork(call: Callable[[], int | None], seconds: float = SECONDS) -> int:
    """Start a child process that makes a call; returns its process id.

    Its exit status is what the call returns, 0 for None, or 1 with a traceback on `sys.stderr`.
    """
    child = os.fork()
    if child != 0:
        return child
    status = 1
    try:
        gc.callbacks.clear()  # of Hypothesis: an interrupt that is raised in it is lost
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(seconds))
        status = call() or 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def wait(child: int) -> int:
    """Wait for a child; returns its exit status, below 0 for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def join(child: int) -> None:
    """Wait for a child; raise AssertionError unless it succeeded."""
    code = wait(child)
    assert code == 0, f"a child process ended with {code} (below 0: a signal; -14: a hang)"
