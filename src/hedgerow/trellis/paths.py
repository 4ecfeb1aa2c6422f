"""Paths: the best labellings, and random ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.trellis.posteriors import log_likelihood
from hedgerow.trellis.potentials import Potentials, Scores, count_threads, over_automaton

__all__ = ["k_best", "sample", "viterbi"]


def viterbi(potentials: Potentials, *, n_jobs: int | None = None) -> NDArray[np.int32]:
    """The most probable labelling of every sequence, (N,) codes."""
    scores = Scores(potentials)
    codes = np.empty(potentials.n_positions, dtype=np.int32)
    scores.bind(_core.fill_viterbi, _core.fill_automaton_viterbi)(codes, count_threads(n_jobs))
    return codes


def k_best(
    potentials: Potentials, k: int, *, n_jobs: int | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
    """The k most probable labellings of every sequence, best first.

    Returns
    -------
    codes : (k, N) int32
        Row r holds the labels of rank r, of those sequences that have so many labellings.
    counts : (S,) int64
        Number of labellings found: k, or all there are.
    log_probs : (k, S)
        Their log probabilities, -inf beyond `counts`.
    """
    if k < 1:
        raise ValueError(f"k is {k}; expected at least 1")
    scores = Scores(over_automaton(potentials))
    codes = np.zeros((k, potentials.n_positions), dtype=np.int32)
    counts = np.empty(potentials.n_sequences, dtype=np.int64)
    losses = np.full((k, potentials.n_sequences), np.inf)
    scores.bind(None, _core.fill_k_best)(codes, counts, losses, count_threads(n_jobs))
    return codes, counts, log_likelihood(potentials, codes[0], n_jobs=n_jobs) - losses


def sample(
    potentials: Potentials, uniforms: ArrayLike, *, n_jobs: int | None = None
) -> NDArray[np.int32]:
    """Draw labellings from their distribution, (n, N) codes.

    ``uniforms`` (n, N) are random numbers in [0, 1), one for each label to draw.
    """
    scores = Scores(over_automaton(potentials))
    numbers = np.ascontiguousarray(uniforms, dtype=np.float64)
    if numbers.ndim != 2 or not ((numbers >= 0) & (numbers < 1)).all():
        raise ValueError("uniforms must be numbers in [0, 1), a row for each sample")
    codes = np.empty(numbers.shape, dtype=np.int32)
    scores.bind(None, _core.fill_samples)(numbers, codes, count_threads(n_jobs))
    return codes
