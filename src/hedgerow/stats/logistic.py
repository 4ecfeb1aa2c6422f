"""Logistic regression of counts, by maximum likelihood, with coefficients that may be infinite.

If some cells are all correct or all wrong, the likelihood may increase without bound in some
direction of the coefficients: such cells are separated. In the limit they fit perfectly, and what
remains is an ordinary regression of the other cells. Deviances are those of the limit, so tests of
deviances remain valid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LogisticFit", "fit_logistic"]

MAX_ITERATIONS = 25
# Relative change of the deviance below which there is no progress.
TOLERANCE = 1e-12
# Tolerance below which coefficients of linear programs and null spaces count as 0.
ZERO = 1e-8


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A logistic regression with P coefficients.

    Attributes
    ----------
    coefficients : (P,)
        Maximum-likelihood estimates, possibly infinite; NaN if the data do not determine them.
    standard_errors : (P,)
        NaN where the coefficient is not finite.
    deviance : float
        Twice the difference between the log-likelihoods of a perfect fit and of this one.
    pearson : float
        Pearson's X^2: the sum of (count - expected count)^2 / variance over the cells.
    df : int
        Residual degrees of freedom: number of cells that are not separated, minus the number of
        coefficients that they determine.
    """

    coefficients: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    deviance: float
    pearson: float
    df: int


