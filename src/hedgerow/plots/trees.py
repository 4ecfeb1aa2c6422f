"""Trees, drawn from left to right, with the "yes" branch above the "no" branch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.parameters import check_number
from hedgerow.plots.canvas import (
    FAINT,
    INK,
    LINE,
    POINTS,
    SOFT,
    check_model,
    colours_around_zero,
    measure_axes,
    measure_text,
    open_axes,
    readable_on,
    show,
)
from hedgerow.tables import Table
from hedgerow.tree_crf import TreeCRF

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In points: height of a row and of a box, padding of the text in a box, gap between boxes.
ROW, HIGH, PAD, GAP = 21.0, 16.0, 5.0, 58.0
FONT, SMALL = 8.0, 6.5
# Maximum number of characters of a split.
LONGEST_QUESTION = 40
# Inches for the title and the margins of a new figure.
EDGES = 0.6


def tree(
    crf: Any, round: int, label: Any, ax: Axes | None = None, *, max_depth: int | None = None
) -> Axes:
    """Draw the tree of a label in a round of boosting.

    Boxes are splits; the upper branch is "yes". "missing" marks the branch of missing values,
    "outside" that of positions beyond the ends of the sequence, unless "missing" marks that branch
    already. Leaves show what the tree adds to the score of the label, blue if positive and orange
    if negative. A new figure is as large as the tree; on given axes the text shrinks until the tree
    fits.

    Parameters
    ----------
    crf : TreeCRF
        A fitted model.
    round : int
        Number of the round, from 1.
    label
        A label, one of ``classes_``.
    ax : matplotlib axes, optional
        Where to draw; a new figure if it is None.
    max_depth : int, optional
        Maximum depth that is drawn; the number of leaves below is shown. None: no limit.

    Returns
    -------
    matplotlib axes
    """
    model = check_model(crf)
    if not isinstance(model, TreeCRF):
        raise TypeError(f"a {type(model).__name__} has no trees to draw; expected a TreeCRF")
    check_number("round", round, minimum=1, integer=True)
    model.model_.labels.read_codes([label], "label")
    check_number("max_depth", max_depth, minimum=0, integer=True, optional=True)
    table = model.trees(round=round, label=label)
    boxes, size = _lay_out(table, max_depth)
    ax = open_axes(ax, size[0] / POINTS + EDGES, size[1] / POINTS + EDGES)
    ax.set_title(f"Round {round}, label {show(label)}", fontsize=FONT + 2)
    ax.axis("off")
    width, height = measure_axes(ax)
    scale = min(1.0, width / size[0], height / size[1])
    # A unit of the axes is a point at full text size; the tree is centred.
    left, top = (size[0] - width / scale) / 2, (size[1] - height / scale) / 2
    ax.set(xlim=(left, left + width / scale), ylim=(top + height / scale, top))
    _draw_branches(ax, boxes, table, scale)
    _draw_boxes(ax, boxes, table, scale)
    return ax


@dataclass(frozen=True)
class Box:
    """A node as it is drawn: left edge, vertical centre, width and text."""

    node: int
    x: float
    y: float
    width: float
    text: str
    is_open: bool  # whether its children are drawn


def _lay_out(table: Table, max_depth: int | None) -> tuple[dict[int, Box], tuple[float, float]]:
    """Boxes by node, and the total width and height in points."""
    deepest = len(table["node"]) if max_depth is None else int(max_depth)
    depths, rows = _place_nodes(table, deepest)
    is_open = {node: table["left"][node] >= 0 and depths[node] < deepest for node in depths}
    n_leaves = _count_leaves(table)
    texts = {node: _describe(table, node, is_open[node], n_leaves) for node in depths}
    widths = {node: measure_text(text, FONT) + 2 * PAD for node, text in texts.items()}
    columns = np.zeros(max(depths.values()) + 1)
    for node, depth in depths.items():
        columns[depth] = max(columns[depth], widths[node])
    lefts = np.concatenate([[0], np.cumsum(columns + GAP)])
    boxes = {
        node: Box(node, lefts[depth], rows[node] * ROW + ROW / 2, widths[node], texts[node], open_)
        for (node, depth), open_ in zip(depths.items(), is_open.values(), strict=True)
    }
    return boxes, (float(lefts[-1]) - GAP, (max(rows.values()) + 1) * ROW)


def _place_nodes(table: Table, deepest: int) -> tuple[dict[int, int], dict[int, float]]:
    """Depth and row of the nodes that are drawn; splits are between their children."""
    depths, rows = {0: 0}, dict[int, float]()
    waiting, seen, n_rows = [0], [], 0
    while waiting:
        node = waiting.pop()
        seen.append(node)
        yes, no = int(table["left"][node]), int(table["right"][node])
        if yes < 0 or depths[node] == deepest:
            rows[node] = n_rows
            n_rows += 1
        else:
            depths[yes] = depths[no] = depths[node] + 1
            waiting += [no, yes]
    for node in reversed(seen):
        if node not in rows:
            rows[node] = (rows[int(table["left"][node])] + rows[int(table["right"][node])]) / 2
    return depths, rows


def _count_leaves(table: Table) -> NDArray[np.int64]:
    """Number of leaves at or below each node; children come after their parents."""
    n_leaves = (table["left"] < 0).astype(np.int64)
    for node in reversed(range(len(n_leaves))):
        if table["left"][node] >= 0:
            n_leaves[node] = n_leaves[table["left"][node]] + n_leaves[table["right"][node]]
    return n_leaves


def _describe(table: Table, node: int, is_open: bool, n_leaves: NDArray[np.int64]) -> str:
    if is_open:
        return show(table["question"][node], LONGEST_QUESTION)
    if n_leaves[node] > 1:
        return f"… {n_leaves[node]} leaves"
    return f"{table['value'][node]:+.4f}".replace("-", "\N{MINUS SIGN}")


def _draw_branches(ax: Axes, boxes: dict[int, Box], table: Table, scale: float) -> None:
    from matplotlib.collections import LineCollection

    lines = []
    for box in boxes.values():
        if not box.is_open:
            continue
        for side, answer in (("left", "yes"), ("right", "no")):
            child = boxes[int(table[side][box.node])]
            bend = child.x - GAP + 7
            lines.append(
                [(box.x + box.width, box.y), (bend, box.y), (bend, child.y), (child.x, child.y)]
            )
            text = ", ".join([answer, *_others_that_go(table, box.node, side)])
            ax.text(bend + 3, child.y, text, fontsize=SMALL * scale, color=FAINT, va="bottom")
    ax.add_collection(LineCollection(lines, colors=LINE, linewidths=1.2 * scale), autolim=False)


def _others_that_go(table: Table, node: int, side: str) -> list[str]:
    """What else goes to a side of a split, besides known values."""
    missing, outside = table["missing"][node], table["outside"][node]
    if missing in (side, "both"):
        return ["missing"]
    return ["outside"] if outside == side and _may_be_outside(table, node) else []


def _may_be_outside(table: Table, node: int) -> bool:
    """Whether a split is on a position other than the current one."""
    is_ancestor = "ancestor" in table and table["ancestor"][node] > 0
    return bool(is_ancestor or table["offset"][node] != 0)


def _draw_boxes(ax: Axes, boxes: dict[int, Box], table: Table, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    shades = colours_around_zero()
    largest = float(np.abs(table["value"][table["left"] < 0]).max()) or 1.0
    for box in boxes.values():
        is_leaf = table["left"][box.node] < 0
        shade = shades(0.5 + 0.5 * table["value"][box.node] / largest) if is_leaf else "white"
        if not is_leaf and not box.is_open:
            shade = SOFT
        ax.add_patch(
            FancyBboxPatch(
                (box.x, box.y - HIGH / 2),
                box.width,
                HIGH,
                boxstyle=f"round,pad=0,rounding_size={HIGH / 2 if is_leaf else 3}",
                facecolor=shade,
                edgecolor=LINE if is_leaf else FAINT,
                linewidth=0.8 * scale,
                linestyle="-" if is_leaf or box.is_open else ":",
            )
        )
        ax.text(
            box.x + box.width / 2,
            box.y,
            box.text,
            fontsize=FONT * scale,
            ha="center",
            va="center_baseline",
            color=readable_on(shade[:3]) if is_leaf else INK,
        )
