"""The training set of a linear model: its labels, and how much each of them counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Labels
from hedgerow.sequences import Schema


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """N labelled positions of S sequences; their attributes are kept apart, to be let go early.

    Attributes
    ----------
    offsets : (S + 1,) int64
        Sequence s holds the positions ``offsets[s]`` to ``offsets[s + 1]``.
    schema : Schema
        What the columns of X are.
    index : StringIndex
        Names of the attributes.
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

    offsets: NDArray[np.int64]
    schema: Schema
    index: _core.StringIndex
    labels: Labels
    codes: NDArray[np.int32]
    sequence_weights: NDArray[np.float64] | None
    position_weights: NDArray[np.float64] | None

    @cached_property
    def pair_codes(self) -> NDArray[np.int32]:
        """Label pair j * K + k that ends at each position, (N,), -1 where a sequence begins."""
        codes = np.full(len(self.codes), -1, dtype=np.int32)
        codes[1:] = self.codes[:-1] * len(self.labels.classes) + self.codes[1:]
        codes[self.offsets[:-1]] = -1
        return codes

    @cached_property
    def scale(self) -> NDArray[np.float64] | None:
        """How much each position counts, (N,), or None if all count 1."""
        if self.position_weights is not None or self.sequence_weights is None:
            return self.position_weights
        return np.repeat(self.sequence_weights, np.diff(self.offsets))
