"""Forward-backward: the probabilities of labels, label pairs, label patterns and labellings."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.labels.automaton import PatternArcs
from hedgerow.trellis.reading import read_codes, read_weights
from hedgerow.trellis.tree_graph import inference
from hedgerow.trellis.trellis import Empty, Mixing, Outputs, PairsByLabel, Scores

__all__ = [
    "Pairs",
    "Posteriors",
    "allocate",
    "forward_backward",
    "log_likelihood",
    "log_z",
    "weighted_forward_backward",
]

Pairs = Literal["sum", "each"] | None


@dataclass(frozen=True, eq=False)
class Posteriors:
    """The results of forward-backward for N positions of S sequences over K labels."""

    log_z: NDArray[np.float64]
    """(S,) log of the sum over all labellings of exp(score)."""
    marginals: NDArray[np.float64]
    """(N, K) probability of each label at each position."""
    arc_sums: NDArray[np.float64] | None
    """Expected number of times each arc is taken, in the shape of the arcs."""
    pairs: NDArray[np.float64] | None
    """(N, K, K) probability of (previous label, label), or (N, A) of each arc if the edges are
    scores of arcs; 0 where a sequence begins."""
    pattern_marginals: NDArray[np.float64] | None
    """(N, P) probability that each label pattern ends at each position."""
    log_likelihoods: NDArray[np.float64] | None
    """(S,) log probability of the given labels."""
    mixing: Mixing | None
    """How strongly labels depend on each other, if it was computed in the same pass."""
    by_label: PairsByLabel | None
    """Probabilities of label pairs by label, instead of ``pairs``."""

    @classmethod
    def of(cls, out: Outputs) -> Posteriors:
        """The arrays that were filled."""
        return cls(**{field.name: getattr(out, field.name) for field in fields(cls)})


def forward_backward(
    scores: Scores,
    *,
    labels: ArrayLike | None = None,
    pairs: Pairs = "sum",
    patterns: PatternArcs | None = None,
    weights: ArrayLike | None = None,
    mixing: bool = False,
    out: NDArray[np.float64] | None = None,
    n_threads: int = 1,
) -> Posteriors:
    """Log Z and marginals of every sequence.

    Parameters
    ----------
    scores
        The scores.
    labels
        (N,) codes; if given, their log-likelihoods are computed in the same pass.
    pairs
        "sum" for the expected number of times each arc is taken; "each" also for the marginals at
        every position, of label pairs, or of arcs if the edges are scores of arcs; None for
        neither.
    patterns
        Label patterns whose probabilities at every position are computed, given by the arcs that
        end in each of them.
    weights
        (S,) weight of each sequence in ``arc_sums``; None is 1.
    mixing
        Whether to return the mixing rates too, if the trellis computes them in the same pass.
    out
        (N, K) float64 array that receives the marginals, to save allocating one.
    n_threads
        Number of threads; the result does not depend on it.
    """
    codes = None if labels is None else read_codes(labels, scores.n_labels)
    result = allocate(scores, pairs, out, likelihoods=codes is not None, patterns=patterns)
    if mixing:
        result = replace(result, mixing=inference(scores).empty_mixing(scores))
    by_sequence = None if weights is None else read_weights(weights)
    inference(scores).fill_posteriors(scores, codes, by_sequence, result, n_threads)
    return Posteriors.of(result)


def weighted_forward_backward(
    scores: Scores,
    labels: ArrayLike,
    weights: ArrayLike,
    *,
    pairs: Pairs = "sum",
    out: NDArray[np.float64] | None = None,
    n_threads: int = 1,
) -> Posteriors:
    """The likelihood with a weight for each position, and its expected counts.

    By the chain rule log P(y) is the sum of log P(y_t | labels before t); here the term of position
    t is multiplied by ``weights[t]``. ``log_likelihoods`` are these weighted sums; the gradient is
    the weighted observed counts minus ``marginals``, ``arc_sums`` and ``pairs``. If all weights are
    1, these equal the results of `forward_backward`. ``log_z`` is NaN.
    """
    codes, by_position = read_codes(labels, scores.n_labels), read_weights(weights)
    result = allocate(scores, pairs, out, likelihoods=True)
    assert result.log_z is not None
    result.log_z.fill(np.nan)  # a weighted likelihood has no single Z
    inference(scores).fill_weighted_posteriors(scores, codes, by_position, result, n_threads)
    return Posteriors.of(result)


def log_likelihood(scores: Scores, labels: ArrayLike, *, n_threads: int = 1) -> NDArray[np.float64]:
    """Log probability of the given labels, (S,), with a forward pass only."""
    out = np.empty(scores.n_sequences)
    codes, wanted = read_codes(labels, scores.n_labels), Outputs(log_likelihoods=out)
    inference(scores).fill_posteriors(scores, codes, None, wanted, n_threads)
    return out


def log_z(scores: Scores, *, n_threads: int = 1) -> NDArray[np.float64]:
    """Log of the sum over all labellings of exp(score), (S,), with a forward pass only."""
    out = np.empty(scores.n_sequences)
    inference(scores).fill_posteriors(scores, None, None, Outputs(log_z=out), n_threads)
    return out


def allocate(
    scores: Scores,
    pairs: Pairs,
    out: NDArray[np.float64] | None,
    *,
    likelihoods: bool = False,
    patterns: PatternArcs | None = None,
    empty: Empty = np.empty,
) -> Outputs:
    """Allocate the requested arrays; ``out`` (N, K), if given, is used for the marginals.

    ``empty`` allocates the marginals of pairs.
    """
    if pairs not in ("sum", "each", None):
        raise ValueError(f"pairs is {pairs!r}; expected 'sum', 'each' or None")
    n_positions, n_labels = np.shape(scores.nodes)
    n_patterns = 0 if patterns is None else len(patterns.offsets) - 1
    each = (n_positions, n_labels, n_labels) if scores.edges is None else np.shape(scores.edges)
    return Outputs(
        log_z=np.empty(scores.n_sequences),
        log_likelihoods=np.empty(scores.n_sequences) if likelihoods else None,
        marginals=np.empty((n_positions, n_labels)) if out is None else out,
        arc_sums=None if pairs is None else np.empty(np.shape(scores.arcs)),
        pairs=empty(each, np.float64) if pairs == "each" else None,
        pattern_marginals=None if patterns is None else np.empty((n_positions, n_patterns)),
        patterns=patterns,
    )
