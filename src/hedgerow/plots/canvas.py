"""Canvas: axes to draw on, colours that everybody can tell apart, heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito's colours, which do not depend on telling red from green.
COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7"),
    *("#56B4E9", "#D55E00", "#F0E442", "#333333"),
)
GREY = "#BBBBBB"
MAX_NUMBERS = 150
"""Heat maps of up to so many cells have numbers in them."""
MAX_NAME = 32


def make_axes(ax: Any, width: float, height: float) -> Any:
    """The axes that were given, or new ones of a size in inches."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "hedgerow[plots]"') from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def shorten(name: Any) -> str:
    """A name as text that leaves room for others."""
    text = str(name)
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…"


def sign(number: str) -> str:
    """A number with a minus sign as wide as the plus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


def count_along(axis: Any) -> None:
    """Whole numbers only beside an axis of rounds or positions."""
    axis.get_major_locator().set_params(integer=True)


def draw_map(
    ax: Any,
    values: NDArray[np.float64],
    rows: Sequence[Any],
    columns: Sequence[Any],
    *,
    signed: bool,
    unit: str,
) -> None:
    """A heat map with names beside it: from blue over white to red if signed, else in one colour.

    Parameters
    ----------
    ax
        Where to draw.
    values : (R, C) float64
        NaN where there is nothing, which stays grey.
    rows, columns
        Their names.
    signed
        Whether values below 0 mean the opposite of those above.
    unit
        What the numbers are.
    """
    # Exactly one colour, where all values are 0.
    largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    colours, lowest = ("RdBu_r", -largest) if signed else ("Blues", 0.0)
    image = ax.imshow(values, cmap=colours, vmin=lowest, vmax=largest, aspect="auto")
    ax.set_facecolor("#DDDDDD")
    small = max(len(rows), len(columns)) > 12
    size = 7 if small else 9
    ax.set_xticks(range(len(columns)), [shorten(name) for name in columns], fontsize=size)
    ax.set_yticks(range(len(rows)), [shorten(name) for name in rows], fontsize=size)
    if max((len(shorten(name)) for name in columns), default=0) > 3:
        ax.tick_params(axis="x", rotation=90 if small else 45)
    if values.size <= MAX_NUMBERS:
        _write_numbers(ax, values, largest)
    ax.figure.colorbar(image, ax=ax, label=unit)


def _write_numbers(ax: Any, values: NDArray[np.float64], largest: float) -> None:
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            colour = "white" if abs(value) > 0.6 * largest else "black"
            ax.text(
                column,
                row,
                sign(f"{value:.2f}"),
                ha="center",
                va="center",
                color=colour,
                fontsize=7,
            )
