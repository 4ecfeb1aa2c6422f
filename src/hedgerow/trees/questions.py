"""Questions: what the splits of trees ask, in words.

Trees know bins; a question names values: ``speed[-1] < 3.5``, ``word in {a, the}``,
``has 'w=the'``, ``label[-1] in {B, I}``. What lies beyond the end of a sequence is missing, and so
is a category that was not there in training.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from hedgerow.trees.columns import Columns, is_dense
from hedgerow.trees.cuts import PRESENCE
from hedgerow.trees.forest import Forest

__all__ = ["Question", "Questions"]

# Categories that a question lists.
MAX_SHOWN = 5


@dataclass(frozen=True)
class Question:
    """What a split asks.

    Attributes
    ----------
    text : str
        The question, of a value or of its being there.
    yes_is_left : bool
        Whether the left child is for those that say yes.
    threshold : float
        Values below it say yes; NaN if the question is another.
    categories : tuple of str or None
        Categories that say yes; None if the question is another.
    missing_says_yes : bool
        What is missing goes the way of those that say yes.
    """

    text: str
    yes_is_left: bool
    missing_says_yes: bool
    threshold: float = float("nan")
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
        """The question of a split, given by its place in the forest's arrays."""
        nodes, columns = self._nodes, self.columns
        column, cut = int(nodes.columns[node]), int(nodes.cuts[node])
        missing_left = self._missing_left(node)
        if column in self._categories:
            return self._ask_categories(node, missing_left)
        cuts = columns.cuts_of(column)
        if cut == 0:
            return Question(f"{self._name(node)} is missing", True, missing_left)
        if cut > len(cuts):
            return Question(f"{self._name(node)} is not missing", True, missing_left)
        if self._is_presence(column, cuts):
            text = f"has {self.names[column]!r}{_at(int(nodes.offsets[node]))}"
            return Question(text, False, not missing_left)
        threshold = float(cuts[cut - 1])
        return Question(f"{self._name(node)} < {threshold:.6g}", True, missing_left, threshold)

    def _ask_categories(self, node: int, missing_left: bool) -> Question:
        nodes = self._nodes
        known = self._categories[int(nodes.columns[node])]
        bins = np.arange(1, len(known) + 1)
        row = int(nodes.sets[node])
        if row >= 0:
            bits = np.unpackbits(nodes.left_sets[32 * row : 32 * row + 32], bitorder="little")
            goes_left = bits[bins].astype(np.bool_)
        else:
            goes_left = bins <= nodes.cuts[node]
        left = tuple(name for name, flag in zip(known, goes_left, strict=True) if flag)
        right = [name for name, flag in zip(known, goes_left, strict=True) if not flag]
        name = self._name(node)
        if not left or not right:
            text = f"{name} is {'not ' if left else ''}missing"
        elif len(left) <= len(right):
            text = f"{name} in {{{_listed(left)}}}"
        else:
            text = f"{name} not in {{{_listed(right)}}}"
        return Question(text, True, missing_left, categories=left)

    def _missing_left(self, node: int) -> bool:
        row = int(self._nodes.sets[node])
        if row >= 0:
            return bool(self._nodes.left_sets[32 * row] & 1)
        return bool(self._nodes.missing_left[node])

    def _is_presence(self, column: int, cuts: NDArray[np.float64]) -> bool:
        """Whether a column is an attribute that is there or not."""
        is_attribute = column >= self.columns.n_dense
        named = self.columns.index is not None or not self.columns.sparse
        return is_attribute and named and len(cuts) == 1 and cuts[0] == PRESENCE

    def _name(self, node: int) -> str:
        name, offset = self.names[self._nodes.columns[node]], int(self._nodes.offsets[node])
        return f"{name}[{offset:+d}]" if offset else name


def _at(offset: int) -> str:
    return f" at {offset:+d}" if offset else ""


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:MAX_SHOWN])
    return shown if len(names) <= MAX_SHOWN else f"{shown}, ... ({len(names)} in all)"
