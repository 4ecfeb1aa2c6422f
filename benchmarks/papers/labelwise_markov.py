"""A hidden Markov model with two states, C and I, which emit bases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.trellis import Chain, Scores, forward_backward, viterbi

STATES = np.array(["C", "I"])


@dataclass(frozen=True)
class HiddenMarkov:
    """Probabilities to stay in C and in I, and those of A, C, G and T in either state."""

    stay: tuple[float, float]
    emissions: tuple[tuple[float, ...], tuple[float, ...]]

    def draw(self, length: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Bases 0 to 3 and states 0 and 1, (length,)."""
        states = self._draw_states(length, rng)
        reached = np.cumsum(self.emissions, axis=1)
        bases = (rng.random((length, 1)) > reached[states, :-1]).sum(axis=1)
        return bases, states

    def _draw_states(self, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """One number u for each position: both states stay, both change, or one does.

        If only one of them changes, the next state is the other one, whatever it was before.
        """
        u = rng.random(length)
        n_changes = np.cumsum(u >= max(self.stay))
        settled = (u >= min(self.stay)) & (u < max(self.stay))
        # The last position at which the state was determined; -1: it depends on the initial state.
        last = np.maximum.accumulate(np.where(settled, np.arange(length), -1))
        kept = int(self.stay[1] > self.stay[0])
        begun = rng.integers(2)
        since: NDArray[np.int64] = n_changes - np.where(last >= 0, n_changes[last], 0)
        states: NDArray[np.int64] = (np.where(last >= 0, kept, begun) + since) % 2
        return states

    def accuracies(self, bases: NDArray[Any], states: NDArray[Any]) -> dict[str, float]:
        """Share of the states that the model itself finds, by decoder."""
        stay = np.array(self.stay)
        arcs = np.log(np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]]))
        nodes = np.ascontiguousarray(np.log(self.emissions).T[bases])
        scores = Scores(nodes, arcs, np.array([0, len(bases)]), Chain(2))
        found = {
            "marginal": forward_backward(scores).marginals.argmax(axis=1),
            "viterbi": viterbi(scores),
        }
        return {decode: float(np.mean(codes == states)) for decode, codes in found.items()}
