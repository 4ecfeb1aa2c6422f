"""The canvas: axes to draw on, colours, and text that fits.

Blue is evidence for a label, orange evidence against it, as on the report page; the two can be
distinguished with all common kinds of colour blindness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.estimator import Estimator
from hedgerow.fitted import check_fitted
from hedgerow.linear_crf import LinearCRF
from hedgerow.shown import with_plain_tables
from hedgerow.tree_crf import TreeCRF

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

BLUE, ORANGE = "#1f65b0", "#c2570c"
INK, FAINT, LINE, SOFT = "#20262c", "#5d6770", "#c9cdd1", "#f4f5f6"
# Maximum number of characters of a name.
LONGEST_NAME = 28
# Maximum size of a new figure in inches, in either direction.
LARGEST = 60.0
POINTS = 72  # in an inch


def check_model(crf: Any) -> Estimator:
    """Return `crf` with plain tables if it is a fitted model; otherwise raise an error."""
    if not isinstance(crf, TreeCRF | LinearCRF):
        raise TypeError(
            f"crf is of type {type(crf).__name__}; expected a fitted TreeCRF or LinearCRF"
        )
    check_fitted(crf)
    return with_plain_tables(crf)


def open_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            'hedgerow.plots needs matplotlib; install it with pip install "hedgerow[plots]"'
        ) from error
    if ax is not None:
        return ax
    size = min(width, LARGEST), min(height, LARGEST)
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def measure_axes(ax: Axes) -> tuple[float, float]:
    """Width and height in points, after the layout of the figure."""
    figure = ax.figure.canvas.figure
    figure.draw_without_rendering()
    box = ax.get_window_extent()
    return box.width * POINTS / figure.dpi, box.height * POINTS / figure.dpi


def measure_text(text: str, size: float) -> float:
    """Width in points of the text that `show` returns."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    plain = text.replace(r"\$", "$")
    font = FontProperties(size=size)
    return float(text_to_path.get_text_width_height_descent(plain, font, ismath=False)[0])


def show(name: object, longest: int = LONGEST_NAME) -> str:
    """A name for a plot: not too long, on one line, without formulas."""
    text = str(name).replace("\n", "\\n")
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return text.replace("$", r"\$")


def colours_around_zero() -> Colormap:
    """Orange below zero, blue above it; nothing is drawn for NaN."""
    return _shades("around zero", [ORANGE, SOFT, BLUE])


def colours_from_zero() -> Colormap:
    """The larger, the bluer; nothing is drawn for NaN."""
    return _shades("from zero", [SOFT, BLUE])


def _shades(name: str, colours: list[str]) -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, colours)


def use_whole_numbers(ax: Axes) -> None:
    """Use integers for the ticks of the x-axis."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def readable_on(colour: Any) -> str:
    """The colour of text, dark or white, that reads better on a colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part**2.2 for part in to_rgb(colour))
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.3 else "white"
