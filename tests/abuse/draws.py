"""Draws: whether random labels are where random numbers fall."""

from collections.abc import Iterable, Sequence

import numpy as np

from reference.automata import PatternChain

__all__ = ["check_draws"]


def check_draws(
    chain: PatternChain,
    scores: np.ndarray,
    drawn: Iterable[Sequence[int]],
    uniforms: np.ndarray,
    slack: float,
) -> None:
    """Each label is the first whose cumulated probability, given those before, exceeds a number.

    ``scores`` (K**T,) of all labellings, ``uniforms`` (n, T); probabilities may differ by `slack`.
    """
    for codes, numbers in zip(drawn, uniforms, strict=True):
        agree = np.ones(len(scores), dtype=bool)
        for t, (code, number) in enumerate(zip(codes, numbers, strict=True)):
            options = range(chain.nodes.shape[1])
            sums = [
                np.logaddexp.reduce(scores[agree & (chain.labellings[:, t] == k)], initial=-np.inf)
                for k in options
            ]
            assert sums[code] > -np.inf
            probs = np.exp(sums - np.max(sums))
            ends = np.concatenate([[0.0], np.cumsum(probs / probs.sum())])
            assert ends[code] - slack <= number <= ends[code + 1] + slack
            agree &= chain.labellings[:, t] == code
