"""Weights: transitions and feature importance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.labels.tables import pair_table
from hedgerow.linear_crf import LinearCRF
from hedgerow.parameters import check_number
from hedgerow.pivot import pivot
from hedgerow.plots.canvas import BLUE, check_model, measure_axes, open_axes, show
from hedgerow.plots.heat_map import draw_heat_map, fit_names
from hedgerow.tables import Table
from hedgerow.tree_crf import TreeCRF

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def transitions(crf: Any, ax: Axes | None = None) -> Axes:
    """Plot the weights of label pairs as a heat map.

    Blue pairs are more likely than others, orange ones less. Pairs without a weight, such as those
    that constraints forbid, are hatched.

    Parameters
    ----------
    crf : TreeCRF or LinearCRF
        A fitted model.
    ax : matplotlib axes, optional
        Where to draw; a new figure if it is None.

    Returns
    -------
    matplotlib axes
    """
    model = check_model(crf)
    # Without the weights of attributes for pairs.
    table = pair_table(model.model_.grammar, model.model_.pattern_weights, model.classes_)
    if not len(table["weight"]):
        raise ValueError(
            "the model has no weights of label pairs to plot; fit one with an order of at least 1 "
            "or, if label_patterns is given, with pairs among them"
        )
    classes = model.classes_
    matrix = np.full((len(classes), len(classes)), np.nan)
    find = model.model_.labels.find
    matrix[find(table["from"]), find(table["to"])] = table["weight"]
    names = classes.tolist()
    ax = draw_heat_map(ax, matrix, names, names, square=True, signed=True, unit="weight")
    ax.set_ylabel("from")
    ax.set_xlabel("to")
    return ax


def importances(crf: Any, ax: Axes | None = None, *, top: int = 20) -> Axes:
    """Plot feature importance.

    For a `TreeCRF`, the share of the total gain of the splits on each feature, in per cent, by
    offset in the window, or as bars if there is only one offset. For a `LinearCRF`, the weights of
    the attributes with the largest absolute weights, by label; attributes that have no weight for a
    label are hatched there.

    Parameters
    ----------
    crf : TreeCRF or LinearCRF
        A fitted model.
    ax : matplotlib axes, optional
        Where to draw; a new figure if it is None.
    top : int, default 20
        Maximum number of features to plot.

    Returns
    -------
    matplotlib axes
    """
    model = check_model(crf)
    check_number("top", top, minimum=1, integer=True)
    if isinstance(model, TreeCRF):
        return _draw_gains(model, ax, int(top))
    assert isinstance(model, LinearCRF)
    return _draw_weights(model, ax, int(top))


def _draw_gains(model: TreeCRF, ax: Axes | None, top: int) -> Axes:
    table = model.importances()
    if not len(table["gain"]):
        raise ValueError(
            "no tree of the model has a split, so no feature has a gain to plot; train it for more "
            "rounds, or with a lower min_child_weight"
        )
    names, offsets, gains = pivot(table, "feature", "offset", "gain")
    shares = 100 * gains / np.nansum(gains)
    totals = np.nansum(shares, axis=1)
    kept = np.argsort(-totals, kind="stable")[:top]
    if len(offsets) > 1:
        signs = [f"{offset:+d}" if offset else "0" for offset in offsets.tolist()]
        ax = draw_heat_map(
            ax,
            shares[kept],
            names[kept].tolist(),
            signs,
            square=False,
            signed=False,
            unit="share of the gain, %",
        )
        ax.set_xlabel("offset")
        return ax
    return _draw_bars(ax, totals[kept].tolist(), names[kept].tolist(), "share of the gain, %")


def _draw_bars(ax: Axes | None, values: list[float], names: list[str], unit: str) -> Axes:
    ax = open_axes(ax, 6.4, 0.8 + 0.24 * len(names))
    ax.barh(range(len(names)), values, color=BLUE)
    ax.set_yticks(range(len(names)), [show(name) for name in names])
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel=unit)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    fit_names(ax.yaxis, measure_axes(ax)[1] / len(names))
    return ax


def _draw_weights(model: LinearCRF, ax: Axes | None, top: int) -> Axes:
    table = _heaviest(model.weights(), top)
    names, labels, weights = pivot(table, "attribute", "label", "weight")
    order = np.argsort(-np.nanmax(np.abs(weights), axis=1), kind="stable")
    ax = draw_heat_map(
        ax,
        weights[order],
        names[order].tolist(),
        labels.tolist(),
        square=False,
        signed=True,
        unit="weight",
    )
    ax.set_xlabel("label")
    return ax


def _heaviest(table: Table, top: int) -> Table:
    """All rows of the attributes with the largest absolute weights."""
    order = np.argsort(-np.abs(table["weight"]), kind="stable")
    found: set[str] = set()
    for name in table["attribute"][order]:
        found.add(name)
        if len(found) == top:
            break
    mine = np.fromiter((name in found for name in table["attribute"]), np.bool_, len(order))
    return Table({name: column[mine] for name, column in table.items()})
