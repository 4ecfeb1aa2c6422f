"""Progress of training, as a bar or as lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol

from tqdm.auto import tqdm

# Maximum number of seconds without a line in a log.
SILENCE = 10.0


class Progress:
    """Shows the latest metrics in a bar (terminal or notebook), in plain lines, or not at all.

    Parameters
    ----------
    total
        Maximum number of steps.
    verbose
        0: nothing. 1: a bar in a terminal or notebook, otherwise a few plain lines. 2: always plain
        lines.
    done
        Number of steps done before, if training is resumed.
    unit
        Name of a step in a bar.
    """

    def __init__(self, total: int, verbose: int, done: int = 0, unit: str = "it") -> None:
        self._display: _Display | None = None
        if verbose == 1 and _is_watched():
            self._display = _Bar(total, done, unit)
        elif verbose >= 1:
            self._display = _Lines(total, done)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._display is not None:
            self._display.close(whole=kind is None)

    def update(self, figures: Mapping[str, float], n_steps: int = 1) -> None:
        """Record one or more steps."""
        if self._display is not None:
            shown = {name: f"{value:.6g}" for name, value in figures.items()}
            self._display.step(shown, n_steps)


class _Display(Protocol):
    """The display of progress."""

    def step(self, figures: Mapping[str, str], n_steps: int) -> None:
        """Show further steps."""

    def close(self, whole: bool) -> None:
        """Show the end, after success or an error."""


class _Bar:
    """A progress bar.

    It is created only if it is displayed: creating one takes a lock of the whole process, which
    Ctrl-C at that moment would leave locked.
    """

    def __init__(self, total: int, done: int, unit: str) -> None:
        self._bar = tqdm(total=total, initial=done, unit=unit, dynamic_ncols=True)

    def step(self, figures: Mapping[str, str], n_steps: int) -> None:
        self._bar.set_postfix(figures, refresh=False)
        self._bar.update(n_steps)

    def close(self, whole: bool) -> None:
        if whole:  # training may end before its last step: the bar is filled anyway
            self._bar.total = self._bar.n
            self._bar.refresh()
        self._bar.close()


class _Lines:
    """Lines at steps 1, 2, 5, 10, 20, 50 and so on, after a long pause, and at the end."""

    def __init__(self, total: int, done: int) -> None:
        self._total = total
        self._done = done
        self._begin = self._last = time.monotonic()
        self._unsaid: Mapping[str, str] | None = None

    def step(self, figures: Mapping[str, str], n_steps: int) -> None:
        self._done += n_steps
        self._unsaid = figures
        is_round = str(self._done).rstrip("0") in ("1", "2", "5")
        if is_round or time.monotonic() - self._last >= SILENCE:
            self._say()

    def close(self, whole: bool) -> None:
        if whole and self._unsaid is not None:
            self._total = self._done
            self._say()

    def _say(self) -> None:
        assert self._unsaid is not None
        self._last = time.monotonic()
        figures = "".join(f"  {name}={value}" for name, value in self._unsaid.items())
        seconds = self._last - self._begin
        width = len(str(self._total))
        line = f"{self._done:>{width}}/{self._total}{figures}  {seconds:.1f} s"
        print(line, file=sys.stderr, flush=True)
        self._unsaid = None


def _is_watched() -> bool:
    is_terminal = getattr(sys.stderr, "isatty", bool)  # a replacement of stderr need not have it
    return is_terminal() or "ipykernel" in sys.modules
