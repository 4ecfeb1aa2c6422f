"""Training state: the history so far, for any kind of update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hedgerow.state import State, pack_history, read_array, require, unpack_history

__all__ = ["TrainingState"]


@dataclass(eq=False)
class TrainingState:
    """The history of the steps so far.

    Attributes
    ----------
    history : dict of lists
        Every metric after every step.
    best_step : int or None
        Number of steps after which the metric on the eval set was best; None without an eval set.
    best : float
        That metric, with its sign changed if greater is better.
    ended : bool
        Whether training was ended early, by a callback or by early stopping.
    """

    history: dict[str, list[float]] = field(default_factory=dict)
    best_step: int | None = None
    best: float = np.inf
    ended: bool = False

    def note(self, figures: Mapping[str, float]) -> None:
        """Record one more step."""
        for name, figure in figures.items():
            self.history.setdefault(name, []).append(figure)

    def compare(self, n_done: int, loss: float) -> None:
        """Update the best step: ``loss`` is the metric after `n_done` steps, smaller is better."""
        if self.best_step is None or loss < self.best:
            self.best_step, self.best = n_done, loss

    def pack(self) -> State:
        """The state as arrays and metadata, for a checkpoint."""
        metadata = {"best_step": self.best_step, "ended": self.ended}
        return State({"best": np.array([self.best])}, metadata) | pack_history(self.history)

    @classmethod
    def unpack(cls, state: State) -> TrainingState:
        """Read the output of `pack`; raises ModelFileError."""
        metadata, best = state.metadata, read_array(state, "best", np.float64)
        require(
            type(metadata.get("ended")) is bool and "best_step" in metadata,
            "its training state is not valid",
        )
        best_step = metadata["best_step"]
        is_step = type(best_step) is int and best_step >= 0 and not np.isnan(best).any()
        require(len(best) == 1 and (best_step is None or is_step), "its best step is not valid")
        return cls(unpack_history(state), best_step, float(best[0]), metadata["ended"])
