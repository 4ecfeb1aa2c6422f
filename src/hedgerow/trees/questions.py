"""Questions: the splits of trees as text.

Trees use bins; a question names values: ``speed[-1] < 3.5``, ``word in {a, the}``,
``tag[parent] in {verb}``, ``has 'w=the'``, ``label[-1] in {B, I}``. A category that did not occur
in training is missing; positions beyond the ends of a sequence are not, and have a separate answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.columns import Columns, is_dense
from hedgerow.trees.cuts import PRESENCE
from hedgerow.trees.forest import Forest
from hedgerow.trees.places import at_offset, with_offset

__all__ = ["Question", "Questions", "Surrogate"]

# Maximum number of categories in a question.
MAX_SHOWN = 5


@dataclass(frozen=True)
class Question:
    """The question of a split.

    Attributes
    ----------
    text : str
        The question, about a value or its presence.
    yes_is_left : bool
        Whether the left child is for "yes".
    threshold : float
        The answer is yes for values below it; NaN for other questions.
    categories : tuple of str or None
        Categories with the answer yes; None for other questions.
    missing_says_yes : bool
        Missing values go to the side of "yes".
    outside_says_yes : bool
        Positions beyond the ends of the sequence go to the side of "yes".
    """

    text: str
    yes_is_left: bool
    missing_says_yes: bool
    outside_says_yes: bool
    threshold: float = float("nan")
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Surrogate:
    """A surrogate, which replaces a split whose value is missing.

    Attributes
    ----------
    column, offset : int
        The column and the offset of the surrogate.
    texts : (str, str)
        The conditions for the left and for the right side.
    threshold : float
        The threshold for numbers; NaN for categories.
    is_reversed : bool
        Whether numbers from the threshold on go left; otherwise those below it do.
    categories : tuple of str or None
        Categories that go left; None for numbers.
    """

    column: int
    offset: int
    texts: tuple[str, str]
    threshold: float = float("nan")
    is_reversed: bool = False
    categories: tuple[str, ...] | None = None


class Questions:
    """The questions of a forest over these columns."""

    def __init__(self, forest: Forest, columns: Columns) -> None:
        self._nodes = SimpleNamespace(**forest.arrays())  # a forest makes new views at each access
        self.columns = columns
        self.names = columns.asked_names()
        text = [names for names in columns.categories if is_dense(names)]
        self._categories = dict(enumerate(text, columns.n_numeric))
        for column in range(columns.n_columns, columns.n_asked):
            self._categories[column] = list(columns.labels)

    def ask(self, node: int) -> Question:
        """The question of a split, given by its index in the forest's arrays."""
        nodes, columns = self._nodes, self.columns
        column, cut = int(nodes.columns[node]), int(nodes.cuts[node])
        ways = self._missing_left(node), bool(nodes.outside_left[node])
        if column in self._categories:
            return self._ask_categories(node, ways)
        cuts, name = columns.cuts_of(column), self._name(node)
        if cut == 0 or cut > len(cuts):
            text = _describe_side(name, bool(cut), *ways, int(nodes.offsets[node]))
            return Question(text, True, *ways)
        if self._is_presence(column, cuts):
            text = f"has {self.names[column]!r}{at_offset(int(nodes.offsets[node]))}"
            return Question(text, False, not ways[0], not ways[1])
        threshold = float(cuts[cut - 1])
        return Question(f"{name} < {threshold:.6g}", True, *ways, threshold)

    def _ask_categories(self, node: int, ways: tuple[bool, bool]) -> Question:
        nodes = self._nodes
        column, row = int(nodes.columns[node]), int(nodes.sets[node])
        if row >= 0:
            left, right = self._sides(column, row)
        else:
            known, cut = tuple(self._categories[column]), int(nodes.cuts[node])
            left, right = known[:cut], known[cut:]
        name = self._name(node)
        if not left or not right:
            text = _describe_side(name, bool(left), *ways, int(nodes.offsets[node]))
        elif len(left) <= len(right):
            text = f"{name} in {{{_listed(left)}}}"
        else:
            text = f"{name} not in {{{_listed(right)}}}"
        return Question(text, True, *ways, categories=left)

    def left_share(self, node: int) -> float:
        """Share of missing values that goes left, if they go both ways; NaN otherwise."""
        fractions = self._nodes.fractions
        is_label = self._nodes.columns[node] >= self.columns.n_columns
        return float(fractions[node]) if len(fractions) and not is_label else float("nan")

    def surrogates(self, node: int) -> list[Surrogate]:
        """The surrogates of a split, the best first."""
        starts = self._nodes.surrogate_starts
        numbers = range(*starts[node : node + 2].tolist()) if len(starts) else range(0)
        return [self._surrogate(number) for number in numbers]

    def _surrogate(self, number: int) -> Surrogate:
        nodes, columns = self._nodes, self.columns
        column, offset = int(nodes.surrogate_columns[number]), int(nodes.surrogate_offsets[number])
        name = with_offset(self.names[column], offset)
        if column in self._categories:
            left, right = self._sides(column, int(nodes.surrogate_sets[number]))
            texts = f"{name} in {{{_listed(left)}}}", f"{name} in {{{_listed(right)}}}"
            return Surrogate(column, offset, texts, categories=left)
        cut, is_reversed = int(nodes.surrogate_cuts[number]), bool(nodes.surrogate_reversed[number])
        cuts = columns.cuts_of(column)
        threshold = float(cuts[cut - 1])
        texts = f"{name} < {threshold:.6g}", f"{name} >= {threshold:.6g}"
        if self._is_presence(column, cuts):
            attribute = f"{self.names[column]!r}{at_offset(offset)}"
            texts = f"lacks {attribute}", f"has {attribute}"
        if is_reversed:
            texts = texts[1], texts[0]
        return Surrogate(column, offset, texts, threshold, is_reversed)

    def _sides(self, column: int, row: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Categories of a column that go left according to a set, and those that go right."""
        known = self._categories[column]
        bits = np.unpackbits(self._nodes.left_sets[32 * row : 32 * row + 32], bitorder="little")
        flags = bits[1 : len(known) + 1].astype(np.bool_).tolist()
        left = tuple(name for name, flag in zip(known, flags, strict=True) if flag)
        right = tuple(name for name, flag in zip(known, flags, strict=True) if not flag)
        return left, right

    def _missing_left(self, node: int) -> bool:
        row = int(self._nodes.sets[node])
        if row >= 0:
            return bool(self._nodes.left_sets[32 * row] & 1)
        return bool(self._nodes.missing_left[node])

    def _is_presence(self, column: int, cuts: NDArray[np.float64]) -> bool:
        """Whether a column is a binary attribute."""
        is_attribute = column >= self.columns.n_dense
        named = self.columns.index is not None or not self.columns.sparse
        return is_attribute and named and len(cuts) == 1 and cuts[0] == PRESENCE

    def _name(self, node: int) -> str:
        return with_offset(self.names[self._nodes.columns[node]], int(self._nodes.offsets[node]))


def _describe_side(name: str, known: bool, missing: bool, outside: bool, offset: int) -> str:
    """The question of a split whose known values all go to the same side.

    ``known``, ``missing`` and ``outside`` say which of them go left; with an offset of 0 nothing is
    outside.
    """
    if missing == outside and offset:
        return f"{name} is {'' if known else 'not '}known"
    rare = "outside" if missing == known and offset else "missing"
    return f"{name} is {'not ' if known else ''}{rare}"


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:MAX_SHOWN])
    return shown if len(names) <= MAX_SHOWN else f"{shown}, ... ({len(names)} in all)"
