"""PatternWeights: a weight for each label pattern, whatever the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Grammar
from hedgerow.potentials.potential import Potential
from hedgerow.sequences import Schema
from hedgerow.state import State, read_weights
from hedgerow.trellis import Trellis

__all__ = ["PatternWeights"]


@dataclass(frozen=True, eq=False)
class PatternWeights(Potential):
    """Scores of label patterns, the same at every position.

    Attributes
    ----------
    weights : (P,)
        Weight of each label pattern of the trellis.
    """

    weights: NDArray[np.float64]

    def add_arcs(self, trellis: Trellis, arcs: NDArray[np.float64]) -> None:
        """Each arc scores the sum of the patterns that it ends."""
        arcs += trellis.arc_scores(self.weights, forbidden=0.0)

    def pack(self) -> State:
        """The weights; the patterns are the grammar's."""
        return State({"patterns.weights": self.weights}, {})

    def to_json(self) -> dict[str, Any]:
        """Nothing: the document lists the patterns with their weights."""
        return {}

    @classmethod
    def unpack(
        cls, state: State, *, schema: Schema, index: _core.StringIndex, grammar: Grammar
    ) -> PatternWeights:
        """Read what `pack` wrote; format 1 had those of all label pairs, in a square."""
        if "pairs.weights" in state.tensors:
            shape = grammar.n_labels, grammar.n_labels
            return cls(read_weights(state, "pairs.weights", shape).ravel())
        return cls(read_weights(state, "patterns.weights", (len(grammar.patterns),)))
