"""Trellis: the interface of inference, given scores.

A trellis defines the arcs between labels, and how label patterns score them; its kernels, which
fill arrays, are for chains. `hedgerow.trellis.tree_graph` has kernels for tree-shaped graphs with
the same arcs. `hedgerow.trellis.posteriors`, `paths` and `tangents` contain the functions that
check arguments, allocate results, and call the kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels import Constraints
from hedgerow.labels.automaton import PatternArcs

__all__ = [
    "EdgeContexts",
    "Empty",
    "Inference",
    "Mixing",
    "Outputs",
    "PairsByLabel",
    "Scores",
    "Trellis",
]

# Allocates an array of a shape and a dtype, as `numpy.empty` does.
Empty = Callable[[tuple[int, ...], Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of some consecutive sequences.

    Attributes
    ----------
    nodes : (N, K)
        Scores of the labels at each position.
    arcs
        Scores of the arcs of the trellis, the same at every position, see `Trellis.arc_shape`.
    offsets : (S + 1,) int64
        Bounds of the sequences.
    trellis : Trellis
        The trellis of the arcs.
    edges : (N, K, K) or None
        Scores of label pairs that differ from position to position; those of sequences' first
        positions are not read. Over an automaton they may be scores of its arcs instead, (N, A).
        Either float64 or float32, which is converted unless `Trellis.takes_single_edges`.
    parents : (N,) int32 or None
        Index of the parent of each position in its sequence, -1 for a root; None for chains. With
        parents, the previous label is the label of the parent, and roots are first positions.
    bound : float
        Upper bound on sums over positions, such as their total weight, see `Targets.bound`. Terms
        are rounded to multiples of a unit that it determines, so sums are exact and do not depend
        on the order of the sequences, see `hedgerow.exact_sums`. 0: ordinary floating-point sums.
    """

    nodes: NDArray[np.float64]
    arcs: NDArray[np.float64]
    offsets: NDArray[np.int64]
    trellis: Trellis
    edges: NDArray[Any] | None = None
    parents: NDArray[np.int32] | None = None
    bound: float = 0.0

    @property
    def n_positions(self) -> int:
        """Number of positions, N."""
        return len(self.nodes)

    @property
    def n_labels(self) -> int:
        """Number of labels, K."""
        return int(self.nodes.shape[1])

    @property
    def n_sequences(self) -> int:
        """Number of sequences, S."""
        return len(self.offsets) - 1

    def part(self, sequences: slice) -> Scores:
        """Only some consecutive sequences."""
        first, stop, _ = sequences.indices(self.n_sequences)
        begin, end = int(self.offsets[first]), int(self.offsets[stop])
        return replace(
            self,
            nodes=self.nodes[begin:end],
            offsets=self.offsets[first : stop + 1] - begin,
            edges=None if self.edges is None else self.edges[begin:end],
            parents=None if self.parents is None else self.parents[begin:end],
        )


@dataclass(frozen=True, eq=False)
class Outputs:
    """Arrays that forward-backward fills, for N positions of S sequences over K labels.

    None means that an array is not requested.
    """

    log_z: NDArray[np.float64] | None = None
    """(S,) log of the sum over all labellings of exp(score)."""
    log_likelihoods: NDArray[np.float64] | None = None
    """(S,) log probability of the given labels."""
    marginals: NDArray[np.float64] | None = None
    """(N, K) probability of each label at each position."""
    arc_sums: NDArray[np.float64] | None = None
    """Expected number of times each arc is taken, in the shape of the arcs."""
    pairs: NDArray[np.float64] | None = None
    """(N, K, K) probability of (previous label, label), or (N, A) of each arc if the edges are
    scores of arcs; 0 where a sequence begins."""
    pattern_marginals: NDArray[np.float64] | None = None
    """(N, P) probability that each label pattern ends at each position."""
    patterns: PatternArcs | None = None
    """The label patterns of `pattern_marginals`, given by the arcs that end in them."""
    mixing: Mixing | None = None
    """How strongly labels depend on each other, see `Trellis.empty_mixing`."""
    by_label: PairsByLabel | None = None
    """Probabilities of label pairs by label, see `Inference.gives_pairs_by_label`."""

    @property
    def by_pattern(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]] | None:
        """Patterns and their marginals, in the format of the kernels."""
        if self.patterns is None or self.pattern_marginals is None:
            return None
        return *self.patterns, self.pattern_marginals

    @property
    def gammas(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]] | None:
        """Parts of `mixing`, in the format of the kernels."""
        if self.mixing is None:
            return None
        assert self.mixing.arc_curvatures is not None
        return self.mixing.nodes, self.mixing.edges, self.mixing.arc_curvatures


