"""Standing: where a training stands between two rounds, and its form in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.booster import Boosted
from hedgerow.state import State, pack_history, read_array, read_weights, require, unpack_history
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest
from hedgerow.trees.forest_state import pack_forest, unpack_forest

__all__ = ["Standing"]


@dataclass(eq=False)
class Standing:
    """The rounds so far, and what would be kept of them if training ended now.

    Attributes
    ----------
    kept, later : lists of Forest
        The trees of the rounds that would be kept, and those of the rounds after them.
    kept_weights, weights : (P,)
        Weights of the label patterns after the rounds that would be kept, and after all.
    history : dict of lists
        Every figure after every round.
    seed : int
        What random numbers are drawn from.
    loss : float
        The training loss of what would be kept, a position; NaN if no round was done.
    best_round, best : int or None, float
        Number of rounds at which the ``eval_set`` did best, and its figure there.
    ended : bool
        Whether training is over, however many rounds are left.
    """

    kept: list[Forest]
    later: list[Forest]
    kept_weights: NDArray[np.float64]
    weights: NDArray[np.float64]
    history: dict[str, list[float]]
    seed: int
    loss: float = np.nan
    best_round: int | None = None
    best: float = np.inf
    ended: bool = False

    @classmethod
    def begin(cls, start: Boosted, history: dict[str, list[float]], seed: int) -> Standing:
        """Before the first round on top of a model."""
        return cls([start.forest], [], start.weights, start.weights, history, seed)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.kept[0].n_outputs

    @property
    def n_rounds(self) -> int:
        """Number of rounds so far."""
        return sum(forest.n_rounds for forest in self.kept + self.later)

    def model(self) -> Boosted:
        """The rounds so far."""
        return Boosted(Forest.join(self.n_labels, self.kept + self.later), self.weights)

    def kept_model(self) -> Boosted:
        """The rounds to keep."""
        return Boosted(Forest.join(self.n_labels, self.kept), self.kept_weights)

    def add(self, trees: Forest, weights: NDArray[np.float64]) -> None:
        """One more round."""
        self.later.append(trees)
        self.weights = weights

    def keep(self, loss: float) -> None:
        """All rounds so far are worth keeping."""
        self.kept += self.later
        self.later = []
        self.kept_weights, self.loss = self.weights, loss

    def pack(self) -> State:
        """All of it, for a checkpoint."""
        tensors = {
            "kept_weights": self.kept_weights,
            "weights": self.weights,
            "figures": np.array([self.loss, self.best]),
        }
        for name, part in (("kept", self.kept), ("later", self.later)):
            tensors |= pack_forest(Forest.join(self.n_labels, part), name)
        metadata = {"seed": self.seed, "best_round": self.best_round, "ended": self.ended}
        history = pack_history(self.history)
        return State(tensors | history.tensors, metadata | history.metadata)

    @classmethod
    def unpack(cls, state: State, n_labels: int, n_patterns: int, columns: Columns) -> Standing:
        """Read what `pack` wrote of trees that ask about these columns; raises ModelFileError."""
        figures = read_array(state, "figures", np.float64)
        metadata = state.metadata
        require(type(metadata.get("ended")) is bool and "best_round" in metadata, "how it stands")
        best_round, seed = metadata["best_round"], metadata.get("seed")
        require(len(figures) == 2 and not np.isinf(figures[0]), "its figures")
        require(best_round is None or np.isfinite(figures[1]), "its best round")
        require(isinstance(seed, int) and seed >= 0, "its seed")
        require(best_round is None or isinstance(best_round, int), "its best round")
        forests = [
            unpack_forest(state, n_labels, columns.n_columns, name) for name in ("kept", "later")
        ]
        return cls(
            forests[:1],
            forests[1:],
            read_weights(state, "kept_weights", (n_patterns,)),
            read_weights(state, "weights", (n_patterns,)),
            unpack_history(state),
            metadata["seed"],
            float(figures[0]),
            best_round,
            float(figures[1]),
            metadata["ended"],
        )
