"""Curves: how training went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow.estimator import Estimator
from hedgerow.parameters import check_choice
from hedgerow.plots.canvas import BLUE, FAINT, ORANGE, check_model, open_axes, use_whole_numbers
from hedgerow.tree_crf import TreeCRF

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"training": BLUE, "evaluation": ORANGE}


def learning_curve(
    crf: Any, ax: Axes | None = None, *, metric: Literal["loss", "accuracy"] = "loss"
) -> Axes:
    """Plot the loss or the accuracy after each round or iteration of training.

    With an ``eval_set`` there is a second curve, and the best round of a `TreeCRF` is marked. The
    training loss of a `LinearCRF` is a sum with penalties: the loss of its ``eval_set``, which is
    the mean over the positions, has its own axis on the right then. Where a `TreeCRF` was trained
    for an objective other than the likelihood, a dotted line marks where that begins.

    Parameters
    ----------
    crf : TreeCRF or LinearCRF
        A fitted model.
    ax : matplotlib axes, optional
        Where to draw; a new figure if it is None.
    metric : {"loss", "accuracy"}, default "loss"
        What to plot. A `LinearCRF` knows its accuracy on the ``eval_set`` only.

    Returns
    -------
    matplotlib axes
    """
    model = check_model(crf)
    check_choice("metric", metric, ("loss", "accuracy"))
    n_steps = len(model.history_.get("loss", ()))
    curves = {
        name: figures
        for name, key in (("training", metric), ("evaluation", f"eval_{metric}"))
        if (figures := model.history_.get(key))
    }
    _check_curves(model, n_steps, curves, metric)
    ax = open_axes(ax, 6.4, 3.8)
    is_tree = isinstance(model, TreeCRF)
    ax.set_xlabel("round" if is_tree else "iteration")
    ax.set_ylabel("loss a position" if metric == "loss" else metric)
    panels = {"training": ax, "evaluation": ax}
    if not is_tree and metric == "loss":
        ax.set_ylabel("training loss", color=COLOURS["training"])
        if "evaluation" in curves:
            panels["evaluation"] = _add_right_axis(ax)
    lines = [_draw_curve(panels[name], figures, n_steps, name) for name, figures in curves.items()]
    if isinstance(model, TreeCRF):
        lines += _mark_rounds(ax, model, n_steps, curves.get("evaluation", []))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3)
    use_whole_numbers(ax)
    ax.legend(handles=lines, frameon=False)
    return ax


def _check_curves(
    model: Estimator, n_steps: int, curves: dict[str, list[float]], metric: str
) -> None:
    kind = type(model).__name__
    if n_steps == 0:
        raise ValueError(
            f"this {kind} has no history to plot: it was trained for no round or iteration"
        )
    if not curves:
        raise ValueError(f"this {kind} has no {metric} to plot; fit it with eval_set=(X, y)")


def _add_right_axis(ax: Axes) -> Axes:
    right = ax.twinx()
    right.set_ylabel("evaluation loss a position", color=COLOURS["evaluation"])
    right.spines["top"].set_visible(False)
    return right


def _draw_curve(ax: Axes, figures: list[float], n_steps: int, name: str) -> Any:
    """One curve; figures that were not noted from the beginning are those of the last steps."""
    steps = np.arange(n_steps - len(figures), n_steps) + 1
    marker = "o" if len(figures) == 1 else None  # a line of one point cannot be seen
    style = "--" if name == "evaluation" else "-"
    return ax.plot(steps, figures, style, color=COLOURS[name], marker=marker, label=name)[0]


def _mark_rounds(ax: Axes, model: TreeCRF, n_steps: int, watched: list[float]) -> list[Any]:
    """Mark the best round, and where the objective begins."""
    marks: list[Any] = []
    n_warm = model.n_warm_rounds_
    if 0 < n_warm < model.n_rounds_:
        marks.append(ax.axvline(n_warm + 0.5, color=FAINT, ls=":", label="objective from here on"))
    best = model.best_round_
    if best is not None and n_steps - len(watched) < best <= n_steps:
        name, figure = f"best round: {best}", watched[best - 1 - n_steps]
        marks += ax.plot(best, figure, "o", color=COLOURS["evaluation"], label=name, zorder=3)
    return marks
