"""Heat maps: numbers by row and column, as colours and, if they fit, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.plots.canvas import (
    FAINT,
    LINE,
    POINTS,
    SOFT,
    colours_around_zero,
    colours_from_zero,
    measure_axes,
    measure_text,
    open_axes,
    readable_on,
    show,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

FONT, READABLE, SMALLEST = 9.0, 6.0, 5.0
# Maximum number of columns with numbers in a new figure; size of a cell with and without numbers.
MAX_NUMBERS = 12
WIDE, NARROW, HIGH = 0.5, 0.26, 0.26


def draw_heat_map(
    ax: Axes | None,
    matrix: NDArray[np.float64],
    rows: list[Any],
    columns: list[Any],
    *,
    square: bool,
    signed: bool,
    unit: str,
) -> Axes:
    """Draw a matrix, hatched where it is NaN.

    If ``signed``, zero has the middle colour, otherwise the lowest one; ``unit`` is the label of
    the colour bar.
    """
    row_names, column_names = [show(name) for name in rows], [show(name) for name in columns]
    ax = _open(ax, row_names, column_names, square)
    most = float(np.nanmax(np.abs(matrix), initial=0.0)) or 1.0
    image = ax.imshow(
        matrix,
        cmap=colours_around_zero() if signed else colours_from_zero(),
        vmin=-most if signed else 0,
        vmax=most,
        aspect="equal" if square else "auto",
        interpolation="nearest",
    )
    ax.patch.set(facecolor=SOFT, edgecolor=LINE, hatch="////")
    bar: Any = ax.figure.colorbar(image, ax=ax, label=unit, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    _set_names(ax, row_names, column_names)
    width, height = measure_axes(ax)
    cell = width / len(columns), height / len(rows)
    fit_names(ax.yaxis, cell[1])
    _fit_columns(ax, cell[0], column_names)
    _separate(ax, cell, matrix.shape)
    _write_numbers(ax, image, cell, matrix, signed)
    return ax


def _open(ax: Axes | None, rows: list[str], columns: list[str], square: bool) -> Axes:
    cell = WIDE if len(columns) <= MAX_NUMBERS else NARROW
    high = cell if square else HIGH
    beside = 1.6 + max(len(name) for name in rows) * FONT * 0.55 / POINTS
    above = 0.6 + max(len(name) for name in columns) * FONT * 0.55 / POINTS
    return open_axes(ax, max(3.2, beside + cell * len(columns)), max(2.2, above + high * len(rows)))


def _set_names(ax: Axes, rows: list[str], columns: list[str]) -> None:
    ax.set_yticks(range(len(rows)), rows, fontsize=FONT)
    ax.set_xticks(range(len(columns)), columns, fontsize=FONT)


def fit_names(axis: Axis, room: float) -> None:
    """Make the names of rows smaller, or leave some out, until they do not overlap.

    ``room`` is the height of a row in points.
    """
    size = min(FONT, max(SMALLEST, 0.85 * room))
    step = int(np.ceil(size / (0.95 * room)))
    for place, name in enumerate(axis.get_ticklabels()):
        name.set_fontsize(size)
        name.set_visible(place % step == 0)


def _fit_columns(ax: Axes, room: float, names: list[str]) -> None:
    """Names of columns: horizontal if they fit, perhaps a little smaller, otherwise vertical."""
    size = FONT * min(1.0, 0.9 * room / max(measure_text(name, FONT) for name in names))
    if size >= READABLE:
        ax.tick_params(axis="x", labelsize=size)
    else:
        ax.tick_params(axis="x", rotation=90)
        fit_names(ax.xaxis, room)


def _separate(ax: Axes, cell: tuple[float, float], shape: tuple[int, ...]) -> None:
    """Draw thin lines between the cells, unless the cells are tiny."""
    if min(cell) < 6:
        return
    n_rows, n_columns = shape
    style: dict[str, Any] = {"colors": "white", "linewidths": 0.8}
    ax.hlines(np.arange(1, n_rows) - 0.5, -0.5, n_columns - 0.5, **style)
    ax.vlines(np.arange(1, n_columns) - 0.5, -0.5, n_rows - 0.5, **style)


def _write_numbers(
    ax: Axes,
    image: Any,
    cell: tuple[float, float],
    matrix: NDArray[np.float64],
    signed: bool,
) -> None:
    """Write every number into its cell, if the cells are large enough."""
    pattern = _pattern(image.get_clim()[1]) if signed else "{:.1f}"
    texts = [[_number(value, pattern) for value in row] for row in matrix.tolist()]
    size = min(8.0, 0.6 * cell[1])
    longest = max((text for row in texts for text in row), key=len)
    if size < SMALLEST or measure_text(longest, size) > 0.9 * cell[0]:
        return
    for i, row in enumerate(texts):
        for j, text in enumerate(row):
            colour = readable_on(image.to_rgba(matrix[i, j])[:3]) if text else FAINT
            ax.text(j, i, text, ha="center", va="center", fontsize=size, color=colour)


def _pattern(most: float) -> str:
    """Format of signed numbers: two to six decimals, at least two digits of the largest."""
    digits = int(np.clip(1 - np.floor(np.log10(most)), 2, 6))
    return f"{{:+.{digits}f}}"


def _number(value: float, pattern: str) -> str:
    return "" if np.isnan(value) else pattern.format(value).replace("-", "\N{MINUS SIGN}")
