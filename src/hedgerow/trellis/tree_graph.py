"""TreeGraph: inference in tree-shaped graphs, where a label depends on the label of its parent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.trellis.automaton_chain import AutomatonChain
from hedgerow.trellis.chain import Chain
from hedgerow.trellis.mixing import allocate_mixing
from hedgerow.trellis.reading import kernel_arrays
from hedgerow.trellis.trellis import Inference, Mixing, Outputs, Scores, Trellis

__all__ = ["TreeGraph", "inference"]


def inference(scores: Scores) -> Inference:
    """The kernels for scores: the trellis itself for chains, a `TreeGraph` if there are parents."""
    return scores.trellis if scores.parents is None else TreeGraph(scores.trellis)


@dataclass(frozen=True, eq=False)
class TreeGraph(Inference):
    """Kernels for tree-shaped graphs with the arcs of a trellis.

    An arc leads from the state of a position's parent to its label: from the parent's label in a
    first-order model, and over an automaton from the state reached by the labels on the path from
    the root to the parent.

    Attributes
    ----------
    trellis : Trellis
        What the arcs belong to, a `Chain` or an `AutomatonChain`.
    """

    trellis: Trellis

    def _graph(self, scores: Scores) -> _core.GraphScores:
        """The scores in the format of the kernels."""
        automaton = None
        if isinstance(self.trellis, AutomatonChain):
            automaton = self.trellis.automaton.program
        elif not isinstance(self.trellis, Chain):
            raise NotImplementedError(
                f"{type(self.trellis).__name__} does not support sequences with parents; pass a "
                "Chain or an AutomatonChain of hedgerow.trellis"
            )
        parents = np.ascontiguousarray(scores.parents, dtype=np.int32)
        return _core.GraphScores(*kernel_arrays(scores), parents, automaton)

    def fill_posteriors(
        self,
        scores: Scores,
        labels: NDArray[np.int32] | None,
        weights: NDArray[np.float64] | None,
        out: Outputs,
        n_threads: int,
    ) -> None:
        """Fill the results: messages up, and down again unless log Z and likelihoods are enough."""
        self._graph(scores).fill_posteriors(
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
        )

    def fill_weighted_posteriors(
        self,
        scores: Scores,
        labels: NDArray[np.int32],
        weights: NDArray[np.float64],
        out: Outputs,
        n_threads: int,
    ) -> None:
        """Fill weighted counts, by the chain rule with parents before children."""
        assert out.log_likelihoods is not None
        assert out.marginals is not None
        self._graph(scores).fill_weighted_posteriors(
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
        """Fill derivatives, by messages with their derivatives."""
        assert out.marginals is not None
        self._graph(scores).fill_tangents(
            marginals, nodes, arcs, out.marginals, out.arc_sums, out.pairs, n_threads, scores.bound
        )

    def fill_viterbi(self, scores: Scores, codes: NDArray[np.int32], n_threads: int) -> None:
        """Fill the most probable labelling: best scores up, labels down."""
        self._graph(scores).fill_viterbi(codes, n_threads)

    def fill_k_best(
        self,
        scores: Scores,
        codes: NDArray[np.int32],
        counts: NDArray[np.int64],
        losses: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        """Fill the k most probable labellings, from the cost of each label given its parent's."""
        self._graph(scores).fill_k_best(codes, counts, losses, n_threads)

    def fill_samples(
        self,
        scores: Scores,
        uniforms: NDArray[np.float64],
        codes: NDArray[np.int32],
        n_threads: int,
    ) -> None:
        """Fill random labellings, drawn from the roots down."""
        self._graph(scores).fill_samples(uniforms, codes, n_threads)

    def empty_mixing(self, scores: Scores) -> Mixing | None:
        """Arrays for `mixing` of a first-order model, which is computed with the posteriors."""
        return allocate_mixing(scores) if isinstance(self.trellis, Chain) else None

    def mixing(
        self,
        scores: Scores,
        arc_sums: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        n_threads: int,
    ) -> Mixing:
        """Bounds on the curvature, by `mixing` of the trellis, which uses the parents."""
        return self.trellis.mixing(scores, arc_sums, weights, n_threads)
