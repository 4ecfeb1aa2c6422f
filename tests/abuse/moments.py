"""Moments: the lines of the library's code that a call executes, at each of which a test can
act."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import hedgerow

__all__ = ["act_at", "count_moments"]

FOLDER = str(Path(hedgerow.__file__).parent)


def count_moments(call: Callable[[], Any]) -> tuple[int, Any]:
    """Number of moments of a call in this thread, and its result."""
    counter = _Counter(-1, lambda: None)
    result = counter.run(call)
    return counter.n_lines, result


def act_at(moment: int, act: Callable[[], Any], call: Callable[[], Any]) -> Any:
    """Make a call, and act right before its line number `moment`, once, in the same thread.

    An exception of `act` is raised at that line, like that of a signal handler.
    """
    return _Counter(moment, act).run(call)


class _Counter:
    def __init__(self, moment: int, act: Callable[[], Any]) -> None:
        self.moment, self.act, self.n_lines = moment, act, 0

    def run(self, call: Callable[[], Any]) -> Any:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return call()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._step if frame.f_code.co_filename.startswith(FOLDER) else None

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.n_lines += 1
            if self.n_lines == self.moment + 1:
                self.act()
        return self._step
