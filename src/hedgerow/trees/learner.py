"""Tree learner: from gradients and curvatures of a loss to the trees of a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow._core import GrowthRules
from hedgerow.comm import ALONE, Comm
from hedgerow.exact_sums import SumGrid
from hedgerow.identity import identify_positions
from hedgerow.trees.forest import Forest
from hedgerow.trees.sampling import NegativeWeight, Purpose, Sampling, draw_key, select_positions
from hedgerow.trees.units import UNIT_BITS, count_bits

__all__ = ["ContextLearner", "GrowthRules", "Learner", "Observed", "TreeLearner"]

NEGATIVE_WEIGHTS: dict[NegativeWeight, _core.NegativeWeight] = {
    "unbiased": _core.NegativeWeight.UNBIASED,
    "none": _core.NegativeWeight.NONE,
    "balanced": _core.NegativeWeight.BALANCED,
}


class Learner:
    """Grows one tree for each of K outputs, round after round, from the same N positions.

    It knows only the derivatives of the loss with respect to the scores.

    Parameters
    ----------
    data
        Bins of the columns at all positions, laid out for growing.
    rules
        Limits on trees.
    sampling
        Which positions and examples a round learns from.
    offsets : (S + 1,)
        Sequence s holds the positions ``offsets[s]`` to ``offsets[s + 1]``; a subsample is of whole
        sequences.
    codes : (N,) int32, optional
        Output of the observed label, -1 where it is not known; needed to sample by label.
    scales : (N,) float64, optional
        Weight of each position; those of weight 0 are not used. None is 1.
    identities : (S,) uint64, optional
        What the draws of sequences and examples depend on; None: their numbers.
    bound
        Upper bound on the total weight of all positions of all workers; 0: no rounding. It defines
        how sums are rounded, so that they do not depend on the order of the positions.
    n_positions
        Number of positions of all workers; None: those of the offsets. Derivatives are rounded more
        finely if there are many.
    column_rules : ColumnRules, optional
        Constraints on the columns in the trees of each output. None: no constraints.
    n_threads
        Number of threads; the trees do not depend on it.
    comm
        The workers that grow the same trees, each from its own positions.
    """

    def __init__(
        self,
        data: _core.TreeData,
        rules: GrowthRules,
        sampling: Sampling,
        *,
        offsets: NDArray[np.int64],
        codes: NDArray[np.int32] | None = None,
        scales: NDArray[np.float64] | None = None,
        identities: NDArray[np.uint64] | None = None,
        bound: float = 0.0,
        n_positions: int | None = None,
        column_rules: _core.ColumnRules | None = None,
        n_threads: int,
        comm: Comm = ALONE,
    ) -> None:
        self.data = data
        self.rules = rules
        self.sampling = sampling
        self.offsets = offsets
        self.codes = codes
        self.scales = scales
        self.identities = identities
        self.bound = bound
        self.unit_bits = count_bits(int(offsets[-1]) if n_positions is None else n_positions)
        self.column_rules = column_rules
        self.n_threads = n_threads
        self.comm = comm
        self._pool = _core.MemoryPool()

    def _select(self, round_number: int) -> NDArray[np.uint8] | None:
        """The positions of a round, (N,); None: all of them."""
        share = self.sampling.subsample
        if share >= 1:
            return None
        key = self._key(round_number, Purpose.SEQUENCES)
        return select_positions(self.offsets, share, key, self.identities, self.comm)

    def _draws(self, round_number: int) -> dict[str, Any]:
        """How examples of a round are drawn, as arguments; empty if all are used."""
        if not self.sampling.draws_examples:
            return {}
        return {
            "share": self.sampling.share,
            "negative_ratio": self.sampling.negative_ratio,
            "negative_weight": NEGATIVE_WEIGHTS[self.sampling.negative_weight],
            "codes": self.codes,
            "key": self._key(round_number, Purpose.EXAMPLES),
            "identities": self._identify_positions(),
        }

    def _identify_positions(self) -> NDArray[np.uint64] | None:
        """What the draws of examples depend on, (N,)."""
        if self.identities is None:
            return None
        return identify_positions(self.identities, self.offsets, n_threads=self.n_threads)

    def _grow(self, examples: _core.Examples | _core.ContextExamples, round_number: int) -> Forest:
        key = self._column_key(round_number)
        return _core.grow_trees(
            self.data, examples, self.rules, key, self.n_threads, self.column_rules, self._pool
        )

    def _column_key(self, round_number: int) -> int:
        """The key of the columns of a round; 0 if none are drawn."""
        share = min(self.rules.colsample_bytree, self.rules.colsample_bynode)
        return self._key(round_number, Purpose.COLUMNS) if share < 1 else 0

    def _key(self, round_number: int, purpose: Purpose) -> int:
        return draw_key(self.sampling.seed, round_number, purpose)


@dataclass(frozen=True, eq=False)
class Observed:
    """Labels that were observed, and how curvatures are computed from probabilities."""

    codes: NDArray[np.int32]
    """(N,) The gradient is the probability minus 1 at this label; -1: at none."""
    rule: tuple[float, float]
    """Factor of gammas, and the gamma up to which they are used unchanged: see `temper`."""


class TreeLearner(Learner):
    """Learner of trees on the input, see `Learner`.

    Parameters
    ----------
    opposite
        Whether there are two outputs with opposite gradients and the same curvatures. Then only one
        tree is grown, and that of output 0 is its negative.
    """

    def __init__(
        self,
        data: _core.TreeData,
        rules: GrowthRules,
        sampling: Sampling,
        *,
        opposite: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(data, rules, sampling, **more)
        # If examples are drawn by label, they differ from output to output.
        self.opposite = opposite and not sampling.negative_ratio > 0

    def grow(
        self,
        gradients: NDArray[np.float64],
        curvatures: NDArray[np.float32],
        round_number: int,
        observed: Observed | None = None,
    ) -> Forest:
        """The trees of one round; tree k adds to output k.

        Parameters
        ----------
        gradients : (N, K)
            Gradient of the loss with respect to each score, times the weight of the position.
        curvatures : (N, K), or (N, 1) for all outputs alike
            Curvatures, also times the weight; not negative.
        round_number
            Number of the round, from 0; random numbers depend on it and on the seed.
        observed
            If given, ``gradients`` are probabilities and ``curvatures`` are gammas, from which
            gradients and curvatures are computed.
        """
        counts: dict[str, Any] = {}
        if observed is not None:
            counts = {"observed": observed.codes, "rule": observed.rule}
        examples = _core.Examples(
            gradients,
            curvatures,
            trim=self.sampling.trim,
            scales=self.scales,
            selected=self._select(round_number),
            **self._draws(round_number),
            bound=self.bound,
            opposite=self.opposite,
            n_threads=self.n_threads,
            pool=self._pool,
            comm=self.comm if self.comm.size > 1 else None,
            unit_bits=self.unit_bits,
            **counts,
        )
        if self.comm.size > 1:
            return self._grow_together(examples, round_number)
        return self._grow(examples, round_number)

    def _grow_together(self, examples: _core.Examples, round_number: int) -> Forest:
        """The same trees on all workers, from the sums over all of them."""
        magnitudes = examples.magnitudes(self.n_threads).reshape(-1, 4)
        for column, factor in enumerate((_core.GRADIENT_FACTOR, _core.CURVATURE_FACTOR)):
            grid = SumGrid(factor * self.bound)
            magnitudes[:, column] = grid.share(magnitudes[:, column], self.comm)
        if self.unit_bits != UNIT_BITS:  # else only the sums matter
            magnitudes[:, 2:] = self.comm.max(magnitudes[:, 2:].copy())
        growth = _core.SharedGrowth(
            self.data,
            examples,
            self.rules,
            self._column_key(round_number),
            magnitudes.ravel(),
            self.n_threads,
            self.column_rules,
            self._pool,
        )
        while len(counts := growth.propose(self.n_threads)):
            growth.accept(self.comm.sum(counts), self.n_threads)
        forest: Forest = growth.finish()
        return forest


class ContextLearner(Learner):
    """Learner of trees that split on previous labels, see `Learner`.

    Parameters
    ----------
    contexts
        The previous labels that they can use.
    """

    def __init__(
        self,
        data: _core.TreeData,
        contexts: _core.Contexts,
        rules: GrowthRules,
        sampling: Sampling,
        **more: Any,
    ) -> None:
        super().__init__(data, rules, sampling, **more)
        self._examples = _core.ContextExamples(contexts, int(self.offsets[-1]), self.unit_bits)
        self._selected: NDArray[np.uint8] | None = None

    def begin(self, round_number: int) -> None:
        """Discard what was added, and prepare for the examples of a round."""
        self._examples.clear()
        self._selected = self._select(round_number)

    def add(
        self,
        first_position: int,
        offsets: NDArray[np.int64],
        gradients: NDArray[np.float64],
        probabilities: NDArray[np.float64] | None,
        curvatures: NDArray[np.float32],
        *,
        observed: NDArray[np.int32] | None = None,
        weights: NDArray[np.float64] | None = None,
        parents: NDArray[np.int32] | None = None,
        totals: NDArray[np.float64] | None = None,
    ) -> None:
        """Add the examples of some more sequences, n positions from ``first_position`` on.

        Parameters
        ----------
        offsets
            Bounds of these sequences, from 0.
        gradients : (n, E)
            Gradient of the loss with respect to the score of each edge, times the weight of the
            position; at first positions, with respect to the scores of the K outputs, in place of
            the first K edges.
        probabilities : (n, E) or None
            Probabilities of the edges: the curvature of an edge, or of several together, is that of
            the position times p (1 - p), with their total probability p. None: without this factor.
        curvatures : (n,)
            Curvature of each position, times its weight; not negative.
        observed, weights : (n,), optional
            If given, the gradients are expected counts, from which 1 is subtracted at the observed
            edge (-1: none), and which are then multiplied by the weights (None: 1).
        parents : (n,), optional
            For tree-shaped graphs, negative at roots, which are treated like first positions.
        totals : (n, K), optional
            Expected counts of the outputs; without them, the counts of their edges are added up.
        """
        self._examples.add(
            first_position,
            offsets,
            gradients,
            probabilities,
            curvatures,
            observed=observed,
            weights=weights,
            parents=parents,
            totals=totals,
            trim=self.sampling.trim,
            scales=self.scales,
            selected=self._selected,
            bound=self.bound,
            n_threads=self.n_threads,
        )

    def add_pairs(
        self,
        first_position: int,
        offsets: NDArray[np.int64],
        by_label: NDArray[np.float32],
        observed_probs: NDArray[np.float64],
        observed: NDArray[np.int32],
        totals: NDArray[np.float64],
        curvatures: NDArray[np.float32],
    ) -> None:
        """Like `add`, for pairs of many labels: gradients are p - 1 if observed, otherwise p.

        Parameters
        ----------
        by_label : (K, N, K + 1)
            Probabilities p of the pairs of all positions, see `PairsByLabel`; they must not
            change until trees are grown.
        observed_probs : (n,)
            Probabilities of the observed pairs.
        """
        self._examples.add_pairs(
            first_position,
            offsets,
            by_label,
            observed_probs,
            observed,
            totals,
            curvatures,
            trim=self.sampling.trim,
            scales=self.scales,
            selected=self._selected,
            bound=self.bound,
            n_threads=self.n_threads,
        )

    def grow(self, round_number: int) -> Forest:
        """The trees of the round whose examples were added; tree k adds to output k."""
        if self.sampling.draws_examples:
            self._examples.draw(**self._draws(round_number), n_threads=self.n_threads)
        return self._grow(self._examples, round_number)
