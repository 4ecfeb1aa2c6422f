"""Training state: how a training has gone so far, whatever it is that learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hedgerow.state import State, pack_history, read_array, require, unpack_history

__all__ = ["TrainingState"]


@dataclass(eq=False)
class TrainingState:
    """What was noted of the steps so far.

    Attributes
    ----------
    history : dict of lists
        Every figure after every step.
    best_step : int or None
        Number of steps at the best figure of the eval set; None without one.
    best : float
        That figure; an accuracy has its sign changed.
    ended : bool
        Whether training was ended before its last step, by a callback or for lack of progress.
    """

    history: dict[str, list[float]] = field(default_factory=dict)
    best_step: int | None = None
    best: float = np.inf
    ended: bool = False

    def note(self, figures: Mapping[str, float]) -> None:
        """One more step."""
        for name, figure in figures.items():
            self.history.setdefault(name, []).append(figure)

    def compare(self, n_done: int, loss: float) -> None:
        """Look whether the last step is the best so far."""
        if self.best_step is None or loss < self.best:
            self.best_step, self.best = n_done, loss

    def pack(self) -> State:
        """All of it, for a checkpoint."""
        metadata = {"best_step": self.best_step, "ended": self.ended}
        return State({"best": np.array([self.best])}, metadata) | pack_history(self.history)

    @classmethod
    def unpack(cls, state: State) -> TrainingState:
        """Read what `pack` wrote; raises ModelFileError."""
        metadata, best = state.metadata, read_array(state, "best", np.float64)
        require(
            type(metadata.get("ended")) is bool and "best_step" in metadata, "its training state"
        )
        best_step = metadata["best_step"]
        is_step = type(best_step) is int and best_step >= 0 and not np.isnan(best).any()
        require(len(best) == 1 and (best_step is None or is_step), "its best step")
        return cls(unpack_history(state), best_step, float(best[0]), metadata["ended"])