@dataclass(frozen=True, eq=False)
class Mixing:
    """How strongly the labels of N positions depend on their neighbours, see `Trellis.mixing`.

    gamma is the factor of p (1 - p) in a bound on the curvature: 2 if labels are independent, and
    larger the more they depend on each other.
    """

    nodes: NDArray[np.float32]
    """(N,) gamma of all labels at a position, or (N, K) of each label."""
    edges: NDArray[np.float32]
    """(N,) gamma of all label pairs that end at a position; 0 where a sequence begins."""
    arc_curvatures: NDArray[np.float64] | None
    """Sum over all positions of gamma p (1 - p), p the probability of each arc, in the shape of the
    arcs; None where it is not known arc by arc."""


@dataclass(frozen=True, eq=False)
class PairsByLabel:
    """Probabilities of label pairs at N of M positions, in the layout that the tree learner reads.

    ``observed`` is undefined at the first positions of sequences.
    """

    probs: NDArray[np.float32]
    """(K, M, K + 1) probabilities by [label, position, previous label]. The last entry for each
    label and position is the marginal of the label where a sequence begins, and 0 elsewhere."""
    observed: NDArray[np.float64]
    """(N,) probability of the pair of given labels that ends at each position."""
    first_position: int
    """The first of the N positions."""
    trim: float
    """The row of a label may be left out where its marginal is at most this, unless it is the
    observed label there."""

    @property
    def for_kernel(self) -> tuple[NDArray[np.float32], NDArray[np.float64], int, float]:
        """All of it, in the format of the kernels."""
        return self.probs, self.observed, self.first_position, self.trim


@dataclass(frozen=True, eq=False)
class EdgeContexts:
    """The previous labels that the E arcs of a trellis represent."""

    labels: NDArray[np.int32]
    """(E,) the label that an arc leads to; -1 if it is only taken where a sequence begins."""
    before: NDArray[np.uint8]
    """(E, L) 1 + the code of a previous label, one column for each distance: one position before,
    two positions before and so on; 0 if an arc does not depend on that label."""


