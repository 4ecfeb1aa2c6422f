"""Potential: the interface of a part of a model that gives scores to labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Grammar
from hedgerow.sequences import Schema, Sequences
from hedgerow.state import State
from hedgerow.tables import Table
from hedgerow.trellis import Trellis

__all__ = ["AddScores", "Potential", "join_contributions"]

# Columns of a table of contributions.
CONTRIBUTIONS = {
    "feature": np.object_,
    "offset": np.int64,
    "value": np.object_,
    "contribution": np.float64,
}

# Given the numbers of the first sequence and of the one after the last, adds to the scores of their
# nodes, (N, K), and of their edges, if the model has any: (N, K, K), (N, P) for what
# `scores_patterns`, or in the shape of the arcs for what `scores_arcs`.
AddScores = Callable[[int, int, NDArray[np.float64], NDArray[np.float64] | None], None]


class Potential:
    """A part of a model: the score of a labelling is the sum over all parts."""

    @property
    def has_edges(self) -> bool:
        """Whether it scores label pairs, or what they are part of, position by position."""
        return False

    @property
    def scores_patterns(self) -> bool:
        """Whether what it scores position by position are all label patterns of the trellis."""
        return False

    @property
    def scores_arcs(self) -> bool:
        """Whether what it scores position by position are all arcs of the trellis.

        Then edges have the shape of the arcs, (N, *arc_shape), and `contributions` explains them.
        """
        return False

    @property
    def edge_trellis(self) -> Trellis | None:
        """What the arcs or label patterns that it scores belong to; None: the model's trellis.

        All label patterns of this one are among those of the model.
        """
        return None

    @staticmethod
    def check_values(sequences: Sequences, name: str, *, n_threads: int) -> None:
        """Raise ValueError if X holds numbers that it cannot take; ``name`` is the estimator's."""
        return

    def batch_positions(self, trellis: Trellis) -> int | None:
        """How many positions to score at one go; None if that does not matter."""
        return None

    def prepare(self, sequences: Sequences, n_threads: int) -> AddScores | None:
        """Get ready to score some sequences, part by part; None if it has nothing to add."""
        return None

    def add_arcs(self, trellis: Trellis, arcs: NDArray[np.float64]) -> None:
        """Add to the scores of the arcs, which are the same at every position."""
        return

    def contributions(
        self,
        sequences: Sequences,
        position: int,
        signs: NDArray[np.int64],
        codes: NDArray[np.int32],
    ) -> tuple[float, Table] | None:
        """What makes up a sum of node scores at a position of one sequence; None if nothing does.

        ``signs`` (K,) says how often the score of each label counts. If it `scores_arcs`, so do the
        scores of the arcs into the position, its predecessors having the labels ``codes`` (T,).
        Returns what is there without any feature, and the columns feature, offset, value,
        contribution.
        """
        return None

    def pack(self) -> State:
        """What a model file has to hold of it."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot be saved in a model file: it lacks the methods pack and "
            "unpack"
        )

    def to_json(self) -> dict[str, Any]:
        """What a JSON document of the model has to hold of it, as plain values by name."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot be written as JSON: it lacks the method to_json"
        )

    @classmethod
    def unpack(
        cls, state: State, *, schema: Schema, index: _core.StringIndex, grammar: Grammar
    ) -> Potential:
        """Read what `pack` wrote, all else of the model being read; raises ModelFileError."""
        raise NotImplementedError(f"{cls.__name__} cannot be saved in a model file")


def join_contributions(found: Iterable[tuple[float, Table] | None]) -> tuple[float, Table]:
    """Those of several potentials: what is there without any feature, and what features add."""
    there = [each for each in found if each is not None]
    columns = {
        name: np.concatenate([np.empty(0, dtype), *(table[name] for _, table in there)])
        for name, dtype in CONTRIBUTIONS.items()
    }
    return sum(bias for bias, _ in there), Table(columns)
