"""PatternWeights: a weight for each label pattern, independent of the input."""

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
        """Add to the score of each arc the weights of the patterns that end with it."""
        arcs += trellis.arc_scores(self.weights, forbidden=0.0)

    def pack(self) -> State:
        """The weights; the patterns are in the grammar."""
        return State({"patterns.weights": self.weights}, {})

    def to_json(self) -> dict[str, Any]:
        """Nothing: the document lists the patterns with their weights."""
        return {}

    @classmethod
    def unpack(
        cls, state: State, *, schema: Schema, index: _core.StringIndex, grammar: Grammar
    ) -> PatternWeights:
        """Read the output of `pack`; format 1 had a square matrix of all label pairs."""
        if "pairs.weights" in state.tensors:
            shape = grammar.n_labels, grammar.n_labels
            return cls(read_weights(state, "pairs.weights", shape).ravel())
        return cls(read_weights(state, "patterns.weights", (len(grammar.patterns),)))
