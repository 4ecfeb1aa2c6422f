"""GivenScores: label scores that the user passes together with the sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.potentials.potential import AddScores, ContributionRequest, Potential
from hedgerow.sequences import Sequences
from hedgerow.tables import Table

__all__ = ["GivenScores"]


class GivenScores(Potential):
    """Scores from `hedgerow.sequences.Sequences.base_scores`."""

    def prepare(self, sequences: Sequences, n_threads: int) -> AddScores:
        """Prepare to score; the scores are already there."""
        scores, offsets = _scores_of(sequences), sequences.offsets

        def add(
            first: int, stop: int, nodes: NDArray[np.float64], edges: NDArray[np.float64] | None
        ) -> None:
            nodes += scores[offsets[first] : offsets[stop]]

        return add

    def contributions(
        self, sequences: Sequences, asked: ContributionRequest
    ) -> list[tuple[float, Table]]:
        """One feature; its value and its contribution are the requested sum of given scores."""
        scores = _scores_of(sequences)[asked.positions]
        return [
            (0.0, _as_feature(float(np.einsum("k,k", signs, row))))
            for signs, row in zip(asked.signs, scores, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """One entry, which says that scores from the user are added."""
        return {"base_scores": True}


def _as_feature(value: float) -> Table:
    return Table(
        {
            "feature": np.array(["base_scores"], np.object_),
            "offset": np.zeros(1, np.int64),
            "value": np.array([value], np.object_),
            "contribution": np.array([value]),
        }
    )


def _scores_of(sequences: Sequences) -> NDArray[np.float64]:
    assert sequences.base_scores is not None
    return sequences.base_scores
