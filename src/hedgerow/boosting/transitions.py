"""Transitions: the steps of the weights of label patterns in a round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.curvature import temper
from hedgerow.boosting.suffix_tree import SuffixTree
from hedgerow.exact_sums import curvature_grid, exact_sum
from hedgerow.graph import find_roots
from hedgerow.labels import Patterns
from hedgerow.lbfgs import Iterations, build_metric, finish, minimize
from hedgerow.objectives import Targets
from hedgerow.trellis import Mixing

__all__ = ["PatternBound", "exact_step"]

# Every iteration of L-BFGS takes about as long as the inference of a round.
EXACT_ITERATIONS = 3
# Minimum frequency of a pattern in the scaling, relative to the most frequent one.
RAREST = 1e-4

Vector = NDArray[np.float64]


class PatternBound:
    """A bound on the loss along steps in the weights of label patterns.

    Parameters
    ----------
    patterns : Patterns
        The P label patterns.
    targets : Targets
        The training labels, with their weights.
    learning_rate : float
        The factor of each step.
    """

    def __init__(self, patterns: Patterns, targets: Targets, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.patterns = patterns
        self.tree = SuffixTree(patterns)
        self.trellis = targets.trellis
        self._targets = targets
        self.n_edges = _count_edges(targets)

    def curvatures(
        self, mixing: Mixing, probabilities: NDArray[np.float64], expected: Vector
    ) -> Vector:
        """Curvature of the loss, (P,), where each pattern is the longest that ends at a position.

        For pairs of a first-order chain it is the sum over positions t of gamma_t p_t (1 - p_t),
        with p_t the probability that the pair ends at t: see `hedgerow.boosting.curvature`.

        For an automaton only n = sum_t p_t is known, over the N positions that have a predecessor.
        Instead of gamma_t, the mean gamma of label pairs over these positions is used, tempered as
        for trees; and instead of the sum, the smaller of two estimates:

        - As sum_t p_t^2 >= n^2 / N (Cauchy-Schwarz), sum_t p_t (1 - p_t) <= n - n^2 / N. If
          sequences have weights, every term of the sums, and of n and N, is multiplied by them.
        - If labels are nearly certain, so are their patterns. 1 - p_t is estimated to be as large
          as it is for the least certain of the pattern's labels, on average over its positions.

        Parameters
        ----------
        mixing
            The gammas.
        probabilities : (N, K)
            Of the labels at each position.
        expected : (P,)
            Expected count of each pattern.
        """
        if not len(self.patterns):
            return np.zeros(0)
        if mixing.arc_curvatures is not None:
            grid = curvature_grid(self._targets.bound)
            sums = grid.share(mixing.arc_curvatures, self._targets.comm)
            return self.trellis.pattern_sums(sums)
        counts = self.tree.own(expected).clip(min=0)  # weighted by position, they may be negative
        variances = (counts - counts**2 / max(self.n_edges, 1.0)).clip(min=0)
        doubts = _doubts(probabilities, self._targets)[self.patterns.labels]
        largest = np.maximum.reduceat(doubts, self.patterns.offsets[:-1])
        curvatures: Vector = np.minimum(variances, counts * largest)
        gamma = np.array(_mean_gamma(mixing, self._targets))
        return float(temper(gamma, self.learning_rate)) * curvatures

    def step(
        self, slopes: Vector, curvatures: Vector, resistances: Vector, max_step: float
    ) -> Vector:
        """The step (P,) that minimises the bound of Chen et al. (2015), Theorem 4.2.

        Steps are dampened: a pattern that occurs c times as often as expected needs a score larger
        by log c, but the quadratic bound gives c - 1. So a change x of the score of a pattern of n
        labels becomes sign(x) m log(1 + |x| / m), with m = (n - 1) ``max_step``; small changes
        hardly differ.

        Parameters
        ----------
        slopes : (P,)
            How the loss changes with the weights.
        curvatures : (P,)
            Bound on how the slopes change, see `curvatures`.
        resistances : (P,)
            Regularization of the step of each weight: lambda, as for a leaf, and its penalty.
        max_step
            The scale of the dampening; infinite: steps are not dampened.
        """
        moves = self.tree.solve(slopes, curvatures, resistances)
        if np.isfinite(max_step):
            large = max_step * (self.patterns.lengths - 1)
            moves = np.sign(moves) * large * np.log1p(np.abs(moves) / large)
        return self.tree.increments(moves)


def _count_edges(targets: Targets) -> float:
    """Number of pairs of neighbours, weighted by sequence."""
    lengths, weights = np.diff(targets.offsets), targets.mean_weights
    roots = find_roots(targets.offsets, targets.parents)
    owners = np.searchsorted(targets.offsets, roots, side="right") - 1
    counts = lengths - np.bincount(owners, minlength=len(lengths))
    return exact_sum(counts if weights is None else counts * weights, targets.comm)


def _mean_gamma(mixing: Mixing, targets: Targets) -> float:
    """Mean of the gammas of label pairs over the positions where one ends; 2 if there are none.

    Positions have their training weights.
    """
    counts = (mixing.edges > 0).astype(np.float64)
    if targets.weights is not None:
        counts *= targets.weights
    total = float(targets.count(np.array(targets.round(counts).sum())))
    grid = curvature_grid(targets.bound)
    sums = grid.share(np.array(grid.round(counts * mixing.edges).sum()), targets.comm)
    return float(sums) / total if total > 0 else 2.0


def _doubts(probabilities: NDArray[np.float64], targets: Targets) -> Vector:
    """Uncertainty of each label where it is probable, (K,): the mean of 1 - p, weighted by p."""
    weighted = (
        probabilities if targets.weights is None else probabilities * targets.weights[:, None]
    )
    both = np.stack([targets.round(weighted), targets.round(weighted * probabilities)])
    sums, squares = targets.count(both.sum(axis=1))
    doubts: Vector = 1 - np.divide(squares, sums, out=np.zeros_like(sums), where=sums > 0)
    return doubts


def exact_step(
    measure: Callable[[Vector], tuple[float, Vector]],
    weights: Vector,
    curvatures: Vector,
    *,
    reg_lambda: float,
    n_threads: int,
) -> Vector:
    """A few steps of L-BFGS towards the best weights, (P,); returns the change.

    As for a leaf, lambda regularizes the step, not the weights.

    Parameters
    ----------
    measure
        The loss at some weights, and its slopes.
    weights : (P,)
        Where to begin.
    curvatures : (P,)
        Approximate curvatures: expected counts of the patterns, plus penalties.
    """
    if not len(weights):
        return np.zeros(0)
    # In these units, and with the loss per occurrence of the most frequent pattern, the curvature
    # of all patterns is about 1, and so is the size of a good step.
    curvatures = curvatures + reg_lambda
    largest = float(curvatures.max())
    if largest <= 0:
        return np.zeros(len(weights))
    units = np.sqrt((curvatures / largest).clip(min=RAREST))

    def penalised(point: Vector) -> tuple[float, Vector]:
        step = point / units
        loss, slopes = measure(weights + step)
        penalty = reg_lambda / 2 * float(np.einsum("p,p", step, step))
        return (loss + penalty) / largest, (slopes + reg_lambda * step) / (largest * units)

    iterations, start = Iterations(EXACT_ITERATIONS, 0.0), np.zeros(len(weights))
    descent = minimize(penalised, start, iterations, build_metric(len(weights)), n_threads)
    step: Vector = finish(descent).weights / units
    return step
