"""Analysis of deviance: whether several models, trained on several training sets, differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.counting import count_of
from hedgerow.encode.codes import code_values, is_missing
from hedgerow.parameters import check_choice
from hedgerow.stats.logistic import LogisticFit, fit_logistic
from hedgerow.suggestions import suggest
from hedgerow.tables import Table, choose_output

__all__ = ["Deviance", "deviance"]

Dispersion = Literal["binomial", "quasi"]


@dataclass(frozen=True, eq=False)
class Deviance:
    """Result of an analysis of deviance.

    Attributes
    ----------
    baseline : object
        The method that the others are compared with.
    methods : table
        One row for each other method: its ``coefficient``, the difference in the log-odds of a
        correct answer between this method and the baseline, with its ``standard_error``, ``z`` and
        ``wald_p_value``; the ``statistic`` of the likelihood-ratio test of this method against the
        baseline, and its ``p_value``. A method that is never wrong has the coefficient inf, one
        that is never right -inf; Wald's test is then NaN, but the likelihood-ratio test is still
        valid.
    statistic : float
        Increase in the deviance if all methods are assumed to be equally good; divided by
        `dispersion` and `df` for a quasi-binomial.
    df : int
        Degrees of freedom of the statistic: number of methods minus 1.
    residual_df : int
        Residual degrees of freedom.
    p_value : float
        Probability of a statistic at least this large if all methods are equally good.
    dispersion : float
        Ratio of the variance of counts to that of a binomial distribution.
    kind : {"binomial", "quasi"}
        Whether the dispersion is 1, or was estimated.
    """

    baseline: Any
    methods: Any
    statistic: float
    df: int
    residual_df: int
    p_value: float
    dispersion: float
    kind: Dispersion

    def __repr__(self) -> str:
        of_what = (
            f"chi2({self.df})" if self.kind == "binomial" else f"F({self.df}, {self.residual_df})"
        )
        spread = "" if self.kind == "binomial" else f", dispersion {self.dispersion:.4g}"
        return (
            f"Analysis of deviance, baseline {self.baseline!r}{spread}\n"
            f"all methods: {of_what} = {self.statistic:.4g}, p = {self.p_value:.3g}\n"
            f"{self.methods}"
        )


def deviance(
    right: ArrayLike,
    total: ArrayLike,
    method: Any,
    block: Any,
    baseline: Any = None,
    dispersion: Dispersion = "binomial",
) -> Deviance:
    """Test whether several methods are right equally often: analysis of deviance.

    Each method was trained on several training sets, and tested once or several times. A logistic
    regression models the number of correct answers in each cell (one test of one model) as
    ``logit P(right) = delta(method) + sigma(block)``; there are blocks since some training sets are
    better than others, whatever the method. It is compared with a regression without the methods:
    the difference of the deviances has a chi-squared distribution if the methods are equally good.

    The test assumes that answers are independent. Positions of a sequence are not, which makes
    p-values too small; nor are the answers of several models on one test set, which can make them
    too large. ``dispersion="quasi"`` estimates from the data how much more or less the numbers of
    correct answers vary than if answers were independent. It needs several cells for each method,
    and its p-values come from an F distribution.

    Parameters
    ----------
    right, total : (n,) int
        Number of correct answers and of all answers in each cell. Cells without answers are left
        out.
    method : (n,)
        Name of the method of each cell.
    block : (n,)
        Training set or fold of each cell; methods are compared within blocks.
    baseline : optional
        The method that the others are compared with; None: the first one.
    dispersion : {"binomial", "quasi"}, default "binomial"
        "binomial": answers are assumed to be independent. "quasi": the dispersion is estimated.

    Examples
    --------
    >>> from hedgerow.stats import deviance
    >>> deviance(
    ...     right=[812, 798, 845, 829, 846, 842],
    ...     total=[1000] * 6,
    ...     method=["order 1", "order 1", "order 2", "order 2", "order 3", "order 3"],
    ...     block=["fold 1", "fold 2"] * 3,
    ... )
    Analysis of deviance, baseline 'order 1'
    all methods: chi2(2) = 12.01, p = 0.00247
    method   coefficient  standard_error      z  wald_p_value  statistic   p_value
    order 2       0.2183         0.08277  2.637      0.008363      6.977  0.008255
    order 3       0.2705         0.08357  3.237      0.001208      10.53  0.001173
    """
    check_choice("dispersion", dispersion, ("binomial", "quasi"))
    counts = _read_counts(right, total)
    n_cells = len(counts)
    methods, method_codes = _read_names("method", method, n_cells)
    _, block_codes = _read_names("block", block, n_cells)
    first = 0 if baseline is None else _find_baseline(baseline, methods)
    used = counts[:, 1] > 0
    _check_methods(methods, method_codes[used])
    counts, method_codes, block_codes = counts[used], method_codes[used], block_codes[used]
    _check_connected(methods, method_codes, block_codes)
    others = [code for code in range(len(methods)) if code != first]
    design = np.hstack(
        [_indicators(method_codes, others), _indicators(block_codes, sorted(set(block_codes)))]
    )

    def fit(columns: NDArray[np.int64]) -> LogisticFit:
        return fit_logistic(design[:, columns], counts[:, 0], counts[:, 1])

    columns = np.arange(design.shape[1])
    full = fit(columns)
    scale = _find_scale(full, dispersion)
    together = scale.test(fit(columns[len(others) :]).deviance - full.deviance, len(others))
    single = [
        scale.test(fit(np.delete(columns, at)).deviance - full.deviance, 1)
        for at in range(len(others))
    ]
    coefficients = full.coefficients[: len(others)]
    errors = full.standard_errors[: len(others)] * np.sqrt(scale.dispersion)
    z = coefficients / errors
    table = Table(
        {
            "method": np.fromiter((methods[code] for code in others), np.object_, len(others)),
            "coefficient": coefficients,
            "standard_error": errors,
            "z": z,
            "wald_p_value": scale.wald(z),
            "statistic": np.array([statistic for statistic, _ in single]),
            "p_value": np.array([p for _, p in single]),
        }
    )
    return Deviance(
        methods[first],
        table.to(choose_output(None, None)),
        together[0],
        len(others),
        full.df,
        together[1],
        scale.dispersion,
        dispersion,
    )


@dataclass(frozen=True)
class _Scale:
    """The scale of deviances: the dispersion, known or estimated."""

    dispersion: float
    residual_df: int | None
    """Residual degrees of freedom, if the dispersion is estimated; None: it is known."""

    def test(self, difference: float, df: int) -> tuple[float, float]:
        """Statistic and p-value of a difference of deviances."""
        from scipy.stats import chi2, f

        difference = max(difference, 0.0)  # except for rounding
        if self.residual_df is None:
            return difference, float(chi2.sf(difference, df))
        statistic = difference / df / self.dispersion
        return statistic, float(f.sf(statistic, df, self.residual_df))

    def wald(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """P-values of coefficients divided by their standard errors, two-sided."""
        from scipy.stats import norm, t

        distribution = norm() if self.residual_df is None else t(self.residual_df)
        p_values: NDArray[np.float64] = 2 * distribution.sf(np.abs(z))
        return p_values


def _find_scale(full: LogisticFit, dispersion: Dispersion) -> _Scale:
    if dispersion == "binomial":
        return _Scale(1.0, None)
    if not full.df:
        raise ValueError(
            "dispersion is 'quasi', but there are too few cells to estimate it; there must be "
            "more cells than coefficients: pass the counts of several tests for each method and "
            "block, or 'binomial'"
        )
    estimate = full.pearson / full.df
    if estimate < 1e-9:
        raise ValueError(
            "dispersion is 'quasi', but the counts fit the methods and blocks exactly, so the "
            "estimated dispersion is 0; pass 'binomial'"
        )
    return _Scale(estimate, full.df)


def _read_counts(right: ArrayLike, total: ArrayLike) -> NDArray[np.float64]:
    """Counts of correct answers and of all answers, (n, 2)."""
    columns = []
    for name, values in (("right", right), ("total", total)):
        column = np.asarray(values)
        if column.ndim != 1 or column.dtype.kind not in "iuf":
            raise ValueError(
                f"{name} must be a 1-D array of counts, one for each cell; got shape "
                f"{column.shape} and dtype {column.dtype}"
            )
        columns.append(column.astype(np.float64))
    if len(columns[0]) != len(columns[1]):
        raise ValueError(
            f"right has {count_of(len(columns[0]), 'count')} but total has {len(columns[1])}; pass "
            "both for each cell"
        )
    counts = np.stack(columns, axis=1)
    wrong = (counts != np.floor(counts)) | (counts < 0) | (counts[:, :1] > counts[:, 1:])
    wrong |= ~np.isfinite(counts)
    if wrong.any():
        cell = int(wrong.any(axis=1).argmax())
        r, n = counts[cell].tolist()
        raise ValueError(
            f"cell {cell} has {r:g} right of {n:g}; expected whole numbers of at least 0, and "
            "no more correct answers than answers"
        )
    return counts


def _read_names(what: str, values: Any, n_cells: int) -> tuple[list[Any], NDArray[np.int32]]:
    """Distinct names in the order in which they appear, and the code of each cell."""
    names = list(values.tolist() if hasattr(values, "tolist") else values)
    if len(names) != n_cells:
        raise ValueError(
            f"{what} has {count_of(len(names), 'name')} but there are {count_of(n_cells, 'cell')}; "
            "pass one for each cell"
        )
    missing = [cell for cell, name in enumerate(names) if is_missing(name)]
    if missing:
        raise ValueError(f"{what} has no name in cell {missing[0]}; every cell needs one")
    return code_values([names])


def _find_baseline(baseline: Any, methods: list[Any]) -> int:
    if baseline not in methods:
        names = [name for name in methods if isinstance(name, str)]
        near = suggest(baseline, names) if isinstance(baseline, str) else ""
        known = ", ".join(map(repr, methods))
        raise ValueError(f"baseline is {baseline!r}{near or f'; expected one of {known}'}")
    return methods.index(baseline)


def _check_methods(methods: list[Any], codes: NDArray[np.int32]) -> None:
    """Raise ValueError unless there are at least two methods, each with answers."""
    if len(methods) < 2:
        found = f"just one, {methods[0]!r}" if methods else "none"
        raise ValueError(f"expected two methods or more to compare; got {found}")
    for code, name in enumerate(methods):
        if not np.any(codes == code):
            raise ValueError(f"method {name!r} has no answers: its totals are all 0; leave it out")


def _check_connected(
    methods: list[Any], method_codes: NDArray[np.int32], block_codes: NDArray[np.int32]
) -> None:
    """Raise ValueError for methods that are not connected by common blocks."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(methods) + int(block_codes.max()) + 1
    links = coo_array(
        (np.ones(len(method_codes)), (method_codes, len(methods) + block_codes)), shape=(n, n)
    )
    _, groups = connected_components(links, directed=False)
    apart = np.flatnonzero(groups[: len(methods)] != groups[0])
    if len(apart):
        raise ValueError(
            f"methods {methods[0]!r} and {methods[apart[0]]!r} cannot be compared: they have no "
            "block in common, and no other methods link their blocks; train both on the same "
            "training sets"
        )


def _indicators(codes: NDArray[np.int32], columns: list[int]) -> NDArray[np.float64]:
    """Whether each cell has each code, (n, number of columns)."""
    return np.where(codes[:, None] == np.array(columns, np.int32), 1.0, 0.0)
