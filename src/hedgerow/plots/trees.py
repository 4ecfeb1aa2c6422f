"""Trees: a tree of a model, drawn."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.labels.tables import Table
from hedgerow.model import SequenceModel
from hedgerow.plots.canvas import COLOURS, make_axes, shorten, sign
from hedgerow.tree_crf import TreeCRF


def tree(crf: SequenceModel, round: int, label: Any, *, ax: Any = None) -> Any:
    """Draw the tree that a round has grown for a label.

    From a question the way to the left is yes, to the right no; missing values take the branch
    that says so. Leaves show what they add to the label's score.

    Parameters
    ----------
    crf
        A fitted `TreeCRF`.
    round
        Number of the round, from 1.
    label
        A label.
    ax
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not isinstance(crf, TreeCRF):
        raise TypeError(f"a {type(crf).__name__} has no trees to draw; expected a TreeCRF")
    table = crf.trees(round=round, label=label)
    spots = _lay_out(table)
    depth = 1 + max(spot.depth for spot in spots)
    n_leaves = sum(spot.is_leaf for spot in spots)
    ax = make_axes(ax, float(np.clip(1.45 * n_leaves, 4.0, 24.0)), 1.0 + 1.15 * depth)
    largest = float(np.max(np.abs(table["value"]))) or 1.0
    for node, spot in enumerate(spots):
        if not spot.is_leaf:
            _draw_branches(ax, table, node, spots)
    for node, spot in enumerate(spots):
        _draw_node(ax, table, node, spot, largest)
    ax.set(xlim=(-0.6, n_leaves - 0.4), ylim=(0.5 - depth, 0.5))
    ax.set_title(f"round {round}, label {shorten(label)}")
    ax.set_axis_off()
    return ax


@dataclass(frozen=True)
class Spot:
    """Where a node is drawn: leaves side by side, splits above the middle of what they part."""

    x: float
    depth: int
    is_leaf: bool


def _lay_out(table: Table) -> list[Spot]:
    """Children come after their parent in the table, so two passes will do."""
    lefts, rights = table["left"].tolist(), table["right"].tolist()
    depths = [0] * len(lefts)
    for node, (left, right) in enumerate(zip(lefts, rights, strict=True)):
        if left >= 0:
            depths[left] = depths[right] = depths[node] + 1
    xs = _leaf_places(lefts, rights)
    for node in reversed(range(len(lefts))):
        if lefts[node] >= 0:
            xs[node] = (xs[lefts[node]] + xs[rights[node]]) / 2
    return [Spot(x, depth, left < 0) for x, depth, left in zip(xs, depths, lefts, strict=True)]


def _leaf_places(lefts: list[int], rights: list[int]) -> list[float]:
    """Leaves numbered from left to right; 0 for splits."""
    xs, n_seen, waiting = [0.0] * len(lefts), 0, [0]
    while waiting:
        node = waiting.pop()
        if lefts[node] < 0:
            xs[node], n_seen = float(n_seen), n_seen + 1
        else:
            waiting += [rights[node], lefts[node]]
    return xs


def _draw_branches(ax: Any, table: Table, node: int, spots: list[Spot]) -> None:
    here = spots[node]
    missing = table["missing"][node]
    for side, answer in (("left", "yes"), ("right", "no")):
        there = spots[int(table[side][node])]
        ax.plot([here.x, there.x], [-here.depth, -there.depth], color="#888888", zorder=1)
        text = f"{answer}, missing" if missing == side else answer
        middle = (here.x + there.x) / 2, -(here.depth + there.depth) / 2
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        ax.text(*middle, text, ha="center", va="center", fontsize=7, color="#555555", bbox=box)


def _draw_node(ax: Any, table: Table, node: int, spot: Spot, largest: float) -> None:
    """A question in a box, or a leaf in the colour of its sign, the stronger the more it adds."""
    if spot.is_leaf:
        value = float(table["value"][node])
        text = sign(f"{value:+.3f}")
        face = _tint(COLOURS[5] if value > 0 else COLOURS[0], 0.15 + 0.5 * abs(value) / largest)
    else:
        text, face = _wrap(str(table["question"][node])), (1.0, 1.0, 1.0)
    box = {"boxstyle": "round", "facecolor": face, "edgecolor": "#555555"}
    ax.text(spot.x, -spot.depth, text, ha="center", va="center", fontsize=8, zorder=3, bbox=box)


def _tint(colour: str, strength: float) -> tuple[float, ...]:
    """A colour mixed with white; strength 1 is the colour itself."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(1 - strength * (1 - channel) for channel in channels)


def _wrap(question: str) -> str:
    """A question in up to three lines."""
    return textwrap.fill(question, 22, max_lines=3, placeholder=" …")
