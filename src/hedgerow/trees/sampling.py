"""Sampling: which sequences and examples a round learns from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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


class Purpose(IntEnum):
    """What random numbers are for."""

    SEQUENCES = 0
    EXAMPLES = 1
    COLUMNS = 2


def draw_key(seed: int, round_number: int, purpose: Purpose) -> int:
    """A key of 64 bits for the random numbers of one purpose in one round.

    It depends on nothing else, so that a training that goes on later draws what one that never
    stopped would have drawn.
    """
    state = np.random.SeedSequence([seed, round_number, int(purpose)])
    return int(state.generate_state(1, np.uint64)[0])


def select_positions(
    offsets: NDArray[np.int64], share: float, key: int
) -> NDArray[np.uint8] | None:
    """Mark the positions of a random share of whole sequences, (N,); None for all of them.

    At least one sequence is chosen.
    """
    if share >= 1:
        return None
    n_sequences = len(offsets) - 1
    n_chosen = max(1, round(share * n_sequences))
    chosen = np.zeros(n_sequences, dtype=np.uint8)
    chosen[np.random.default_rng(key).permutation(n_sequences)[:n_chosen]] = 1
    return np.repeat(chosen, np.diff(offsets))
