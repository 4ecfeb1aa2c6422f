"""Learning curves."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.estimator import Estimator
from hedgerow.parameters import check_choice
from hedgerow.plots.canvas import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    check_model,
    open_axes,
    use_whole_numbers,
)
from hedgerow.shown import best_step
from hedgerow.training.eval_metrics import ALWAYS
from hedgerow.training.eval_sets import eval_figures
from hedgerow.tree_crf import TreeCRF

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (ORANGE, "#2f7d4f", "#7a4fb0", "#8a6d1f")  # of eval sets, one after the other


def learning_curve(crf: Any, ax: Axes | None = None, *, metric: str = "loss") -> Axes:
    """Plot the loss, or another metric, after each round or iteration of training.

    Each ``eval_set`` has a curve too, and the best step of the last one is marked. The training
    loss of a `LinearCRF` is a sum that includes penalties; losses of eval sets are means over
    positions, and have their own axis on the right. If the first rounds of a `TreeCRF` were warm-up
    rounds, which maximise the likelihood before the objective, a dotted line marks their end.

    Parameters
    ----------
    crf : TreeCRF or LinearCRF
        A fitted model.
    ax : matplotlib axes, optional
        Where to draw; a new figure if it is None.
    metric : str, default "loss"
        What to plot: "loss", "accuracy", or the name of one of the metrics in ``eval_metric``.
        The metrics in ``eval_metric`` are available for eval sets only, and so is the accuracy of a
        `LinearCRF`.

    Returns
    -------
    matplotlib axes
    """
    model = check_model(crf)
    metrics = [of_set for _, of_set in eval_figures(model.history_).values()]
    check_choice("metric", metric, tuple(dict.fromkeys((*ALWAYS, *metrics))))
    n_steps = len(model.history_.get("loss", ()))
    training, evaluations = model.history_.get(metric), _find_evaluations(model.history_, metric)
    if n_steps == 0 or not (training or evaluations):
        raise ValueError(_explain_nothing(model, n_steps, metric))
    ax = open_axes(ax, 6.4, 3.8)
    is_tree = isinstance(model, TreeCRF)
    ax.set_xlabel(model.step_name)
    ax.set_ylabel("loss per position" if metric == "loss" else metric)
    right, lines = ax, []
    if training:
        lines.append(_draw_curve(ax, training, n_steps, "training", BLUE, "-"))
    if not is_tree and metric == "loss":
        ax.set_ylabel("training loss", color=BLUE)
        if evaluations:
            right = _add_right_axis(ax, COLOURS[0] if len(evaluations) == 1 else INK)
    for (name, figures), colour in zip(evaluations.items(), cycle(COLOURS), strict=False):
        label = "evaluation" if name == "eval" else name
        lines.append(_draw_curve(right, figures, n_steps, label, colour, "--"))
    if evaluations:
        lines += _mark_best(right, model, n_steps, lines[-1])
    if isinstance(model, TreeCRF):
        lines += _mark_objective(ax, model)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3)
    use_whole_numbers(ax)
    ax.legend(handles=lines, frameon=False)
    return ax


def _find_evaluations(history: dict[str, list[float]], metric: str) -> dict[str, list[float]]:
    """History of the eval sets, by name."""
    return {
        name: history[key]
        for key, (name, of_set) in eval_figures(history).items()
        if of_set == metric and history[key]
    }


def _explain_nothing(model: Estimator, n_steps: int, metric: str) -> str:
    kind = type(model).__name__
    if n_steps == 0:
        return f"this {kind} has no history to plot: it was trained for 0 rounds or iterations"
    return f"this {kind} has no {metric} to plot; fit it with eval_set=(X, y)"


def _add_right_axis(ax: Axes, colour: str) -> Axes:
    right = ax.twinx()
    right.set_ylabel("evaluation loss per position", color=colour)
    right.spines["top"].set_visible(False)
    return right


def _draw_curve(
    ax: Axes, figures: list[float], n_steps: int, name: str, colour: str, style: str
) -> Any:
    """One curve; a history shorter than training belongs to the last steps."""
    steps = np.arange(n_steps - len(figures), n_steps) + 1
    marker = "o" if len(figures) == 1 else None  # a line of one point is invisible
    return ax.plot(steps, figures, style, color=colour, marker=marker, label=name)[0]


def _mark_objective(ax: Axes, model: TreeCRF) -> list[Any]:
    """Mark the end of the warm-up rounds, if there are any."""
    n_warm = model.n_warm_rounds_
    if not 0 < n_warm < model.n_rounds_:
        return []
    return [ax.axvline(n_warm + 0.5, color=FAINT, ls=":", label="end of the warm-up rounds")]


def _mark_best(ax: Axes, model: Estimator, n_steps: int, line: Any) -> list[Any]:
    """Mark the best step on the curve of the last eval set."""
    best, figures = best_step(model), line.get_ydata()
    if best is None or not n_steps - len(figures) < best <= n_steps:
        return []
    name, figure = f"best {model.step_name}: {best}", figures[best - 1 - n_steps]
    return ax.plot(best, figure, "o", color=line.get_color(), label=name, zorder=3)