@dataclass(frozen=True, eq=False)
class _Cells:
    """Counts of right answers with the variables that explain them."""

    design: NDArray[np.float64]
    """(n, P)"""
    right: NDArray[np.float64]
    """(n,)"""
    total: NDArray[np.float64]
    """(n,) above 0"""

    def only(self, chosen: NDArray[np.bool_]) -> _Cells:
        return _Cells(self.design[chosen], self.right[chosen], self.total[chosen])

    def score(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-odds of each cell, (n,)."""
        scores: NDArray[np.float64] = np.einsum("np,p->n", self.design, coefficients)
        return scores

    def spread(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted products of the variables, (P, P)."""
        columns = np.ascontiguousarray(self.design.T)
        sums: NDArray[np.float64] = np.einsum("pn,qn->pq", columns * weights, columns)
        return sums


def fit_logistic(
    design: NDArray[np.float64], right: NDArray[np.float64], total: NDArray[np.float64]
) -> LogisticFit:
    """Fit ``logit P(right) = design @ coefficients`` to ``right`` of ``total`` answers per cell.

    Parameters
    ----------
    design : (n, P)
        Variables of each cell.
    right, total : (n,)
        Counts; no total is 0.
    """
    cells = _Cells(design, right, total)
    rest = cells.only(~_find_separated(cells))
    seen, is_known = _find_determined(rest.design)
    reduced = _Cells(np.einsum("np,rp->nr", rest.design, seen), rest.right, rest.total)
    found, deviance = _iterate(reduced)
    rates = _rates(reduced.score(found))
    variances = rest.total * rates * (1 - rates)
    errors = (rest.right - rest.total * rates) ** 2
    covariance = np.linalg.inv(reduced.spread(variances))
    coefficients = np.einsum("r,rp->p", found, seen)
    standard_errors = np.sqrt(np.einsum("rp,rs,sp->p", seen, covariance, seen))
    standard_errors[~is_known] = np.nan
    for place in np.flatnonzero(~is_known):
        coefficients[place] = _find_limit(cells, int(place))
    return LogisticFit(
        coefficients,
        standard_errors,
        deviance,
        pearson=float(np.sum(errors / variances)),
        df=len(rest.right) - len(seen),
    )


def _find_determined(
    design: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Axes of coefficients that the cells determine, (rank, P), and flags of coefficients, (P,)."""
    n_coefficients = design.shape[1]
    sizes, axes = np.linalg.eigh(np.einsum("np,nq->pq", design, design))
    is_seen = sizes > ZERO * max(1.0, sizes.max(initial=0.0))
    if is_seen.all():  # the usual case: no axis mixes large and small values
        return np.eye(n_coefficients), np.ones(n_coefficients, np.bool_)
    is_known = np.all(np.abs(axes[:, ~is_seen]) < ZERO**0.5, axis=1)
    return axes[:, is_seen].T, is_known


def _rates(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-scores))


def _measure_deviance(cells: _Cells, coefficients: NDArray[np.float64]) -> float:
    """2 sum_i [r_i log(r_i / (n_i p_i)) + w_i log(w_i / (n_i (1 - p_i)))], w_i = n_i - r_i."""
    from scipy.special import xlogy

    scores, wrong = cells.score(coefficients), cells.total - cells.right
    of_right = cells.right * np.logaddexp(0, -scores) + xlogy(
        cells.right, cells.right / cells.total
    )
    of_wrong = wrong * np.logaddexp(0, scores) + xlogy(wrong, wrong / cells.total)
    return max(2 * float(np.sum(of_right + of_wrong)), 0.0)


def _iterate(cells: _Cells) -> tuple[NDArray[np.float64], float]:
    """Iteratively reweighted least squares; steps that increase the deviance are halved.

    Each iteration fits scores s + (r - n p) / v by least squares with the weights v = n p (1 - p).
    """
    coefficients: NDArray[np.float64] = np.zeros(cells.design.shape[1])
    scores = np.log((cells.right + 0.5) / (cells.total - cells.right + 0.5))
    deviance = np.inf
    for _ in range(MAX_ITERATIONS):
        rates = _rates(scores)
        weights = cells.total * rates * (1 - rates)
        aims = weights * scores + cells.right - cells.total * rates
        products = np.einsum("np,n->p", cells.design, aims)
        found = np.linalg.solve(cells.spread(weights), products)
        better = _measure_deviance(cells, found)
        while better > deviance * (1 + TOLERANCE) + TOLERANCE:
            found = (found + coefficients) / 2
            better = _measure_deviance(cells, found)
        is_done = abs(deviance - better) <= TOLERANCE * (better + 1)
        coefficients, deviance, scores = found, better, cells.score(found)
        if is_done:
            break
    return coefficients, deviance


def _find_separated(cells: _Cells) -> NDArray[np.bool_]:
    """Which cells fit perfectly in the limit, (n,).

    A direction d separates cells if x_i d >= 0 for cells that are all right, <= 0 for those that
    are all wrong, and 0 for all others, but not 0 for all cells. Separated cells do not affect the
    fit of the others.
    """
    found = np.zeros(len(cells.right), dtype=np.bool_)
    while True:
        rest = np.flatnonzero(~found)
        signs, part = _signs(cells)[rest], cells.design[rest]
        direction = _solve(part, signs, (signs[:, None] * part).sum(axis=0))
        more = signs * np.einsum("np,p->n", part, direction) > ZERO
        if not more.any():
            return found
        found[rest[more]] = True


def _signs(cells: _Cells) -> NDArray[np.float64]:
    """1 for cells that are all correct, -1 for cells that are all wrong, 0 for others."""
    return np.where(cells.right == cells.total, 1.0, np.where(cells.right == 0, -1.0, 0.0))


def _solve(
    design: NDArray[np.float64], signs: NDArray[np.float64], objective: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The best direction for ``objective``, within bounds, along which no likelihood decreases."""
    from scipy.optimize import linprog

    if not signs.any():
        return np.zeros(design.shape[1])
    free, extreme = design[signs == 0], (signs[:, None] * design)[signs != 0]
    solution = linprog(
        -objective,
        A_ub=-extreme,
        b_ub=np.zeros(len(extreme)),
        A_eq=free if len(free) else None,
        b_eq=np.zeros(len(free)) if len(free) else None,
        bounds=(-1, 1),
    )
    direction: NDArray[np.float64] = solution.x
    return direction


def _find_limit(cells: _Cells, place: int) -> float:
    """Limit of a coefficient that the cells do not determine: infinite, or unknown (NaN)."""
    axis = np.zeros(cells.design.shape[1])
    axis[place] = 1
    up, down = (_solve(cells.design, _signs(cells), sign * axis)[place] for sign in (1, -1))
    if up > ZERO and down > -ZERO:
        return np.inf
    return -np.inf if down < -ZERO and up < ZERO else np.nan
