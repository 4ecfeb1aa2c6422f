"""PatternWeights: a weight for each label pattern, whatever the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.potentials.potential import Potential
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
