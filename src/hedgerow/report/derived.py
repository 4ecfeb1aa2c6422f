"""Derived columns: windows of attributes repeat the texts of neighbouring positions.

``w[-1]`` is ``w[0]`` of the position before, and ``w[-1,0]`` joins the two. A page that refers to
the other columns instead of repeating them is many times smaller.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.report.features import TextColumn

# How far to look for the source of a text, and at how many positions.
FARTHEST = 4
SAMPLE = 4000
# A column is derived if this share of its texts is.
ENOUGH = 0.8
JOINTS = ("|", "/", "_")


class Texts:
    """Distinct texts, numbered from 1; 0 is none."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def add(self, text: str) -> int:
        """The number of a text."""
        return self.numbers.setdefault(text, len(self.numbers) + 1)


@dataclass(frozen=True)
class Source:
    """The text of column number `column`, `shift` positions later."""

    column: int
    shift: int


@dataclass(frozen=True, eq=False)
class Plan:
    """How a column is stored.

    Attributes
    ----------
    column : TextColumn
    codes : (N,) int64
        Numbers of its texts.
    sources : tuple of Source
        What it is derived from; empty for a column that is not derived.
    joint : str
        The separator between the sources.
    """

    column: TextColumn
    codes: NDArray[np.int64]
    sources: tuple[Source, ...] = ()
    joint: str = ""


def plan_columns(columns: list[TextColumn], offsets: NDArray[np.int64], texts: Texts) -> list[Plan]:
    """Find the columns that can be derived from columns before them.

    ``offsets`` (S + 1,): where sequences begin and end.
    """
    plans: list[Plan] = []
    last = int(np.searchsorted(offsets, min(SAMPLE, int(offsets[-1]))))
    few = offsets[: last + 1]
    for column in columns:
        own = Plan(column, _renumber(column, texts))
        plans.append(_derive(own, plans, few, texts) or own)
    return plans


def exceptions(
    plan: Plan, plans: list[Plan], offsets: NDArray[np.int64], texts: Texts
) -> NDArray[np.bool_]:
    """Positions where a derived column differs from what its sources give, (N,)."""
    parts = _split(plan.column.texts, plan.joint, len(plan.sources), texts)
    wrong = np.zeros(int(offsets[-1]), np.bool_)
    for place, source in enumerate(plan.sources):
        told = _shift(plans[source.column].codes, offsets, source.shift)
        wrong |= _take(parts[:, place], plan.column.codes) != told
    return wrong


def _renumber(column: TextColumn, texts: Texts) -> NDArray[np.int64]:
    return _take(np.array([texts.add(text) for text in column.texts], np.int64), column.codes)


def _take(numbers: NDArray[np.int64], codes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Numbers by position; 0 where there is no text."""
    return np.append(numbers, 0)[codes]


def _derive(own: Plan, plans: list[Plan], few: NDArray[np.int64], texts: Texts) -> Plan | None:
    """The column as a copy or a concatenation of others, if this fits nearly all of its texts."""
    n_few = int(few[-1])
    codes = own.column.codes[:n_few]
    if not (codes >= 0).any():
        return None
    distinct, numbers = np.unique(codes, return_inverse=True)
    seen = ["" if code < 0 else own.column.texts[code] for code in distinct.tolist()]
    for joint in ("", *JOINTS):
        n_parts = Counter(text.count(joint) for text in seen).most_common(1)[0][0] + 1
        n_parts = 1 if joint == "" else n_parts
        if (n_parts == 1) != (joint == ""):
            continue
        parts = _split(seen, joint, n_parts, texts)
        parts[distinct < 0] = 0
        sources = []
        for place in range(n_parts):
            source = _find_source(parts[numbers, place], plans, few)
            if source is None:
                break
            sources.append(source)
        if len(sources) == n_parts:
            return Plan(own.column, own.codes, tuple(sources), joint)
    return None


def _split(column: list[str], joint: str, n_parts: int, texts: Texts) -> NDArray[np.int64]:
    """The number of each part of some texts, (n, n_parts); -1 for a part that has no number.

    A text that does not have exactly `n_parts` parts gets -1 for all of them.
    """
    find = texts.numbers.get
    if not joint:
        return np.array([[find(text, -1)] for text in column], np.int64).reshape(-1, 1)
    pieces = [text.split(joint) for text in column]
    others = [-1] * n_parts
    rows = [[find(p, -1) for p in row] if len(row) == n_parts else others for row in pieces]
    return np.array(rows, np.int64).reshape(-1, n_parts)


def _find_source(
    codes: NDArray[np.int64], plans: list[Plan], few: NDArray[np.int64]
) -> Source | None:
    """A column that is not derived and that these codes repeat, at some distance."""
    for number, plan in enumerate(plans):
        if plan.sources:
            continue
        for shift in sorted(range(-FARTHEST, FARTHEST + 1), key=abs):
            told = _shift(plan.codes[: len(codes)], few, shift)
            inside = told > 0
            if inside.sum() > len(codes) // 3 and (
                np.mean(told[inside] == codes[inside]) >= ENOUGH
            ):
                return Source(number, shift)
    return None


def _shift(codes: NDArray[np.int64], offsets: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    """The codes `shift` positions later, 0 beyond the ends of a sequence, (N,)."""
    n_positions = int(offsets[-1])
    if shift == 0:
        return codes[:n_positions]
    places = np.arange(n_positions) + shift
    lengths = np.diff(offsets)
    inside = (places >= np.repeat(offsets[:-1], lengths)) & (
        places < np.repeat(offsets[1:], lengths)
    )
    return np.where(inside, codes[np.clip(places, 0, n_positions - 1)], 0)
