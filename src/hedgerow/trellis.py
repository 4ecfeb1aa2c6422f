"""Inference on chains: which labellings are likely, and how likely.

The score of a labelling y of T positions is, for first-order chains,

    sum_t nodes[t, y_t] + sum_{t>0} (arcs[y_{t-1}, y_t] + edges[t, y_{t-1}, y_t]),

with arcs (K, K). Over a label automaton ``arcs[y_{t-1}, y_t]`` becomes ``arcs[a_t]``, arcs (A,),
where a_t is the arc that the labels so far and y_t take. The probability of a labelling is
exp(score) / Z. All functions take a batch of sequences, concatenated: positions ``offsets[s]`` to
``offsets[s + 1]`` belong to sequence s. Scores may be any finite number; nodes and arcs may also be
-inf, which forbids; ``NoPathError`` says that a sequence has no labelling left. Results do not
depend on the number of threads, nor on the other sequences of the batch, to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow._core import NoPathError
from hedgerow.labels.automaton import Automaton, pair_automaton

__all__ = [
    "NoPathError",
    "Posteriors",
    "Potentials",
    "count_threads",
    "forward_backward",
    "k_best",
    "log_likelihood",
    "log_z",
    "sample",
    "viterbi",
    "weighted_forward_backward",
]


@dataclass(frozen=True, eq=False)
class Potentials:
    """Scores of some consecutive sequences.

    Attributes
    ----------
    nodes : (N, K)
        Scores of the labels at each position.
    arcs : (K, K), or (A,) with an automaton
        Scores of the arcs, the same at every position.
    offsets : (S + 1,) int64
        Where the sequences begin and end.
    edges : (N, K, K) or None
        Scores of label pairs that differ from position to position.
    automaton : Automaton or None
        What the arcs belong to; None is a first-order chain.
    """

    nodes: NDArray[np.float64]
    arcs: NDArray[np.float64]
    offsets: NDArray[np.int64]
    edges: NDArray[np.float64] | None = None
    automaton: Automaton | None = None

    @property
    def n_positions(self) -> int:
        """Number of positions, N."""
        return len(self.nodes)

    @property
    def n_sequences(self) -> int:
        """Number of sequences, S."""
        return len(self.offsets) - 1

    def part(self, sequences: slice) -> Potentials:
        """Only some consecutive sequences."""
        first, stop, _ = sequences.indices(self.n_sequences)
        begin, end = int(self.offsets[first]), int(self.offsets[stop])
        return replace(
            self,
            nodes=self.nodes[begin:end],
            offsets=self.offsets[first : stop + 1] - begin,
            edges=None if self.edges is None else self.edges[begin:end],
        )


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


Pairs = Literal["sum", "each"] | None


def forward_backward(
    potentials: Potentials,
    *,
    labels: ArrayLike | None = None,
    pairs: Pairs = "sum",
    arc_marginals: bool = False,
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
    weights
        (S,) how much each sequence counts in ``arc_sums``; None is 1.
    out
        (N, K) float64 array that receives the marginals, to save allocating one.
    n_jobs
        Threads; None is all cores.
    """
    scores = _Scores(potentials)
    codes = None if labels is None else np.ascontiguousarray(labels, dtype=np.int32)
    result = scores.empty_posteriors(pairs, out, arc_marginals, likelihoods=codes is not None)
    by_sequence = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    scores.fill_posteriors(
        codes,
        result.log_z,
        result.log_likelihoods,
        result.marginals,
        result.arc_sums,
        result.arc_marginals,
        result.pairs,
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
    scores = _Scores(potentials)
    result = scores.empty_posteriors(pairs, out, False, likelihoods=True)
    result.log_z.fill(np.nan)  # there is no one Z behind a weighted likelihood
    fill = scores.bind(_core.fill_weighted_posteriors, _core.fill_weighted_automaton_posteriors)
    fill(
        np.ascontiguousarray(labels, dtype=np.int32),
        np.ascontiguousarray(weights, dtype=np.float64),
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
    scores = _Scores(potentials)
    out = np.empty(potentials.n_sequences)
    codes = np.ascontiguousarray(labels, dtype=np.int32)
    scores.fill_posteriors(codes, None, out, None, None, None, None, None, count_threads(n_jobs))
    return out


def log_z(potentials: Potentials, *, n_jobs: int | None = None) -> NDArray[np.float64]:
    """Log of the sum over all labellings of exp(score), (S,), by a forward pass alone."""
    scores = _Scores(potentials)
    out = np.empty(potentials.n_sequences)
    scores.fill_posteriors(None, out, None, None, None, None, None, None, count_threads(n_jobs))
    return out


def viterbi(potentials: Potentials, *, n_jobs: int | None = None) -> NDArray[np.int32]:
    """The most probable labelling of every sequence, (N,) codes."""
    scores = _Scores(potentials)
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
    scores = _Scores(_over_automaton(potentials))
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
    scores = _Scores(_over_automaton(potentials))
    numbers = np.ascontiguousarray(uniforms, dtype=np.float64)
    if numbers.ndim != 2 or not ((numbers >= 0) & (numbers < 1)).all():
        raise ValueError("uniforms must be numbers in [0, 1), a row for each sample")
    codes = np.empty(numbers.shape, dtype=np.int32)
    scores.bind(None, _core.fill_samples)(numbers, codes, count_threads(n_jobs))
    return codes


def _over_automaton(potentials: Potentials) -> Potentials:
    """The same scores, over the automaton of all label pairs if they are of first order."""
    if potentials.automaton is not None:
        return potentials
    automaton = pair_automaton(potentials.nodes.shape[1])
    arcs = automaton.arc_scores(np.ravel(potentials.arcs))
    return replace(potentials, arcs=arcs, automaton=automaton)


class _Scores:
    """Potentials as the kernels want them."""

    def __init__(self, potentials: Potentials) -> None:
        self.potentials = potentials
        edges = potentials.edges
        self.arguments: tuple[Any, ...] = (
            np.ascontiguousarray(potentials.nodes, dtype=np.float64),
            np.ascontiguousarray(potentials.arcs, dtype=np.float64),
            None if edges is None else np.ascontiguousarray(edges, dtype=np.float64),
            np.ascontiguousarray(potentials.offsets, dtype=np.int64),
        )
        if potentials.automaton is not None:
            self.arguments = (potentials.automaton.program, *self.arguments)

    def bind(
        self, chain_kernel: Callable[..., None] | None, automaton_kernel: Callable[..., None]
    ) -> Callable[..., None]:
        """The kernel for first-order chains or that for automata, with the scores filled in."""
        kernel = automaton_kernel if self.potentials.automaton is not None else chain_kernel
        assert kernel is not None
        return partial(kernel, *self.arguments)

    def fill_posteriors(
        self,
        labels: NDArray[np.int32] | None,
        log_z: NDArray[np.float64] | None,
        log_likelihoods: NDArray[np.float64] | None,
        marginals: NDArray[np.float64] | None,
        arc_sums: NDArray[np.float64] | None,
        arc_marginals: NDArray[np.float64] | None,
        pairs: NDArray[np.float64] | None,
        weights: NDArray[np.float64] | None,
        n_threads: int,
    ) -> None:
        fill = self.bind(_core.fill_posteriors, _core.fill_automaton_posteriors)
        arcs = (arc_sums,) if self.potentials.automaton is None else (arc_sums, arc_marginals)
        fill(labels, log_z, log_likelihoods, marginals, *arcs, pairs, weights, n_threads)

    def empty_posteriors(
        self,
        pairs: Pairs,
        out: NDArray[np.float64] | None,
        arc_marginals: bool,
        *,
        likelihoods: bool,
    ) -> Posteriors:
        """Room for what a kernel fills."""
        if pairs not in ("sum", "each", None):
            raise ValueError(f"pairs is {pairs!r}; expected 'sum', 'each' or None")
        automaton = self.potentials.automaton
        if arc_marginals and automaton is None:
            raise ValueError("arc_marginals need an automaton; pairs='each' is for label pairs")
        n_positions, n_labels = np.shape(self.potentials.nodes)
        n_sequences = self.potentials.n_sequences
        return Posteriors(
            log_z=np.empty(n_sequences),
            marginals=np.empty((n_positions, n_labels)) if out is None else out,
            arc_sums=None if pairs is None else np.empty(np.shape(self.potentials.arcs)),
            pairs=np.empty((n_positions, n_labels, n_labels)) if pairs == "each" else None,
            arc_marginals=np.empty((n_positions, automaton.n_arcs))
            if arc_marginals and automaton is not None
            else None,
            log_likelihoods=np.empty(n_sequences) if likelihoods else None,
        )
