"""Notebook: pieces of HTML for Jupyter, for light and dark themes.

Text and lines have the colour of the surrounding page. All text is escaped here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

__all__ = [
    "STYLE",
    "Bar",
    "card",
    "curves",
    "enumerate_some",
    "facts",
    "format_value",
    "side_by_side",
    "table",
]

# Distinguishable on white and on black, and with all common kinds of colour blindness.
COLOURS = ("#2f7ed8", "#d9711c", "#1f9d7a", "#9a63d1", "#b0892b", "#d04f8a")
FOR, AGAINST = COLOURS[0], COLOURS[1]
# Maximum length of a text.
LONGEST = 60
# Maximum number of names that are listed.
MAX_NAMED = 12
# Size of a curve in pixels, and margins of the plot: left, right, top, bottom.
WIDTH, HEIGHT = 240, 116
EDGES = 44, 8, 8, 20

STYLE = """<style>
.hedgerow { font: 13px/1.45 system-ui, sans-serif; margin: 2px 0; max-width: 100%; }
.hedgerow .card { display: inline-block; vertical-align: top; padding: 8px 14px 10px;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 6px;
  max-width: 100%; box-sizing: border-box; overflow-x: auto; margin: 0 8px 8px 0; }
.hedgerow .title { font-weight: 600; font-size: 14px; margin-bottom: 4px; }
.hedgerow .note { opacity: .65; font-size: 12px; }
.hedgerow table { font: inherit; border-collapse: collapse; margin: 0;
  font-variant-numeric: tabular-nums; }
.hedgerow th, .hedgerow td { border: 0; padding: 1px 12px 1px 0; text-align: left;
  background: none; color: inherit; vertical-align: top; white-space: nowrap; }
