"""Tree learner: from gradients and curvatures of a loss to the trees of a round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow._core import GrowthRules
from hedgerow.trees.forest import Forest
from hedgerow.trees.sampling import Purpose, Sampling, draw_key, select_positions

__all__ = ["GrowthRules", "TreeLearner"]


class TreeLearner:
    """Grows a tree for each of K outputs, round after round, from the same N positions.

    It knows nothing of the loss but its derivatives with respect to the scores.

    Parameters
    ----------
    data
        Bins of the columns at all positions, laid out for growing.
    rules
        What a tree may be.
    sampling
        Which positions and examples a round learns from.
    offsets : (S + 1,)
        Sequence s holds the positions ``offsets[s]`` to ``offsets[s + 1]``; a subsample is of whole
        sequences.
    codes : (N,) int32, optional
        Output of the observed label, -1 where it is not known; needed to sample by label.
    scales : (N,) float64, optional
        How much each position counts; those of 0 take no part. None is 1.
    column_rules : ColumnRules, optional
        What the columns may do in the trees of each output. None is anything.
    opposite
        Whether there are two outputs whose gradients are always each other's opposite, with the
        same curvatures. Then one tree is grown, and that of output 0 is its negative.
    n_threads
        Number of threads; the trees do not depend on it.
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
        column_rules: _core.ColumnRules | None = None,
        opposite: bool = False,
        n_threads: int,
    ) -> None:
        self.data = data
        self.rules = rules
        self.sampling = sampling
        self.offsets = offsets
        self.codes = codes
        self.scales = scales
        self.column_rules = column_rules
        # Examples that are drawn by label differ from output to output.
        self.opposite = opposite and not sampling.negative_ratio > 0
        self.n_threads = n_threads
        self._pool = _core.MemoryPool()

    def grow(
        self,
        gradients: NDArray[np.float64],
        curvatures: NDArray[np.float32],
        round_number: int,
    ) -> Forest:
        """The trees of one round; tree k adds to output k.

        Parameters
        ----------
        gradients : (N, K)
            How the loss changes with each score, by as much as the position counts.
        curvatures : (N, K), or (N, 1) for all outputs alike
            How the gradients change, likewise; not negative.
        round_number
            Random numbers are drawn for this round, from 0, and depend on nothing else.
        """
        sampling = self.sampling
        examples = _core.Examples(
            gradients,
            curvatures,
            trim=sampling.trim,
            scales=self.scales,
            selected=select_positions(
                self.offsets, sampling.subsample, self._key(round_number, Purpose.SEQUENCES)
            ),
            negative_ratio=sampling.negative_ratio,
            codes=self.codes,
            key=self._key(round_number, Purpose.EXAMPLES),
            opposite=self.opposite,
            n_threads=self.n_threads,
            pool=self._pool,
        )
        key = self._key(round_number, Purpose.COLUMNS)
        return _core.grow_trees(
            self.data, examples, self.rules, key, self.n_threads, self.column_rules, self._pool
        )

    def _key(self, round_number: int, purpose: Purpose) -> int:
        return draw_key(self.sampling.seed, round_number, purpose)
