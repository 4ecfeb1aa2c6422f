"""Forward-backward: how probable labels, label pairs, arcs and labellings are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.labels.automaton import PatternArcs
from hedgerow.trellis.potentials import (
    Potentials,
    Scores,
    count_threads,
    read_codes,
    read_weights,
)

__all__ = [
    "Pairs",
    "Posteriors",
    "empty_posteriors",
    "forward_backward",
    "log_likelihood",
    "log_z",
    "weighted_forward_backward",
]

Pairs = Literal["sum", "each"] | None


@dataclass(frozen=True, eq=False)
class Posteriors:
    """What forward-backward finds out about N positions of S sequences over K labels."""

    log_z: NDArray[np.float64]
    """(S,) log of the sum over all labellings of exp(score)."""
    marginals: NDArray[np.float64]
    """(N, K) probability of each label at each position."""
    arc_sums: NDArray[np.float64] | None
    """(K, K), or (A,) with an automaton: expected number of times each arc is taken."""
    pairs: NDArray[np.float64] | None
    """(N, K, K) probability of (label before, label); 0 where a sequence begins."""
    arc_marginals: NDArray[np.float64] | None
    """(N, A) probability that each arc of an automaton is taken."""
    pattern_marginals: NDArray[np.float64] | None
    """(N, P) probability that each label pattern ends at each position."""
    log_likelihoods: NDArray[np.float64] | None
    """(S,) log probability of the given labels."""


def forward_backward(
    potentials: Potentials,
    *,
    labels: ArrayLike | None = None,
    pairs: Pairs = "sum",
    arc_marginals: bool = False,
    patterns: PatternArcs | None = None,
    weights: ArrayLike | None = None,
    out: NDArray[np.float64] | None = None,
    n_jobs: int | None = None,
) -> Posteriors:
    """Log Z and marginals of every sequence.

    Parameters
    ----------
    potentials
        The scores.
    labels
        (N,) codes; when given, their log-likelihoods are computed in the same pass.
    pairs
        "sum" for the expected number of times each arc is taken, "each" also for the marginals of
        label pairs at every position, None for neither.
    arc_marginals
        Whether to compute the probability of each arc at every position, for an automaton.
    patterns
        Label patterns whose probability at every position to compute, by the arcs that end in them.
        That takes less memory than ``arc_marginals`` or all label pairs where these are many.
    weights
        (S,) how much each sequence counts in ``arc_sums``; None is 1.
    out
        (N, K) float64 array that receives the marginals, to save allocating one.
    n_jobs
        Threads; None is all cores.
    """
    scores = Scores(potentials)
    codes = None if labels is None else read_codes(labels, potentials.n_labels)
    result = empty_posteriors(
        potentials, pairs, out, arc_marginals, likelihoods=codes is not None, patterns=patterns
    )
    by_sequence = None if weights is None else read_weights(weights)
    _fill_posteriors(
        scores,
        codes,
        result.log_z,
        result.log_likelihoods,
        result.marginals,
        result.arc_sums,
        result.arc_marginals,
        result.pairs,
        patterns,
        result.pattern_marginals,
        by_sequence,
        count_threads(n_jobs),
    )
    return result


def weighted_forward_backward(
    potentials: Potentials,
    labels: ArrayLike,
    weights: ArrayLike,
    *,
    pairs: Pairs = "sum",
    out: NDArray[np.float64] | None = None,
    n_jobs: int | None = None,
) -> Posteriors:
    """The likelihood with a weight for each position, and its expected counts.

    By the chain rule log P(y) is the sum of log P(y_t | labels before t); here the term of position
    t is multiplied by ``weights[t]``. ``log_likelihoods`` are these weighted sums; ``marginals``,
    ``arc_sums`` and ``pairs`` are what has to be subtracted from the weighted observed counts to
    get the gradient. With all weights 1 they are those of `forward_backward`.
    """
    scores = Scores(potentials)
    result = empty_posteriors(potentials, pairs, out, False, likelihoods=True)
    result.log_z.fill(np.nan)  # there is no one Z behind a weighted likelihood
    fill = scores.bind(_core.fill_weighted_posteriors, _core.fill_weighted_automaton_posteriors)
    fill(
        read_codes(labels, potentials.n_labels),
        read_weights(weights),
        result.log_likelihoods,
        result.marginals,
        result.arc_sums,
        result.pairs,
        count_threads(n_jobs),
    )
    return result


def log_likelihood(
    potentials: Potentials, labels: ArrayLike, *, n_jobs: int | None = None
) -> NDArray[np.float64]:
    """Log probability of the given labels, (S,), by a forward pass alone."""
    scores = Scores(potentials)
    out = np.empty(potentials.n_sequences)
    codes = read_codes(labels, potentials.n_labels)
    nothing = (None,) * 7
    _fill_posteriors(scores, codes, None, out, *nothing, count_threads(n_jobs))
    return out


def log_z(potentials: Potentials, *, n_jobs: int | None = None) -> NDArray[np.float64]:
    """Log of the sum over all labellings of exp(score), (S,), by a forward pass alone."""
    scores = Scores(potentials)
    out = np.empty(potentials.n_sequences)
    nothing = (None,) * 8
    _fill_posteriors(scores, None, out, *nothing, count_threads(n_jobs))
    return out


def empty_posteriors(
    potentials: Potentials,
    pairs: Pairs,
    out: NDArray[np.float64] | None,
    arc_marginals: bool,
    *,
    likelihoods: bool,
    patterns: PatternArcs | None = None,
) -> Posteriors:
    """Room for what a kernel fills."""
    if pairs not in ("sum", "each", None):
        raise ValueError(f"pairs is {pairs!r}; expected 'sum', 'each' or None")
    automaton = potentials.automaton
    if arc_marginals and automaton is None:
        raise ValueError("arc_marginals need an automaton; pairs='each' is for label pairs")
    n_positions, n_labels = np.shape(potentials.nodes)
    n_sequences = potentials.n_sequences
    return Posteriors(
        log_z=np.empty(n_sequences),
        marginals=np.empty((n_positions, n_labels)) if out is None else out,
        arc_sums=None if pairs is None else np.empty(np.shape(potentials.arcs)),
        pairs=np.empty((n_positions, n_labels, n_labels)) if pairs == "each" else None,
        arc_marginals=np.empty((n_positions, automaton.n_arcs))
        if arc_marginals and automaton is not None
        else None,
        pattern_marginals=None
        if patterns is None
        else np.empty((n_positions, len(patterns.offsets) - 1)),
        log_likelihoods=np.empty(n_sequences) if likelihoods else None,
    )


def _fill_posteriors(
    scores: Scores,
    labels: NDArray[np.int32] | None,
    log_z: NDArray[np.float64] | None,
    log_likelihoods: NDArray[np.float64] | None,
    marginals: NDArray[np.float64] | None,
    arc_sums: NDArray[np.float64] | None,
    arc_marginals: NDArray[np.float64] | None,
    pairs: NDArray[np.float64] | None,
    patterns: PatternArcs | None,
    pattern_marginals: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    n_threads: int,
) -> None:
    fill = scores.bind(_core.fill_posteriors, _core.fill_automaton_posteriors)
    arcs = (arc_sums,) if scores.potentials.automaton is None else (arc_sums, arc_marginals)
    by_pattern = None if patterns is None else (*patterns, pattern_marginals)
    fill(labels, log_z, log_likelihoods, marginals, *arcs, pairs, by_pattern, weights, n_threads)
