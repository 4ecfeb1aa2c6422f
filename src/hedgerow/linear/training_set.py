"""The training set of a linear model: attributes, labels and how much each of them counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Labels
from hedgerow.linear.attributes import AttributeColumns
from hedgerow.sequences import Sequences, SparseRows


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """N labelled positions.

    Attributes
    ----------
    sequences : Sequences
        The positions, as they came.
    index : StringIndex
        Names of the attributes.
    rows : SparseRows
        Attributes of each position.
    labels : Labels
        The classes.
    codes : (N,) int32
        Label of each position.
    sequence_weights : (S,) or None
        How much each sequence counts.
    position_weights : (N,) or None
        How much each position counts, its sequence's weight included, if positions differ within a
        sequence; see `hedgerow.trellis.weighted_forward_backward`.
    """

    sequences: Sequences
    index: _core.StringIndex
    rows: SparseRows
    labels: Labels
    codes: NDArray[np.int32]
    sequence_weights: NDArray[np.float64] | None
    position_weights: NDArray[np.float64] | None

    @cached_property
    def columns(self) -> AttributeColumns:
        """Positions of each attribute."""
        return AttributeColumns.from_rows(self.rows)

    @cached_property
    def pair_codes(self) -> NDArray[np.int32]:
        """Label pair j * K + k that ends at each position, (N,), -1 where a sequence begins."""
        codes = np.full(len(self.codes), -1, dtype=np.int32)
        codes[1:] = self.codes[:-1] * len(self.labels.classes) + self.codes[1:]
        codes[self.sequences.offsets[:-1]] = -1
        return codes

    @cached_property
    def scale(self) -> NDArray[np.float64] | None:
        """How much each position counts, (N,), or None if all count 1."""
        if self.position_weights is not None or self.sequence_weights is None:
            return self.position_weights
        return np.repeat(self.sequence_weights, self.sequences.lengths)
