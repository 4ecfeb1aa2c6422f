"""Paths: the best labellings, and random ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.trellis.posteriors import log_likelihood
from hedgerow.trellis.reading import read_floats
from hedgerow.trellis.tree_graph import inference
from hedgerow.trellis.trellis import Scores

__all__ = ["k_best", "sample", "viterbi"]


def viterbi(scores: Scores, *, n_threads: int = 1) -> NDArray[np.int32]:
    """The most probable labelling of every sequence, (N,) codes."""
    codes = np.empty(scores.n_positions, dtype=np.int32)
    inference(scores).fill_viterbi(scores, codes, n_threads)
    return codes


def k_best(
    scores: Scores, k: int, *, n_threads: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
    """The k most probable labellings of every sequence, best first.

    Returns
    -------
    codes : (k, N) int32
        Row r contains the labelling of rank r, from 0, of each sequence; 0 in sequences with fewer
        labellings.
    counts : (S,) int64
        Number of labellings found: k, or fewer if fewer exist.
    log_probs : (k, S)
        Their log probabilities, -inf beyond `counts`.
    """
    if k < 1:
        raise ValueError(f"k is {k}; expected at least 1")
    codes = np.zeros((k, scores.n_positions), dtype=np.int32)
    counts = np.empty(scores.n_sequences, dtype=np.int64)
    losses = np.full((k, scores.n_sequences), np.inf)
    inference(scores).fill_k_best(scores, codes, counts, losses, n_threads)
    return codes, counts, log_likelihood(scores, codes[0], n_threads=n_threads) - losses


def sample(scores: Scores, uniforms: ArrayLike, *, n_threads: int = 1) -> NDArray[np.int32]:
    """Draw labellings from their distribution, (n, N) codes.

    ``uniforms`` (n, N) are random numbers in [0, 1), one for each label to draw.
    """
    numbers = read_floats(uniforms)
    if numbers.ndim != 2 or numbers.shape[1] != scores.n_positions:
        raise ValueError(
            f"uniforms has shape {numbers.shape}; expected (n, {scores.n_positions}), one row per "
            "sample and one number per position"
        )
    if not ((numbers >= 0) & (numbers < 1)).all():
        raise ValueError("uniforms must be numbers in [0, 1)")
    codes = np.empty(numbers.shape, dtype=np.int32)
    inference(scores).fill_samples(scores, numbers, codes, n_threads)
    return codes
