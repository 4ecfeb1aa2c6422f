"""Sequence: how sure a model is, position by position."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.model import SequenceModel
from hedgerow.plots.canvas import COLOURS, GREY, count_along, make_axes, shorten

MAX_TEXTS = 60
"""Strips of sequences up to this length have their labels written on them."""


def marginals(crf: SequenceModel, x: Any, y: Any = None, *, ax: Any = None) -> Any:
    """Draw the probability of each label along a sequence, and the labels above it.

    The eight labels that are most probable anywhere have a colour of their own, all others are
    grey.

    Parameters
    ----------
    crf
        A fitted model.
    x
        One sequence, in the form used to fit.
    y
        Its true labels, to be shown too.
    ax
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes
    """
    (probs,), (predicted,) = crf.predict_marginals([x]), crf.predict([x])
    length = len(probs)
    if y is not None and len(y) != length:
        raise ValueError(f"y has {len(y)} labels, but x has {length} positions")
    names = crf.classes_.tolist()
    shown = _choose_labels(probs)
    colours = {names[code]: COLOURS[i] for i, code in enumerate(shown)}
    ax = make_axes(ax, min(14.0, 4.0 + 0.16 * length), 3.6)
    _stack(ax, probs, shown, names)
    strips = [("predicted", list(predicted))] + ([] if y is None else [("true", list(y))])
    for row, (name, labels) in enumerate(strips):
        _draw_strip(ax, 1.04 + 0.11 * row, name, labels, colours)
    ax.set(xlim=(-0.5, length - 0.5), ylim=(0, 1.04 + 0.11 * len(strips)))
    count_along(ax.xaxis)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
    ax.set_xlabel("position")
    ax.set_ylabel("probability")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, title="label")
    return ax


def _choose_labels(probs: NDArray[np.float64]) -> list[int]:
    """Up to as many labels as there are colours, by code: those most probable anywhere."""
    n_shown = min(len(COLOURS), probs.shape[1])
    largest = np.argsort(-probs.max(axis=0), kind="stable")[:n_shown]
    return sorted(largest.tolist())


def _stack(ax: Any, probs: NDArray[np.float64], shown: list[int], names: list[Any]) -> None:
    """Areas one above the other, level within each position."""
    others = np.delete(probs, shown, axis=1).sum(axis=1)
    layers = [*(probs[:, code] for code in shown)]
    labels, colours = [shorten(names[code]) for code in shown], list(COLOURS[: len(shown)])
    if len(shown) < probs.shape[1]:
        layers, labels, colours = [*layers, others], [*labels, "others"], [*colours, GREY]
    edges = np.arange(len(probs) + 1) - 0.5
    below = np.zeros(len(probs))
    for layer, label, colour in zip(layers, labels, colours, strict=True):
        top = below + layer
        ax.stairs(top, edges, baseline=below, fill=True, color=colour, label=label)
        below = top


def _draw_strip(
    ax: Any, bottom: float, name: str, labels: list[Any], colours: dict[Any, str]
) -> None:
    """A row of labels above the areas, in their colours."""
    for t, label in enumerate(labels):
        colour = colours.get(label, GREY)
        ax.bar(t, 0.09, width=1.0, bottom=bottom, color=colour, edgecolor="white", linewidth=0.5)
        if len(labels) <= MAX_TEXTS:
            dark = colour in (COLOURS[0], COLOURS[5], COLOURS[7])
            text = {"color": "white" if dark else "black", "ha": "center", "va": "center"}
            ax.text(t, bottom + 0.042, shorten(label)[:4], fontsize=7, **text)
    ax.text(-0.6, bottom + 0.042, name, ha="right", va="center", fontsize=8)
