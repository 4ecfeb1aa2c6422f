"""Curves: how a training went."""

from __future__ import annotations

from typing import Any, Literal

from hedgerow.model import SequenceModel
from hedgerow.plots.canvas import COLOURS, GREY, count_along, make_axes
from hedgerow.tree_crf import TreeCRF


def learning_curve(
    crf: SequenceModel, metric: Literal["loss", "accuracy"] = "loss", *, ax: Any = None
) -> Any:
    """Draw how loss or accuracy went, round by round or iteration by iteration.

    Parameters
    ----------
    crf
        A fitted model. With an ``eval_set`` there is a second curve, and for a `TreeCRF` a line at
        the best round.
    metric
        "loss" or "accuracy".
    ax
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if metric not in ("loss", "accuracy"):
        raise ValueError(f"metric is {metric!r}; expected 'loss' or 'accuracy'")
    crf._check_fitted()
    training, evaluation = crf.history_.get(metric, []), crf.history_.get(f"eval_{metric}", [])
    if not len(training) and not len(evaluation):
        raise ValueError(
            f"this {type(crf).__name__} has no {metric} to draw; fit it with eval_set=(X, y)"
        )
    is_tree = isinstance(crf, TreeCRF)
    ax = make_axes(ax, 6.4, 4.0)
    ax.set_xlabel("round" if is_tree else "iteration")
    ax.set_ylabel(metric)
    lines = _draw(ax, training, "training data", COLOURS[0])
    # The loss of linear weights is a sum with penalties: no number to compare with another.
    beside = ax
    if metric == "loss" and not is_tree:
        ax.set_ylabel("loss of the training data, penalties included")
        if len(evaluation):
            beside = ax.twinx()
            beside.set_ylabel("loss of the eval_set, a position")
    lines += _draw(beside, evaluation, "eval_set", COLOURS[5])
    best = getattr(crf, "best_round_", None)
    if best is not None and len(evaluation):
        lines.append(ax.axvline(best, color=GREY, linestyle="--", label=f"best round, {best}"))
    ax.legend(handles=lines, frameon=False)
    count_along(ax.xaxis)
    for panel in {ax, beside}:
        panel.spines["top"].set_visible(False)
    return ax


def _draw(ax: Any, figures: list[float], name: str, colour: str) -> list[Any]:
    if not len(figures):
        return []
    marker = "o" if len(figures) < 15 else None
    style = "-" if name == "training data" else "-."
    return list(
        ax.plot(
            range(1, len(figures) + 1),
            figures,
            linestyle=style,
            marker=marker,
            markersize=3,
            color=colour,
            label=name,
        )
    )
