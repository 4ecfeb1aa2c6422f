"""Rounds: what boosting has learned so far, what is kept, and its form in a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.state import LARGEST_WEIGHT, State, read_array, read_weights, require
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest, split_rounds
from hedgerow.trees.forest_state import pack_forest, unpack_forest

__all__ = ["Part", "Rounds"]


@dataclass(frozen=True, eq=False)
class Part:
    """What one or several rounds have learned: trees, the step size, and the carry.

    The carry is the share of the previous direction D, which is 0 before the first part:

        D <- trees + carry D,    scores <- scores + step D.

    By default, the carry is 0 and the step is 1: the trees are added to the scores.
    """

    trees: Forest
    step: float = 1.0
    carry: float = 0.0


@dataclass(eq=False)
class Rounds:
    """The rounds so far.

    Attributes
    ----------
    parts : list of Part
        All trees: those of an initial model, then those of each round.
    weights, kept_weights : (P,)
        Weights of the label patterns after all rounds, and after those that are kept.
    seed : int
        Seed of random numbers.
    have_directions : bool
        Whether the rounds have steps and carries: one part for each round except those of an
        initial model. Otherwise trees are simply added, and a part may contain several rounds.
    n_kept : int
        Number of parts that are kept.
    loss : float
        The training loss of the kept rounds, a mean over positions; NaN if it is not known yet.
    n_rounds : int
        Number of rounds.
    """

    parts: list[Part]
    weights: NDArray[np.float64]
    kept_weights: NDArray[np.float64]
    seed: int
    have_directions: bool = False
    n_kept: int = 1
    loss: float = np.nan
    n_rounds: int = field(init=False)

    def __post_init__(self) -> None:
        self.n_rounds = sum(part.trees.n_rounds for part in self.parts)

    @classmethod
    def begin(
        cls,
        forest: Forest,
        weights: NDArray[np.float64],
        seed: int,
        *,
        have_directions: bool = False,
    ) -> Rounds:
        """The state before the first round, with the trees and weights of an initial model."""
        return cls([Part(forest)], weights, weights, seed, have_directions)

    @property
    def n_kept_rounds(self) -> int:
        """Number of rounds that are kept."""
        return sum(part.trees.n_rounds for part in self.parts[: self.n_kept])

    @property
    def last_step(self) -> float:
        """The step of the last round; 0 before the first."""
        return self.parts[-1].step if len(self.parts) > 1 else 0.0

    def kept_forest(self) -> Forest:
        """The trees of the kept rounds, with their weights at that point."""
        kept = self.parts[: self.n_kept]
        weighted = zip(kept, coefficients(kept), strict=True)
        return self._join([part.trees.scaled(factor) for part, factor in weighted])

    def add(self, part: Part, weights: NDArray[np.float64]) -> None:
        """Add a round."""
        self.parts.append(part)
        self.weights = weights
        self.n_rounds += 1

    def keep(self, loss: float) -> None:
        """Keep all rounds so far."""
        self.n_kept, self.kept_weights, self.loss = len(self.parts), self.weights, loss

    def _join(self, forests: list[Forest]) -> Forest:
        return Forest.join(self.parts[0].trees.n_outputs, forests)

    def pack(self) -> State:
        """The rounds, for a checkpoint."""
        tensors = {
            "weights": self.weights,
            "kept_weights": self.kept_weights,
            "loss": np.array([self.loss]),
        }
        if self.have_directions:
            tensors["steps"] = np.array([part.step for part in self.parts[1:]])
            tensors["carries"] = np.array([part.carry for part in self.parts[1:]])
        trees = [part.trees for part in self.parts]
        kept, later = self._join(trees[: self.n_kept]), self._join(trees[self.n_kept :])
        tensors |= pack_forest(kept, "kept") | pack_forest(later, "later")
        return State(tensors, {"seed": self.seed})

    @classmethod
    def unpack(
        cls,
        state: State,
        n_labels: int,
        n_patterns: int,
        columns: Columns,
        *,
        have_directions: bool = False,
    ) -> Rounds:
        """Read the output of `pack` for trees on these columns; raises ModelFileError."""
        loss, seed = read_array(state, "loss", np.float64), state.metadata.get("seed")
        require(len(loss) == 1 and not np.isinf(loss[0]), "its loss is not valid")
        require(isinstance(seed, int) and seed >= 0, "its seed is not valid")
        assert isinstance(seed, int)
        kept, later = (unpack_forest(state, n_labels, columns, name) for name in ("kept", "later"))
        parts, n_kept = [Part(kept), Part(later)], 1
        if have_directions:
            parts = _read_directions(state, Forest.join(n_labels, [kept, later]))
            n_kept = len(parts) - later.n_rounds
            require(n_kept >= 1, "its rounds do not fit together")
        return cls(
            parts,
            read_weights(state, "weights", (n_patterns,)),
            read_weights(state, "kept_weights", (n_patterns,)),
            seed,
            have_directions,
            n_kept=n_kept,
            loss=float(loss[0]),
        )


def coefficients(parts: Sequence[Part]) -> list[float]:
    """Weight of the trees of each part in the scores after the last one.

    The trees of part i are in all later directions: with steps s and carries b the weight is

        c_i = sum_{m >= i} s_m prod_{i < l <= m} b_l = s_i + b_{i+1} c_{i+1}.
    """
    found: list[float] = []
    after = 0.0  # b_{i+1} c_{i+1}
    for part in reversed(parts):
        found.append(part.step + after)
        after = part.carry * found[-1]
    return found[::-1]


def _read_directions(state: State, forest: Forest) -> list[Part]:
    """One part for each round with a step and a carry, after one for the rounds before."""
    steps = read_array(state, "steps", np.float64)
    require(len(steps) <= forest.n_rounds, "it has more steps than rounds")
    read_weights(state, "steps", steps.shape)
    carries = read_weights(state, "carries", steps.shape)
    rounds = split_rounds(forest)
    n_before = len(rounds) - len(steps)
    parts = [Part(Forest.join(forest.n_outputs, rounds[:n_before]))]
    parts += map(Part, rounds[n_before:], steps.tolist(), carries.tolist())
    largest = np.abs(coefficients(parts)).max()
    require(largest <= LARGEST_WEIGHT, "its shares of previous directions are out of range")
    return parts