class Inference(ABC):
    """Kernels: inference in chains or in tree-shaped graphs."""

    @abstractmethod
    def fill_posteriors(
        self,
        scores: Scores,
        labels: NDArray[np.int32] | None,
        weights: NDArray[np.float64] | None,
        out: Outputs,
        n_threads: int,
    ) -> None:
        """Forward-backward; just forward if only log Z and log-likelihoods are requested.

        ``labels`` (N,) are the labels whose log-likelihoods are computed; ``weights`` (S,) are the
        weights of the sequences in the sums over arcs.
        """

    @abstractmethod
    def fill_weighted_posteriors(
        self,
        scores: Scores,
        labels: NDArray[np.int32],
        weights: NDArray[np.float64],
        out: Outputs,
        n_threads: int,
    ) -> None:
        """For a likelihood with a weight for each position: `weighted_forward_backward`."""

    @abstractmethod
    def fill_tangents(
        self,
        scores: Scores,
        marginals: NDArray[np.float64],
        nodes: NDArray[np.float64],
        arcs: NDArray[np.float64] | None,
        out: Outputs,
        n_threads: int,
    ) -> None:
        """Derivatives of marginals, arc sums and pairs along a direction, see `tangent`."""

    @abstractmethod
    def fill_viterbi(self, scores: Scores, codes: NDArray[np.int32], n_threads: int) -> None:
        """The most probable labelling, (N,)."""

    @abstractmethod
    def fill_k_best(
        self,
        scores: Scores,
        codes: NDArray[np.int32],
        counts: NDArray[np.int64],
        losses: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        """The k most probable labellings, (k, N).

        Also the number of labellings found for each sequence, (S,), and how much lower their scores
        are than the best score, (k, S).
        """

    @abstractmethod
    def fill_samples(
        self,
        scores: Scores,
        uniforms: NDArray[np.float64],
        codes: NDArray[np.int32],
        n_threads: int,
    ) -> None:
        """Labellings (n, N) drawn by random numbers in [0, 1), (n, N)."""

    def empty_mixing(self, scores: Scores) -> Mixing | None:
        """Arrays for `mixing`, if `fill_posteriors` computes it in the same pass; otherwise None.

        The weights of sequences are then the ``weights`` of `fill_posteriors`.
        """
        return None

    def gives_pairs_by_label(self, scores: Scores) -> bool:
        """Whether `fill_posteriors` can fill `PairsByLabel`; it then needs ``labels``."""
        return False

    @abstractmethod
    def mixing(
        self,
        scores: Scores,
        arc_sums: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        n_threads: int,
    ) -> Mixing:
        """Bounds on the curvature of the likelihood, Chen et al. (2015), Theorems 4.1 and 4.2.

        ``arc_sums`` are the expected counts of the arcs; ``weights`` (S,) are the weights of the
        sequences in the curvatures of the arcs, None is 1.
        """


class Trellis(Inference):
    """How the labels of a sequence depend on each other: the arcs and their kernels.

    The score of a labelling is the sum of the scores of its nodes, arcs and edges; its probability
    is exp(score) / Z. P label patterns have weights, from which the scores of the arcs are
    computed. The kernels of a trellis are for chains.
    """

    n_labels: int
    """Number of labels, K."""
    constraints: Constraints | None
    """The constraints; None if every labelling is allowed."""

    @property
    @abstractmethod
    def n_patterns(self) -> int:
        """Number of label patterns, P."""

    def restrict(
        self,
        nodes: NDArray[np.float64],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
    ) -> None:
        """Forbid, in place, labels that may not begin or end a sequence. ``nodes`` (N, K)."""
        if self.constraints is not None:
            self.constraints.restrict(nodes, offsets, parents)

    @property
    @abstractmethod
    def arc_shape(self) -> tuple[int, ...]:
        """Shape of the scores of all arcs."""

    @property
    @abstractmethod
    def pattern_arcs(self) -> PatternArcs:
        """The arcs that end in each label pattern, as indices into all arcs."""

    @abstractmethod
    def arc_scores(
        self, weights: NDArray[np.float64], forbidden: float = -np.inf
    ) -> NDArray[np.float64]:
        """Scores of the arcs from the weights of the label patterns, (P,).

        ``forbidden`` is added to forbidden arcs.
        """

    def bare_arcs(self) -> NDArray[np.float64]:
        """Scores of the arcs if no pattern has a weight: 0, or -inf for forbidden arcs."""
        return self.arc_scores(np.zeros(self.n_patterns))

    def pattern_scores(
        self, codes: NDArray[np.int32], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Sum of the weights of the patterns that end at each position of a labelling, (T,).

        Forbidden patterns have the weight 0 here.
        """
        scores = np.append(self.arc_scores(weights, forbidden=0.0), 0.0)  # the last one: no arc
        return scores[self.arcs_taken(codes, np.array([0, len(codes)]))]

    @abstractmethod
    def pattern_sums(self, arc_sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the arcs that end in each label pattern, (P,), from an entry for each arc."""

    @abstractmethod
    def arcs_taken(
        self,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int32]:
        """Arc into each position of labelled sequences, (N,), as an index into all arcs.

        -1 where there is none, or where a label is not known. ``parents`` as in `Scores`.
        """

    def count_arcs(
        self,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """How often labelled sequences take each arc, see `arcs_taken`.

        ``weights`` are the weights of the positions, (N,); None: all 1.
        """
        taken = self.arcs_taken(codes, offsets, parents)
        counts = np.bincount(taken + 1, weights, 1 + int(np.prod(self.arc_shape)))[1:]
        return counts.astype(np.float64).reshape(self.arc_shape)

    @property
    def takes_single_edges(self) -> bool:
        """Whether kernels for chains read edges in single precision without conversion."""
        return False

    def edge_contexts(self) -> EdgeContexts:
        """The previous labels that the arcs, in order, represent."""
        raise NotImplementedError(
            f"{type(self).__name__} has no method edge_contexts, which returns the previous labels "
            "of its arcs; trees on label pairs need it"
        )