.hedgerow td.wide { white-space: normal; max-width: 34em; }
.hedgerow th { font-weight: 600; }
.hedgerow .rows th { border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
.hedgerow .right { text-align: right; }
.hedgerow .facts th { font-weight: 400; opacity: .65; }
.hedgerow .sum td { font-weight: 600; }
.hedgerow .bar { display: block; width: 120px; height: 9px; margin-top: 5px; position: relative; }
.hedgerow .bar i { position: absolute; top: 0; height: 100%; border-radius: 1px; }
.hedgerow .bar b { position: absolute; top: -3px; height: 15px; left: 50%; width: 1px;
  background: currentColor; opacity: .35; }
.hedgerow figure { display: inline-block; margin: 6px 14px 0 0; }
.hedgerow figcaption { font-size: 12px; }
.hedgerow svg text { font-size: 10px; fill: currentColor; opacity: .7; }
.hedgerow .key { margin-right: 8px; white-space: nowrap; }
.hedgerow .key i { display: inline-block; width: 12px; height: 3px; margin-right: 4px;
  vertical-align: middle; border-radius: 1px; }
</style>"""


class Bar(NamedTuple):
    """A cell with a bar that begins in the middle; its length is a share of half the width.

    It goes to the right if the share is above 0, to the left if below.
    """

    share: float


def card(title: str, *parts: str, note: str = "") -> str:
    """A box with a heading."""
    small = f' <span class="note">{escape(note)}</span>' if note else ""
    return (
        f'{STYLE}<div class="hedgerow"><div class="card"><div class="title">{escape(title)}{small}'
        f"</div>{''.join(parts)}</div></div>"
    )


def facts(pairs: Mapping[str, str]) -> str:
    """A list of facts: names on the left, texts on the right."""
    rows = (
        f'<tr><th>{escape(name)}</th><td class="wide">{escape(text)}</td></tr>'
        for name, text in pairs.items()
    )
    return f'<table class="facts">{"".join(rows)}</table>'


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    note: str = "",
    right: Collection[str] = (),
    sums: Collection[int] = (),
) -> str:
    """Rows of values.

    Numbers are right-aligned, and so are the columns named by ``right``; ``sums`` are the numbers
    of the rows that are sums of those above.
    """
    lines = list(rows)
    are_right = [
        name in right or any(isinstance(line[place], int | float) for line in lines)
        for place, name in enumerate(header)
    ]
    head = "".join(
        f"<th{_class(right)}>{escape(name)}</th>"
        for name, right in zip(header, are_right, strict=True)
    )
    body = "".join(
        ('<tr class="sum">' if number in sums else "<tr>")
        + "".join(_cell(value, right) for value, right in zip(line, are_right, strict=True))
        + "</tr>"
        for number, line in enumerate(lines)
    )
    below = f'<div class="note">{escape(note)}</div>' if note else ""
    return f'<table class="rows"><tr>{head}</tr>{body}</table>{below}'


def curves(
    history: Mapping[str, Sequence[float]], step_name: str = "step", best: int | None = None
) -> str:
    """Small learning curves: those of one metric share a figure if of similar magnitude.

    A list that is shorter than the others has the values of the last steps. ``best`` is the number
    of a step to mark.
    """
    n_steps = max(map(len, history.values()), default=0)
    if n_steps == 0:
        return ""
    panels = _arrange(history)
    return "".join(_draw(each, history, n_steps, step_name, best) for each in panels)


def format_value(value: Any) -> str:
    """A value as a short text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def enumerate_some(values: Sequence[Any]) -> str:
    """The first values, and the number of others."""
    shown = ", ".join(map(format_value, values[:MAX_NAMED]))
    return shown if len(values) <= MAX_NAMED else f"{shown}, … {len(values) - MAX_NAMED:,} more"


def side_by_side(*parts: str) -> str:
    """Pieces of HTML in a row, or below each other on a narrow page."""
    cells = "".join(f"<div>{part}</div>" for part in parts)
    return f'<div style="display:flex;flex-wrap:wrap;align-items:flex-start">{cells}</div>'


def _class(right: bool) -> str:
    return ' class="right"' if right else ""


def _cell(value: Any, right: bool) -> str:
    if not isinstance(value, Bar):
        return f"<td{_class(right)}>{escape(format_value(value))}</td>"
    size = 50 * min(1.0, abs(value.share))
    begin, colour = (50.0, FOR) if value.share >= 0 else (50 - size, AGAINST)
    inner = f'<i style="left:{begin:.1f}%;width:{size:.1f}%;background:{colour}"></i>'
    return f'<td><span class="bar">{inner}<b></b></span></td>'


def _arrange(history: Mapping[str, Sequence[float]]) -> list[dict[str, str]]:
    """Colours of curves by name, figure by figure: one for each metric and range of values.

    Training metrics have the first colour, each eval set another one.
    """
    metrics = ["loss", "accuracy", *(name for name in history if "_" not in name)]
    colours: dict[str, str] = {"": COLOURS[0]}
    panels: dict[tuple[str, float], dict[str, str]] = {}
    for name, figures in history.items():
        low, high = _range([figures])
        if low <= high:
            metric = next((m for m in metrics if name == m or name.endswith(f"_{m}")), name)
            colour = colours.setdefault(
                name.removesuffix(metric), COLOURS[len(colours) % len(COLOURS)]
            )
            size = max(abs(low), abs(high))
            near = (
                key for key in panels if key[0] == metric and key[1] / 10 <= size <= key[1] * 10
            )
            panels.setdefault(next(near, (metric, size)), {})[name] = colour
    return list(panels.values())


def _range(curves: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Minimum and maximum of the finite numbers; (inf, -inf) if there are none."""
    known = [figure for figures in curves for figure in figures if math.isfinite(figure)]
    return min(known, default=math.inf), max(known, default=-math.inf)


def _draw(
    colours: Mapping[str, str],
    history: Mapping[str, Sequence[float]],
    n_steps: int,
    step_name: str,
    best: int | None,
) -> str:
    """One figure: an SVG with a legend below it."""
    low, high = _range([history[name] for name in colours])
    span, (left, right, top, bottom) = (high - low) or 1.0, EDGES

    def x(step: int) -> float:
        share = (step - 1) / (n_steps - 1) if n_steps > 1 else 0.5
        return left + share * (WIDTH - left - right)

    def y(figure: float) -> float:
        return top + (high - figure) / span * (HEIGHT - top - bottom)

    lines = "".join(_line(history[name], n_steps, x, y, colour) for name, colour in colours.items())
    mark = ""
    if best is not None and 1 <= best <= n_steps:
        mark = (
            f'<path d="M{x(best):.1f} {top}V{HEIGHT - bottom}" stroke="currentColor" '
            'stroke-dasharray="2 3" opacity=".6" fill="none"/>'
        )
    ends = "".join(
        f'<text x="{place:.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{text}</text>'
        for place, anchor, text in (
            (left, "start", f"{escape(step_name)} 1"),
            (WIDTH - right, "end", f"{n_steps}"),
        )
    )
    scale = "".join(
        f'<text x="{left - 4}" y="{y(figure) + 3.5:.1f}" text-anchor="end">{figure:.3g}</text>'
        for figure in dict.fromkeys((high, low))
    )
    axes = (
        f'<path d="M{left} {top}V{HEIGHT - bottom}H{WIDTH - right}" stroke="currentColor" '
        'opacity=".35" fill="none"/>'
    )
    keys = "".join(
        f'<span class="key"><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in colours.items()
    )
    svg = (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(", ".join(colours))} by {escape(step_name)}">'
        f"{axes}{scale}{ends}{mark}{lines}</svg>"
    )
    return f"<figure>{svg}<figcaption>{keys}</figcaption></figure>"


def _line(figures: Sequence[float], n_steps: int, x: Any, y: Any, colour: str) -> str:
    """A curve, thinned out to screen resolution, with gaps where it is not finite."""
    first = n_steps - len(figures) + 1
    stride = max(1, len(figures) // WIDTH)
    chosen = sorted({*range(0, len(figures), stride), len(figures) - 1} - {-1})
    parts, is_open = [], False
    for place in chosen:
        is_finite = math.isfinite(figures[place])
        if is_finite:
            command = "L" if is_open else "M"
            parts.append(f"{command}{x(first + place):.1f} {y(figures[place]):.1f}")
        is_open = is_finite
    dot = ""
    if len(chosen) == 1 and parts:
        dot = f'<circle cx="{x(first):.1f}" cy="{y(figures[0]):.1f}" r="2.5" fill="{colour}"/>'
    path = "".join(parts)
    return f'<path d="{path}" stroke="{colour}" stroke-width="1.6" fill="none"/>{dot}'
