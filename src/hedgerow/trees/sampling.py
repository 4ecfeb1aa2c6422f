"""Sampling: which sequences and examples a round learns from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.exact_sums import count_all
from hedgerow.identity import draw_uniforms, find_uniform

__all__ = ["NegativeWeight", "Purpose", "Sampling", "draw_key", "select_positions"]

NegativeWeight = Literal["unbiased", "none", "balanced"]


@dataclass(frozen=True)
class Sampling:
    """Which sequences and examples the rounds learn from."""

    trim: float
    """Examples whose gradient is at most this, for each unit that a position counts, are left out;
    none are if it is negative."""
    subsample: float = 1.0
    """Share of the sequences, drawn in every round."""
    negative_ratio: float = 0.0
    """Examples of labels not observed for each one that was; 0: all."""
    seed: int = 0
    share: float = 1.0
    """Share of the examples, drawn in every round in proportion to their gradients, and counting
    for as much more as they were unlikely to be."""
    negative_weight: NegativeWeight = "unbiased"
    """How much drawn examples of labels not observed count: for all of them in the mean, as any
    other, or together as much as those of the observed label."""

    @property
    def draws_examples(self) -> bool:
        """Whether examples are drawn, not just sequences."""
        return self.share < 1 or self.negative_ratio > 0


class Purpose(IntEnum):
    """The purpose of random numbers."""

    SEQUENCES = 0
    EXAMPLES = 1
    COLUMNS = 2


def draw_key(seed: int, round_number: int, purpose: Purpose) -> int:
    """A key of 64 bits for the random numbers of one purpose in one round.

    It depends on nothing else, so that a resumed training run draws the same numbers as an
    uninterrupted one.
    """
    state = np.random.SeedSequence([seed, round_number, int(purpose)])
    return int(state.generate_state(1, np.uint64)[0])


def select_positions(
    offsets: NDArray[np.int64],
    share: float,
    key: int,
    identities: NDArray[np.uint64] | None = None,
    comm: Comm = ALONE,
) -> NDArray[np.uint8] | None:
    """Mark the positions of a random share of whole sequences, (N,); None for all of them.

    At least one sequence of all workers is chosen. The draws depend on ``identities`` (S,); None:
    on the numbers of the sequences.
    """
    if share >= 1:
        return None
    if identities is None:
        identities = np.arange(len(offsets) - 1, dtype=np.uint64)
    uniforms = draw_uniforms(identities, key)
    n_chosen = max(1, round(share * count_all(len(uniforms), comm)))
    chosen = uniforms <= find_uniform(uniforms, n_chosen - 1, comm)
    return np.repeat(chosen.astype(np.uint8), np.diff(offsets))
