"""Rounds: what boosting has learnt so far, what is kept of it, and its form in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.state import State, read_array, read_weights, require
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest
from hedgerow.trees.forest_state import pack_forest, unpack_forest

__all__ = ["Rounds"]


@dataclass(eq=False)
class Rounds:
    """The rounds so far.

    Attributes
    ----------
    parts : list of Forest
        All trees: those of a model to go on from, then those of each round.
    weights, kept_weights : (P,)
        Weights of the label patterns after all rounds, and after those that are kept.
    seed : int
        What random numbers are drawn from.
    n_kept : int
        How many of the parts are kept.
    loss : float
        The training loss of what is kept, a mean over the positions; NaN before the first round.
    n_rounds : int
        Number of rounds.
    """

    parts: list[Forest]
    weights: NDArray[np.float64]
    kept_weights: NDArray[np.float64]
    seed: int
    n_kept: int = 1
    loss: float = np.nan
    n_rounds: int = field(init=False)

    def __post_init__(self) -> None:
        self.n_rounds = sum(forest.n_rounds for forest in self.parts)

    @classmethod
    def begin(cls, forest: Forest, weights: NDArray[np.float64], seed: int) -> Rounds:
        """Before the first round on top of a model."""
        return cls([forest], weights, weights, seed)

    @property
    def n_kept_rounds(self) -> int:
        """Number of rounds that are kept."""
        return sum(forest.n_rounds for forest in self.parts[: self.n_kept])

    def kept_forest(self) -> Forest:
        """The trees of the rounds that are kept."""
        return self._join(self.parts[: self.n_kept])

    def add(self, trees: Forest, weights: NDArray[np.float64]) -> None:
        """One more round."""
        self.parts.append(trees)
        self.weights = weights
        self.n_rounds += 1

    def keep(self, loss: float) -> None:
        """Keep all rounds so far."""
        self.n_kept, self.kept_weights, self.loss = len(self.parts), self.weights, loss

    def _join(self, parts: list[Forest]) -> Forest:
        return Forest.join(self.parts[0].n_outputs, parts)

    def pack(self) -> State:
        """All of it, for a checkpoint."""
        tensors = {
            "weights": self.weights,
            "kept_weights": self.kept_weights,
            "loss": np.array([self.loss]),
        }
        kept, later = self.parts[: self.n_kept], self.parts[self.n_kept :]
        tensors |= pack_forest(self._join(kept), "kept") | pack_forest(self._join(later), "later")
        return State(tensors, {"seed": self.seed})

    @classmethod
    def unpack(cls, state: State, n_labels: int, n_patterns: int, columns: Columns) -> Rounds:
        """Read what `pack` wrote of trees that ask about these columns; raises ModelFileError."""
        loss, seed = read_array(state, "loss", np.float64), state.metadata.get("seed")
        require(len(loss) == 1 and not np.isinf(loss[0]), "its loss")
        require(isinstance(seed, int) and seed >= 0, "its seed")
        assert isinstance(seed, int)
        names = ("kept", "later")
        return cls(
            [unpack_forest(state, n_labels, columns.n_asked, name) for name in names],
            read_weights(state, "weights", (n_patterns,)),
            read_weights(state, "kept_weights", (n_patterns,)),
            seed,
            loss=float(loss[0]),
        )
