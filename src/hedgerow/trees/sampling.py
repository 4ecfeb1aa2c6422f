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
    """Examples are left out if the absolute value of their gradient is at most `trim` times the
    weight of the position; if `trim` is below 0, none are left out."""
    subsample: float = 1.0
    """Share of the sequences that are drawn in every round."""
    negative_ratio: float = 0.0
    """Number of negative examples per positive one (that of the observed label); 0: all."""
    seed: int = 0
    share: float = 1.0
    """Share of the examples that are drawn in every round, with probabilities proportional to
    their gradients and weights of 1 / probability."""
    negative_weight: NegativeWeight = "unbiased"
    """Weight of drawn negative examples: unbiased, 1, or balanced with the positive ones, see
    `TreeCRF`."""

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
