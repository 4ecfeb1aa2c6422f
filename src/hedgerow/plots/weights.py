"""Weights: heat maps of what a model has learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.linear_crf import LinearCRF
from hedgerow.model import SequenceModel
from hedgerow.parameters import check_number
from hedgerow.plots.canvas import draw_map, make_axes, sign
from hedgerow.tree_crf import TreeCRF


def transitions(crf: SequenceModel, *, ax: Any = None) -> Any:
    """Draw the weights of label pairs: which label likes to follow which.

    Pairs without a weight, because they are forbidden or were not seen, stay grey.

    Parameters
    ----------
    crf
        A fitted model of order 1 or more.
    ax
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes
    """
    table = crf.transitions()
    plain = table["attribute"] == "" if "attribute" in table else slice(None)
    before, after, weights = (table[name][plain] for name in ("from", "to", "weight"))
    if not len(weights):
        raise ValueError(
            f"this {type(crf).__name__} has no weights of label pairs; fit it with order=1 or more"
        )
    names = crf.classes_.tolist()
    values = np.full((len(names), len(names)), np.nan)
    values[_places(before, names), _places(after, names)] = weights
    side = min(10.0, 2.5 + 0.28 * len(names))
    ax = make_axes(ax, side + 1.2, side)
    draw_map(ax, values, names, names, signed=True, unit="weight")
    ax.set_xlabel("label")
    ax.set_ylabel("label before")
    return ax


def importances(crf: TreeCRF | LinearCRF, n_features: int = 20, *, ax: Any = None) -> Any:
    """Draw what a model looks at most.

    For a `TreeCRF` the share of the gain of each feature, by offset in the window; for a
    `LinearCRF` the weights of the attributes that have the largest, by label.

    Parameters
    ----------
    crf
        A fitted model.
    n_features
        How many features, the most important first.
    ax
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes
    """
    check_number("n_features", n_features, minimum=1, integer=True)
    crf._check_fitted()
    if isinstance(crf, TreeCRF):
        rows, columns, values = _gains_by_offset(crf)
        order = np.argsort(-values.sum(axis=1), kind="stable")[:n_features]
        title, unit, signed = "offset in the window", "share of all gain, %", False
    else:
        rows, columns, values = _weights_by_label(crf)
        order = np.argsort(-np.nan_to_num(np.abs(values)).max(axis=1), kind="stable")[:n_features]
        title, unit, signed = "label", "weight", True
    if not len(rows):
        raise ValueError("no feature is in use: the model has no splits and no weights to draw")
    ax = make_axes(ax, min(12.0, 4.0 + 0.35 * len(columns)), 1.5 + 0.22 * len(order))
    names = [rows[i] for i in order.tolist()]
    draw_map(ax, values[order], names, columns, signed=signed, unit=unit)
    ax.set_xlabel(title)
    return ax


def _gains_by_offset(crf: TreeCRF) -> tuple[list[Any], list[Any], NDArray[np.float64]]:
    """Features in use, offsets, and per cent of all gain, [feature, offset]."""
    table = crf.importances()
    features = list(dict.fromkeys(table["feature"].tolist()))
    offsets = sorted(set(table["offset"].tolist()))
    values = np.zeros((len(features), len(offsets)))
    places = _places(table["feature"], features), _places(table["offset"], offsets)
    total = max(table["gain"].sum(), np.finfo(np.float64).tiny)
    np.add.at(values, places, 100 * table["gain"] / total)
    return features, [sign(f"{offset:+d}") if offset else "0" for offset in offsets], values


def _weights_by_label(crf: LinearCRF) -> tuple[list[Any], list[Any], NDArray[np.float64]]:
    """Attributes, labels, and weights, [attribute, label], NaN where there is none."""
    table = crf.weights()
    attributes = list(dict.fromkeys(table["attribute"].tolist()))
    labels = crf.classes_.tolist()
    values = np.full((len(attributes), len(labels)), np.nan)
    places = _places(table["attribute"], attributes), _places(table["label"], labels)
    values[places] = table["weight"]
    return attributes, labels, values


def _places(values: NDArray[Any], names: list[Any]) -> list[int]:
    """Where each value stands in a list of names."""
    place = {name: i for i, name in enumerate(names)}
    return [place[value] for value in values.tolist()]
