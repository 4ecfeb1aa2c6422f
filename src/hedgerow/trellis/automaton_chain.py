"""AutomatonChain: a chain over a label automaton, for label patterns of any length."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.labels import Constraints
from hedgerow.labels.automaton import Automaton, PatternArcs
from hedgerow.trellis.mixing import average_edges, average_pair_scores, measure_mixing
from hedgerow.trellis.reading import kernel_arrays
from hedgerow.trellis.trellis import EdgeContexts, Mixing, Outputs, Scores, Trellis

__all__ = ["AutomatonChain"]


@dataclass(frozen=True, eq=False)
class AutomatonChain(Trellis):
    """A chain with the arcs of a label automaton.

    Attributes
    ----------
    automaton : Automaton
        Its patterns are the P label patterns, then forbidden label pairs, then label pairs without
        a score.
    n_weighted : int or None
        The number P; None: all patterns of the automaton are label patterns.
    constraints : Constraints or None
        The constraints.
    """

    automaton: Automaton
    n_weighted: int | None = None
    constraints: Constraints | None = None

    @property
    def n_labels(self) -> int:  # type: ignore[override]
        return self.automaton.n_labels

    @property
    def n_patterns(self) -> int:
        return len(self.automaton.pattern_arcs) if self.n_weighted is None else self.n_weighted

    @property
    def arc_shape(self) -> tuple[int, ...]:
        return (self.automaton.n_arcs,)

    @property
    def pattern_arcs(self) -> PatternArcs:
        return self.automaton.pattern_members(self.n_patterns)

    def arc_scores(
        self, weights: NDArray[np.float64], forbidden: float = -np.inf
    ) -> NDArray[np.float64]:
        scores = np.zeros(len(self.automaton.pattern_arcs))
        scores[: len(weights)] = weights
        if self.constraints is not None:
            scores[len(weights) :][: np.sum(~self.constraints.allowed)] = forbidden
        return self.automaton.arc_scores(scores)

    def pattern_sums(self, arc_sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.automaton.pattern_sums(arc_sums)[: self.n_patterns]

    def arcs_taken(
        self,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int32]:
        return self.automaton.arcs_taken(codes, offsets, parents)

    def edge_contexts(self) -> EdgeContexts:
        automaton = self.automaton
        before = (1 + automaton.labels_before()).astype(np.uint8)
        return EdgeContexts(np.where(automaton.sources > 0, automaton.labels, -1), before)

    def fill_posteriors(
        self,
        scores: Scores,
        labels: NDArray[np.int32] | None,
        weights: NDArray[np.float64] | None,
        out: Outputs,
        n_threads: int,
    ) -> None:
        _core.fill_automaton_posteriors(
            self.automaton.program,
            *kernel_arrays(scores),
            labels,
            out.log_z,
            out.log_likelihoods,
            out.marginals,
            out.arc_sums,
            None,
            out.pairs,
            out.by_pattern,
            weights,
            n_threads,
            scores.bound,
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
        _core.fill_weighted_automaton_posteriors(
            self.automaton.program,
            *kernel_arrays(scores),
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
        self.fill_some_tangents(scores, marginals, nodes, arcs, None, out, n_threads)

    def fill_some_tangents(
        self,
        scores: Scores,
        marginals: NDArray[np.float64],
        nodes: NDArray[np.float64],
        arcs: NDArray[np.float64] | None,
        wanted: NDArray[np.uint8] | None,
        out: Outputs,
        n_threads: int,
    ) -> None:
        """`fill_tangents` only for the sequences that are ``wanted`` (S,); None: all."""
        assert out.marginals is not None
        _core.fill_automaton_tangents(
            self.automaton.program,
            *kernel_arrays(scores),
            marginals,
            nodes,
            arcs,
            wanted,
            out.marginals,
            out.arc_sums,
            None,
            out.pairs,
            n_threads,
            scores.bound,
        )

    def fill_viterbi(self, scores: Scores, codes: NDArray[np.int32], n_threads: int) -> None:
        _core.fill_automaton_viterbi(
            self.automaton.program, *kernel_arrays(scores), codes, n_threads
        )

    def fill_k_best(
        self,
        scores: Scores,
        codes: NDArray[np.int32],
        counts: NDArray[np.int64],
        losses: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        _core.fill_k_best(
            self.automaton.program, *kernel_arrays(scores), codes, counts, losses, n_threads
        )

    def fill_samples(
        self,
        scores: Scores,
        uniforms: NDArray[np.float64],
        codes: NDArray[np.int32],
        n_threads: int,
    ) -> None:
        _core.fill_samples(
            self.automaton.program, *kernel_arrays(scores), uniforms, codes, n_threads
        )

    def mixing(
        self,
        scores: Scores,
        arc_sums: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        n_threads: int,
    ) -> Mixing:
        """Estimates of the bounds on the curvature, from a similar first-order chain."""
        arcs, edges = average_pair_scores(self.automaton, scores.arcs, arc_sums), scores.edges
        if edges is not None and edges.ndim == 2:
            edges = average_edges(self.automaton, edges, arc_sums, n_threads)
        similar = replace(scores, edges=edges)
        return replace(measure_mixing(similar, arcs, weights, n_threads), arc_curvatures=None)
