"""A sequence: the marginals of its labels as stacked bands, over strips of labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.decoding import Decode, check_decode
from hedgerow.fitted import compare_codes, read_one
from hedgerow.label_colours import COLOURS, HATCHES
from hedgerow.plots.canvas import (
    INK,
    LINE,
    check_model,
    measure_axes,
    measure_text,
    open_axes,
    readable_on,
    show,
    use_whole_numbers,
)
from hedgerow.raw_data import RawData
from hedgerow.threads import count_threads

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With many labels, a label has its own band if its marginal reaches this at some position.
ENOUGH = 0.1
# Height of a strip and of the gap above it, relative to the height of the bands.
STRIP, FREE = 0.08, 0.03
FONT = 9.0


def marginals(
    crf: Any,
    x: Any,
    y: Any = None,
    ax: Axes | None = None,
    *,
    decode: Decode | None = None,
    parents: Any = None,
    base_scores: Any = None,
    X_base: Any = None,
) -> Axes:
    """Plot the probability of each label at each position of a sequence.

    The height of a band is the probability of its label. Below are the predicted labels and, with
    `y`, the true ones; crosses mark errors. Names are written where they fit. If there are many
    labels, the least probable ones share a grey band. True labels that did not occur in training
    are grey, count as errors, and give a warning.

    Parameters
    ----------
    crf : TreeCRF or LinearCRF
        A fitted model.
    x
        One sequence, in the same format as in `fit`.
    y : optional
        Its true labels, None where they are not known.
    ax : matplotlib axes, optional
        Where to draw; a new figure if it is None.
    decode : {"viterbi", "marginal"} or None
        The decoder, see `hedgerow.TreeCRF.predict`.
    parents : (T,), optional
        Parents of the positions, for a model that was fitted with parents. Positions are drawn in
        the order of the sequence.
    base_scores : (T, K), optional
        Base scores of the sequence, if the model was fitted with `base_scores`.
    X_base : optional
        Features of the base model for the sequence, if it does not use the same features.

    Returns
    -------
    matplotlib axes
    """
    model = check_model(crf)
    check_decode(decode)
    raw = RawData(x, parents=parents, base_scores=base_scores, X_base=X_base)
    inputs, n_threads = read_one(model, raw), count_threads(model.n_jobs)
    truth = None if y is None else compare_codes(model, [y], inputs.sequences)
    probs = model.model_.marginals(inputs, n_threads=n_threads)
    predicted = model.model_.predict(inputs, decode, n_threads=n_threads)
    strips = {"predicted": predicted} | ({} if truth is None else {"true": truth.codes})
    styles = _choose_styles(probs, list(strips.values()), [show(c) for c in model.classes_])
    strange = [] if truth is None else truth.strange.tolist()
    of_strips = styles | {
        code: Style(show(label), LINE, "")
        for code, label in enumerate(strange, start=len(model.classes_))
    }
    n_positions = len(probs)
    ax = open_axes(ax, float(np.clip(2 + 0.42 * n_positions, 6, 15)), 3.6)
    _draw_bands(ax, probs, styles)
    bottoms = {name: -(i + 1) * (STRIP + FREE) for i, name in enumerate(strips)}
    for name, codes in strips.items():
        _draw_strip(ax, bottoms[name], codes, of_strips)
    lowest = min(bottoms.values()) - FREE
    if truth is not None:
        wrong = np.flatnonzero(truth.given & (truth.codes != predicted))
        ax.plot(wrong, np.full(len(wrong), lowest), "x", color=INK, markersize=4, mew=1)
        lowest -= FREE
    _name_axes(ax, n_positions, lowest, {name: b + STRIP / 2 for name, b in bottoms.items()})
    width, height = measure_axes(ax)
    room = width / n_positions, height / (1 - lowest)
    _write_names_of_bands(ax, room, probs, styles)
    for name, codes in strips.items():
        _write_names_of_strip(ax, room, bottoms[name], codes, of_strips)
    return ax


@dataclass(frozen=True)
class Style:
    """How a label is drawn."""

    name: str
    colour: str
    hatch: str

    @property
    def look(self) -> dict[str, Any]:
        """Arguments for matplotlib."""
        from matplotlib.colors import to_rgb

        # The lines of a hatch are close to the colour, so that names remain readable.
        shares = zip(to_rgb(self.colour), to_rgb(readable_on(self.colour)), strict=True)
        edge = tuple(0.55 * own + 0.45 * other for own, other in shares)
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": edge, "linewidth": 0}


def _choose_styles(
    probs: NDArray[np.float64], strips: list[NDArray[np.int32]], names: list[str]
) -> dict[int, Style]:
    """Styles, by code, of the labels that have their own band."""
    most = probs.max(axis=0)
    if len(names) > len(COLOURS):
        given = np.unique(np.concatenate(strips))
        # Predicted and true labels come first.
        most[given[(given >= 0) & (given < len(names))]] += 1
        most[most < ENOUGH] = 0
    limit = len(COLOURS) * len(HATCHES)
    kept = sorted(c for c in np.argsort(-most, kind="stable")[:limit].tolist() if most[c] > 0)
    # A label has the same style in every plot, unless there are more labels than styles.
    numbers = kept if len(names) <= limit else range(len(kept))
    return {
        code: Style(names[code], COLOURS[number % len(COLOURS)], HATCHES[number // len(COLOURS)])
        for number, code in zip(numbers, kept, strict=True)
    }


def _stack(probs: NDArray[np.float64], styles: dict[int, Style]) -> NDArray[np.float64]:
    """Lower and upper edges of the bands, (B + 1, T)."""
    tops = np.cumsum(probs[:, list(styles)], axis=1)
    edges: NDArray[np.float64] = np.vstack([np.zeros(len(probs)), tops.T])
    return edges


def _draw_bands(ax: Axes, probs: NDArray[np.float64], styles: dict[int, Style]) -> None:
    from matplotlib.patches import Patch

    edges = _stack(probs, styles)
    places = np.arange(len(probs) + 1) - 0.5
    steps = np.column_stack([edges, edges[:, -1]])
    looks = [style.look for style in styles.values()]
    names = [style.name for style in styles.values()]
    if len(styles) < probs.shape[1]:
        steps = np.vstack([steps, np.ones(len(places))])
        looks.append({"facecolor": LINE, "linewidth": 0})
        names.append("others")
    for (low, high), look in zip(pairwise(steps), looks, strict=True):
        ax.fill_between(places, low, high, step="post", **look)
    legend = ax.legend(
        handles=[Patch(**look) for look in looks[::-1]],
        labels=["label"] * len(looks),
        loc="upper left",
        bbox_to_anchor=(1, 1.02),
        frameon=False,
        fontsize=FONT,
        ncols=-(-len(looks) // 16),
        handlelength=1.4,
        borderaxespad=0.3,
    )
    # Set afterwards: matplotlib leaves out names that begin with an underscore.
    for text, name in zip(legend.get_texts(), names[::-1], strict=True):
        text.set_text(name)


def _runs(codes: NDArray[np.int32]) -> Iterator[tuple[int, int, int]]:
    """Start, end and label of every run of one label; unknown labels are left out."""
    bounds = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
    for begin, end in pairwise(bounds):
        if codes[begin] >= 0:
            yield begin, end, int(codes[begin])


def _draw_strip(
    ax: Axes, bottom: float, codes: NDArray[np.int32], styles: dict[int, Style]
) -> None:
    bars: dict[int, list[tuple[float, int]]] = {}
    for begin, end, code in _runs(codes):
        bars.setdefault(code, []).append((begin - 0.5, end - begin))
    for code, spans in bars.items():
        look = styles[code].look if code in styles else {"facecolor": LINE}
        ax.broken_barh(spans, (bottom, STRIP), **look)


def _name_axes(ax: Axes, n_positions: int, lowest: float, strips: dict[str, float]) -> None:
    ax.set(xlim=(-0.5, n_positions - 0.5), ylim=(lowest, 1), xlabel="position")
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1, *strips.values()])
    ax.set_yticklabels(["0", "0.25", "0.5", "0.75", "1", *strips])
    ax.set_ylabel("probability")
    use_whole_numbers(ax)
    ax.spines[:].set_visible(False)


def _write_names_of_bands(
    ax: Axes, room: tuple[float, float], probs: NDArray[np.float64], styles: dict[int, Style]
) -> None:
    edges = _stack(probs, styles)
    for band, style in enumerate(styles.values()):
        if measure_text(style.name, FONT) + 3 <= room[0]:
            for place in range(len(probs)):
                box = place, place + 1, edges[band, place], edges[band + 1, place]
                _write_name(ax, room, style, *box)


def _write_names_of_strip(
    ax: Axes,
    room: tuple[float, float],
    bottom: float,
    codes: NDArray[np.int32],
    styles: dict[int, Style],
) -> None:
    for begin, end, code in _runs(codes):
        if code in styles:
            _write_name(ax, room, styles[code], begin, end, bottom, bottom + STRIP)


def _write_name(
    ax: Axes,
    room: tuple[float, float],
    style: Style,
    begin: int,
    end: int,
    low: float,
    high: float,
) -> None:
    """Write a name if it fits; ``room``: size in points of a position and of probability 1."""
    from matplotlib.patheffects import withStroke

    if (high - low) * room[1] < FONT or (end - begin) * room[0] < measure_text(
        style.name, FONT
    ) + 3:
        return
    ax.text(
        (begin + end - 1) / 2,
        (low + high) / 2,
        style.name,
        ha="center",
        va="center_baseline",
        fontsize=FONT,
        color=readable_on(style.colour),
        path_effects=[withStroke(linewidth=3, foreground=style.colour)],
    )
