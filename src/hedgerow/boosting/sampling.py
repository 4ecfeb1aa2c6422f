"""Sampling: which sequences and examples a round learns from."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["Purpose", "draw_key", "select_positions"]


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
