"""Progress of a training, for a person to watch."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from tqdm.auto import tqdm


class Progress:
    """A progress bar with the latest figures, or nothing if not verbose.

    Nobody watching, no bar is made: making one takes a lock of the whole process, which Ctrl-C at
    that moment would leave closed.
    """

    def __init__(self, total: int, verbose: int) -> None:
        self._bar = tqdm(total=total, unit="it", dynamic_ncols=True) if verbose >= 1 else None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is None:
            return
        if kind is None:  # training may end before its last step: the bar ends full all the same
            self._bar.total = self._bar.n
            self._bar.refresh()
        self._bar.close()

    def update(self, figures: Mapping[str, float]) -> None:
        """Note that one more step is done."""
        if self._bar is None:
            return
        shown = {name: f"{value:.6g}" for name, value in figures.items()}
        self._bar.set_postfix(shown, refresh=False)
        self._bar.update()
