"""Inference on chains: which labellings are likely, and how likely.

The score of a labelling y of T positions is

    sum_t nodes[t, y_t] + sum_{t>0} (arcs[y_{t-1}, y_t] + edges[t, y_{t-1}, y_t]),

and its probability is exp(score) / Z. All functions take a batch of sequences, concatenated:
positions ``offsets[s]`` to ``offsets[s + 1]`` belong to sequence s. Scores may be any finite
number; nodes and arcs may also be -inf, which forbids. Results do not depend on the number of
threads, nor on the other sequences of the batch, to the last bit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core


@dataclass(frozen=True, eq=False)
class Potentials:
    """Scores of some consecutive sequences: nodes (N, K), arcs (K, K), edges (N, K, K) or None."""

    offsets: NDArray[np.int64]
    nodes: NDArray[np.float64]
    arcs: NDArray[np.float64]
    edges: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class Posteriors:
    """What forward-backward finds out about N positions of S sequences over K labels."""

    log_z: NDArray[np.float64]
    """(S,) log of the sum over all labellings of exp(score)."""
    marginals: NDArray[np.float64]
    """(N, K) probability of each label at each position."""
    pair_sums: NDArray[np.float64] | None
    """(K, K) expected number of times the second label follows the first."""
    pairs: NDArray[np.float64] | None
    """(N, K, K) probability of (label before, label); 0 where a sequence begins."""
    log_likelihoods: NDArray[np.float64] | None
    """(S,) log probability of the given labels."""


def count_threads(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means: None all cores, -1 all cores, -2 all but one, and so on."""
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    else:
        n_cores = os.cpu_count() or 1
    if n_jobs is None:
        return n_cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(
            f"n_jobs is {n_jobs!r}; expected a positive number of threads, None or -1 for all "
            "cores, or -2 for all but one"
        )
    return int(n_jobs) if n_jobs > 0 else max(1, n_cores + 1 + int(n_jobs))


def forward_backward(
    nodes: ArrayLike,
    arcs: ArrayLike,
    offsets: ArrayLike,
    *,
    edges: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pairs: Literal["sum", "each"] | None = "sum",
    weights: ArrayLike | None = None,
    out: NDArray[np.float64] | None = None,
    n_jobs: int | None = None,
) -> Posteriors:
    """Log Z and marginals of every sequence.

    Parameters
    ----------
    nodes, arcs, offsets, edges
        Scores: (N, K), (K, K), (S + 1,) and (N, K, K).
    labels
        (N,) codes; when given, their log-likelihoods are computed in the same pass.
    pairs
        "sum" for the expected number of each label pair, "each" for the pair marginals of every
        position, None for neither.
    weights
        (S,) how much each sequence counts in ``pair_sums``; None is 1.
    out
        (N, K) float64 array that receives the marginals, to save allocating one.
    n_jobs
        Threads; None is all cores.
    """
    scores = _read_scores(nodes, arcs, offsets, edges)
    codes = None if labels is None else np.ascontiguousarray(labels, dtype=np.int32)
    result = _empty_posteriors(scores, pairs, out, likelihoods=codes is not None)
    _core.fill_posteriors(
        *scores,
        codes,
        result.log_z,
        result.log_likelihoods,
        result.marginals,
        result.pair_sums,
        result.pairs,
        None if weights is None else np.ascontiguousarray(weights, dtype=np.float64),
        count_threads(n_jobs),
    )
    return result


def weighted_forward_backward(
    nodes: ArrayLike,
    arcs: ArrayLike,
    offsets: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike,
    *,
    edges: ArrayLike | None = None,
    pairs: Literal["sum", "each"] | None = "sum",
    out: NDArray[np.float64] | None = None,
    n_jobs: int | None = None,
) -> Posteriors:
    """The likelihood with a weight for each position, and its expected counts.

    By the chain rule log P(y) is the sum of log P(y_t | y_{t-1}); here the term of position t is
    multiplied by ``weights[t]``. ``log_likelihoods`` are these weighted sums; ``marginals``,
    ``pair_sums`` and ``pairs`` are what has to be subtracted from the weighted observed counts to
    get the gradient. With all weights 1 they are those of `forward_backward`.
    """
    scores = _read_scores(nodes, arcs, offsets, edges)
    result = _empty_posteriors(scores, pairs, out, likelihoods=True)
    result.log_z.fill(np.nan)  # there is no one Z behind a weighted likelihood
    assert result.log_likelihoods is not None
    _core.fill_weighted_posteriors(
        *scores,
        np.ascontiguousarray(labels, dtype=np.int32),
        np.ascontiguousarray(weights, dtype=np.float64),
        result.log_likelihoods,
        result.marginals,
        result.pair_sums,
        result.pairs,
        count_threads(n_jobs),
    )
    return result


def log_likelihood(
    nodes: ArrayLike,
    arcs: ArrayLike,
    offsets: ArrayLike,
    labels: ArrayLike,
    *,
    edges: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Log probability of the given labels, (S,), by a forward pass alone."""
    scores = _read_scores(nodes, arcs, offsets, edges)
    out = np.empty(len(scores[3]) - 1)
    codes = np.ascontiguousarray(labels, dtype=np.int32)
    _core.fill_posteriors(*scores, codes, None, out, None, None, None, None, count_threads(n_jobs))
    return out


def viterbi(
    nodes: ArrayLike,
    arcs: ArrayLike,
    offsets: ArrayLike,
    *,
    edges: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.int32]:
    """The most probable labelling of every sequence, (N,) codes."""
    scores = _read_scores(nodes, arcs, offsets, edges)
    codes = np.empty(len(scores[0]), dtype=np.int32)
    _core.fill_viterbi(*scores, codes, count_threads(n_jobs))
    return codes


Scores = tuple[
    NDArray[np.float64], NDArray[np.float64], "NDArray[np.float64] | None", NDArray[np.int64]
]


def _read_scores(
    nodes: ArrayLike, arcs: ArrayLike, offsets: ArrayLike, edges: ArrayLike | None
) -> Scores:
    return (
        np.ascontiguousarray(nodes, dtype=np.float64),
        np.ascontiguousarray(arcs, dtype=np.float64),
        None if edges is None else np.ascontiguousarray(edges, dtype=np.float64),
        np.ascontiguousarray(offsets, dtype=np.int64),
    )


def _empty_posteriors(
    scores: Scores, pairs: str | None, out: NDArray[np.float64] | None, *, likelihoods: bool
) -> Posteriors:
    """Room for what a kernel fills."""
    if pairs not in ("sum", "each", None):
        raise ValueError(f"pairs is {pairs!r}; expected 'sum', 'each' or None")
    n_positions, n_labels = scores[0].shape
    n_sequences = len(scores[3]) - 1
    return Posteriors(
        log_z=np.empty(n_sequences),
        marginals=np.empty((n_positions, n_labels)) if out is None else out,
        pair_sums=np.empty((n_labels, n_labels)) if pairs == "sum" else None,
        pairs=np.empty((n_positions, n_labels, n_labels)) if pairs == "each" else None,
        log_likelihoods=np.empty(n_sequences) if likelihoods else None,
    )
