"""BaseModel: the scores of a base model, on top of which a model is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels import Patterns
from hedgerow.potentials.potential import (
    AddScores,
    ContributionRequest,
    Potential,
    join_contributions,
)
from hedgerow.potentials.scoring import edge_shape, prepare
from hedgerow.sequences import FoldScores, Sequences
from hedgerow.tables import Table
from hedgerow.trellis import Trellis

__all__ = ["BaseModel"]


@dataclass(frozen=True, eq=False)
class BaseModel(Potential):
    """The potentials of a base model, which use `hedgerow.sequences.Sequences.base`.

    Sequences that the base was trained on may have scores from models that were not trained on
    them.

    Attributes
    ----------
    potentials : tuple of Potential
        All but the weights of label patterns and the scores that the user passes.
    trellis : Trellis
        The trellis of the base; its potentials score the label patterns and arcs of this trellis.
    patterns, pattern_weights : Patterns, (P,)
        Its label patterns and their weights, from which training starts.
    """

    potentials: tuple[Potential, ...]
    trellis: Trellis
    patterns: Patterns
    pattern_weights: NDArray[np.float64]

    @property
    def has_edges(self) -> bool:
        """Whether any potential scores edges."""
        return any(potential.has_edges for potential in self.potentials)

    @property
    def scores_patterns(self) -> bool:
        """Whether any potential scores patterns."""
        return any(potential.scores_patterns for potential in self.potentials)

    @property
    def scores_arcs(self) -> bool:
        """Whether any potential scores arcs."""
        return any(potential.scores_arcs for potential in self.potentials)

    @property
    def edge_trellis(self) -> Trellis:
        """The trellis of the base."""
        return self.trellis

    @property
    def edge_shape(self) -> tuple[int, ...] | None:
        """Shape of the edges of a position, in the trellis of the base."""
        return edge_shape(self.potentials, self.trellis)

    def batch_positions(self, trellis: Trellis) -> int | None:
        """The smallest number that any potential requests."""
        sizes = [potential.batch_positions(self.trellis) for potential in self.potentials]
        return min((size for size in sizes if size is not None), default=None)

    def prepare(self, sequences: Sequences, n_threads: int) -> AddScores:
        """Prepare all potentials, or their cross-fitted replacements."""
        seen = seen_by_base(sequences)
        if seen.fold_scores is not None:
            return _add_scores(seen.fold_scores, seen.offsets)
        adders = prepare(self.potentials, seen, self.trellis, self.edge_shape, n_threads)
        has_edges = self.has_edges

        def add(
            first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
        ) -> None:
            for each in adders:
                if each is not None:
                    each(first, stop, nodes, edges if has_edges else None)

        return add

    def contributions(
        self, sequences: Sequences, asked: ContributionRequest
    ) -> list[tuple[float, Table]]:
        """The contributions of all potentials; names of features begin with "base"."""
        found = join_contributions(self.potentials, seen_by_base(sequences), asked)
        return [(bias, _with_prefix(table)) for bias, table in found]

    def to_json(self) -> dict[str, Any]:
        """Nothing: the document contains that of the base."""
        return {}


def _with_prefix(table: Table) -> Table:
    names = [f"base: {name}" for name in table["feature"].tolist()]
    return Table({**table, "feature": np.array(names, np.object_)})


def seen_by_base(sequences: Sequences) -> Sequences:
    """The sequences with the features of the base model."""
    assert sequences.base is not None
    return sequences.base


def _add_scores(scores: FoldScores, offsets: NDArray[np.int64]) -> AddScores:
    def add(
        first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
    ) -> None:
        place = slice(int(offsets[first]), int(offsets[stop]))
        nodes += scores.nodes[place]
        if scores.edges is not None:
            assert edges is not None
            edges += scores.edges[place]

    return add
