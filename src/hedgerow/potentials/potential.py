"""Potential: the interface of a part of a model that scores labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Grammar
from hedgerow.sequences import Schema, Sequences
from hedgerow.state import State
from hedgerow.tables import Table
from hedgerow.trellis import Trellis

__all__ = ["AddScores", "ContributionRequest", "Potential", "join_contributions"]

# Columns of a table of contributions.
CONTRIBUTIONS = {
    "feature": np.object_,
    "offset": np.int64,
    "value": np.object_,
    "contribution": np.float64,
}

# Given the numbers of the first sequence and of the one after the last, adds to the scores of their
# nodes, (N, K), and of their edges, if the model has any: (N, K, K); (N, P) for `scores_patterns`;
# or the shape of the arcs for `scores_arcs`.
AddScores = Callable[[int, int, NDArray[np.float64], NDArray[np.float64] | None], None]


class Potential:
    """A part of a model: the score of a labelling is the sum over all parts."""

    @property
    def has_edges(self) -> bool:
        """Whether it has edges: scores of label pairs, patterns or arcs that differ by position."""
        return False

    @property
    def scores_patterns(self) -> bool:
        """Whether its edges are scores of all label patterns of the trellis, (N, P)."""
        return False

    @property
    def scores_arcs(self) -> bool:
        """Whether its edges are scores of all arcs of the trellis, (N, *arc_shape).

        `contributions` then explains them too.
        """
        return False

    @property
    def edge_trellis(self) -> Trellis | None:
        """The trellis whose arcs or label patterns it scores; None: the model's trellis.

        All label patterns of this one are among those of the model.
        """
        return None

    @staticmethod
    def check_values(sequences: Sequences, name: str, *, n_threads: int) -> None:
        """Raise ValueError if X contains numbers that it does not support."""
        return

    def batch_positions(self, trellis: Trellis) -> int | None:
        """Number of positions to score at a time; None if it does not matter."""
        return None

    def prepare(self, sequences: Sequences, n_threads: int) -> AddScores | None:
        """Prepare to score some sequences, in parts; None if it has nothing to add."""
        return None

    def add_arcs(self, trellis: Trellis, arcs: NDArray[np.float64]) -> None:
        """Add to the scores of the arcs, which are the same at every position."""
        return

    def contributions(
        self, sequences: Sequences, asked: ContributionRequest
    ) -> list[tuple[float, Table]] | None:
        """What each feature adds to sums of node scores; None if it has no node scores.

        If it `scores_arcs`, scores of the arcs into the positions are included. Returns for each
        requested position the bias, and a table: feature, offset, value, contribution.
        """
        return None

    def pack(self) -> State:
        """The contents of a model file that belong to it."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot be saved in a model file: it lacks the methods pack and "
            "unpack"
        )

    def to_json(self) -> dict[str, Any]:
        """The contents of a JSON document that belong to it, as plain values by name."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot be written as JSON: it lacks the method to_json"
        )

    @classmethod
    def unpack(
        cls, state: State, *, schema: Schema, index: _core.StringIndex, grammar: Grammar
    ) -> Potential:
        """Read the output of `pack`, after the other parts of the model; raises ModelFileError."""
        raise NotImplementedError(
            f"{cls.__name__} cannot be read from a model file: it lacks the method unpack"
        )


@dataclass(frozen=True, eq=False)
class ContributionRequest:
    """Which sums of label scores to divide into contributions of features.

    Attributes
    ----------
    positions : (n,) int64
        Positions among those of all sequences.
    signs : (n, K) int64
        Factor of the score of each label at these positions.
    codes : (N,) int32
        Labels of all positions, for arcs into the requested ones.
    """

    positions: NDArray[np.int64]
    signs: NDArray[np.int64]
    codes: NDArray[np.int32]


def join_contributions(
    potentials: Iterable[Potential], sequences: Sequences, asked: ContributionRequest
) -> list[tuple[float, Table]]:
    """The contributions of several potentials: bias and features of each position."""
    found = [part.contributions(sequences, asked) for part in potentials]
    there = [each for each in found if each is not None]
    return [_join([each[i] for each in there]) for i in range(len(asked.positions))]


def _join(parts: list[tuple[float, Table]]) -> tuple[float, Table]:
    columns = {
        name: np.concatenate([np.empty(0, dtype), *(table[name] for _, table in parts)])
        for name, dtype in CONTRIBUTIONS.items()
    }
    return sum(bias for bias, _ in parts), Table(columns)
