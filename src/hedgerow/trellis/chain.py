"""Chain: a first-order chain, whose arcs are the pairs of labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.graph import positions_before
from hedgerow.labels import Constraints
from hedgerow.labels.automaton import PatternArcs, pair_automaton
from hedgerow.trellis.automaton_chain import AutomatonChain
from hedgerow.trellis.mixing import allocate_mixing, measure_mixing
from hedgerow.trellis.reading import KernelArrays, kernel_arrays
from hedgerow.trellis.trellis import EdgeContexts, Mixing, Outputs, Scores, Trellis

__all__ = ["Chain"]


@dataclass(frozen=True, eq=False)
class Chain(Trellis):
    """A first-order chain over K labels: arc (j, k) leads from label j to label k.

    Attributes
    ----------
    n_labels : int
        Number of labels, K.
    pair_codes : (P,) int32 or None
        The label patterns, which are pairs, as j * K + k; None: all pairs.
    constraints : Constraints or None
        The constraints.
    """

    n_labels: int
    pair_codes: NDArray[np.int32] | None = None
    constraints: Constraints | None = None

    @property
    def n_patterns(self) -> int:
        return self.n_labels**2 if self.pair_codes is None else len(self.pair_codes)

    @property
    def arc_shape(self) -> tuple[int, ...]:
        return self.n_labels, self.n_labels

    @property
    def pattern_arcs(self) -> PatternArcs:
        codes = self._pattern_codes()
        return PatternArcs(np.arange(len(codes) + 1, dtype=np.int64), codes)

    def arc_scores(
        self, weights: NDArray[np.float64], forbidden: float = -np.inf
    ) -> NDArray[np.float64]:
        scores = np.zeros(self.arc_shape)
        if self.constraints is not None:
            scores[~self.constraints.allowed] = forbidden
        scores.ravel()[self._pattern_codes()] += weights
        return scores

    def pattern_sums(self, arc_sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return arc_sums.ravel()[self._pattern_codes()]

    def arcs_taken(
        self,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int32]:
        if parents is not None:
            before = positions_before(offsets, parents)
            labels_before = np.where(before < 0, np.int32(-1), codes[before])
            known = (codes >= 0) & (labels_before >= 0)
            return np.where(known, labels_before * np.int32(self.n_labels) + codes, np.int32(-1))
        arcs = np.empty(len(codes), np.int32)
        np.multiply(codes[:-1], self.n_labels, out=arcs[1:])
        arcs[1:] += codes[1:]
        unknown = np.flatnonzero(codes < 0)
        arcs[unknown] = arcs[unknown[unknown + 1 < len(codes)] + 1] = -1
        arcs[offsets[:-1][np.diff(offsets) > 0]] = -1
        return arcs

    def count_arcs(
        self,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        if parents is not None or weights is not None:
            return super().count_arcs(codes, offsets, parents, weights)
        counts = _core.count_pairs(codes, offsets, self.n_labels)
        return counts.astype(np.float64).reshape(self.arc_shape)

    @property
    def takes_single_edges(self) -> bool:
        return _core.takes_single_edges(self.n_labels)

    def edge_contexts(self) -> EdgeContexts:
        before, labels = np.divmod(np.arange(self.n_labels**2), self.n_labels)
        return EdgeContexts(labels.astype(np.int32), (1 + before[:, None]).astype(np.uint8))

    def fill_posteriors(
        self,
        scores: Scores,
        labels: NDArray[np.int32] | None,
        weights: NDArray[np.float64] | None,
        out: Outputs,
        n_threads: int,
    ) -> None:
        _core.fill_posteriors(
            *self._kernel_arrays(scores),
            labels,
            out.log_z,
            out.log_likelihoods,
            out.marginals,
            out.arc_sums,
            out.pairs,
            out.by_pattern,
            out.gammas,
            weights,
            n_threads,
            scores.bound,
            None if out.by_label is None else out.by_label.for_kernel,
        )

    def fill_weighted_posteriors(
        self,
        scores: Scores,
        labels: NDArray[np.int32],
        weights: NDArray[np.float64],
        out: Outputs,
        n_threads: int,
    ) -> None:
        assert out.log_likelihoods is not None
        assert out.marginals is not None
        _core.fill_weighted_posteriors(
            *self._kernel_arrays(scores),
            labels,
            weights,
            out.log_likelihoods,
            out.marginals,
            out.arc_sums,
            out.pairs,
            n_threads,
            scores.bound,
        )

    def fill_tangents(
        self,
        scores: Scores,
        marginals: NDArray[np.float64],
        nodes: NDArray[np.float64],
        arcs: NDArray[np.float64] | None,
        out: Outputs,
        n_threads: int,
    ) -> None:
        """Derivatives, see `Trellis`; extreme scores need an automaton, which is slower."""
        assert out.marginals is not None
        refused = np.empty(scores.n_sequences, dtype=np.uint8)
        _core.fill_tangents(
            *self._kernel_arrays(scores),
            marginals,
            nodes,
            arcs,
            out.marginals,
            out.arc_sums,
            out.pairs,
            refused,
            n_threads,
            scores.bound,
        )
        if not refused.any():
            return
        automaton, over_pairs = pair_automaton(self.n_labels), self._over_automaton(scores)
        sums = None if out.arc_sums is None else np.empty(automaton.n_arcs)
        moves = None if arcs is None else automaton.arc_scores(np.ravel(arcs))
        outputs = replace(out, arc_sums=sums)
        AutomatonChain(automaton).fill_some_tangents(
            over_pairs, marginals, nodes, moves, refused, outputs, n_threads
        )
        if out.arc_sums is not None and sums is not None:
            out.arc_sums[...] += automaton.pattern_sums(sums).reshape(self.arc_shape)

    def fill_viterbi(self, scores: Scores, codes: NDArray[np.int32], n_threads: int) -> None:
        _core.fill_viterbi(*self._kernel_arrays(scores), codes, n_threads)

    def fill_k_best(
        self,
        scores: Scores,
        codes: NDArray[np.int32],
        counts: NDArray[np.int64],
        losses: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        over_pairs = self._over_automaton(scores)
        over_pairs.trellis.fill_k_best(over_pairs, codes, counts, losses, n_threads)

    def fill_samples(
        self,
        scores: Scores,
        uniforms: NDArray[np.float64],
        codes: NDArray[np.int32],
        n_threads: int,
    ) -> None:
        over_pairs = self._over_automaton(scores)
        over_pairs.trellis.fill_samples(over_pairs, uniforms, codes, n_threads)

    def empty_mixing(self, scores: Scores) -> Mixing | None:
        """Arrays for `mixing`; None if there are few labels and no edges: it is computed later."""
        given = _core.posteriors_give_mixing(self.n_labels, scores.edges is not None)
        return allocate_mixing(scores) if given else None

    def gives_pairs_by_label(self, scores: Scores) -> bool:
        """Whether there are edges and many labels."""
        return scores.edges is not None and self.n_labels >= _core.FEWEST_LABELS_OF_PAIRS

    def mixing(
        self,
        scores: Scores,
        arc_sums: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        n_threads: int,
    ) -> Mixing:
        return measure_mixing(scores, scores.arcs, weights, n_threads)

    def _pattern_codes(self) -> NDArray[np.int32]:
        if self.pair_codes is None:
            return np.arange(self.n_labels**2, dtype=np.int32)
        return self.pair_codes

    def _kernel_arrays(self, scores: Scores) -> KernelArrays:
        return kernel_arrays(scores, single_edges=self.takes_single_edges)

    def _over_automaton(self, scores: Scores) -> Scores:
        """The same scores over the automaton of all label pairs."""
        automaton = pair_automaton(self.n_labels)
        arcs = automaton.arc_scores(np.ravel(scores.arcs))
        return replace(scores, arcs=arcs, trellis=AutomatonChain(automaton))
