"""Explanation: evidence for a label against another one, as numbers and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.ancestors import generation_of
from hedgerow.counting import count_of
from hedgerow.explain.relatives import Relatives
from hedgerow.notebook import Bar, card, table
from hedgerow.tables import Output, Table

__all__ = ["Explanation"]

# Maximum number of features in the text of an explanation.
MAX_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Contributions to the log-odds of a label against another one.

    ``log_odds`` is exactly the sum of ``bias``, the contributions of the features and of the
    transitions, ``before`` and ``after``.

    Attributes
    ----------
    position : int
        The position in its sequence.
    length : int
        Length of the sequence.
    label, against : label
        The two labels that are compared.
    prob, prob_against : float
        Their probabilities, given the whole sequence.
    log_odds : float
        Logarithm of the ratio of the two probabilities.
    bias : float
        Log-odds without any features: the bias weights of the labels, or the values of the roots of
        the trees.
    feature_table, transition_table : Table
        `features` and `transitions` as dicts of arrays.
    before, after : float
        The rest of the influence of the labels before and after, which comes from uncertainty about
        them: they may differ from the predicted ones. Constraints show up here too. In a
        tree-shaped graph, the descendants of a position are after it, and all other positions are
        before it.
    relatives : Relatives or None
        The parent and the children of the position in a tree-shaped graph; None in a chain.
    output : {"default", "pandas", "polars"}
        Type of `features`, `transitions` and `to_table`, as for the model's other tables.
    """

    position: int
    length: int
    label: Any
    against: Any
    prob: float
    prob_against: float
    log_odds: float
    bias: float
    feature_table: Table
    transition_table: Table
    before: float
    after: float
    relatives: Relatives | None = None
    output: Output = "default"

    @property
    def features(self) -> Any:
        """Contribution of each feature, as a table.

        Columns: ``feature``, ``offset`` in the window, ``value`` there (None if it is missing or
        beyond the ends of the sequence) and ``contribution``, sorted by absolute value, the largest
        first.
        """
        return self.feature_table.to(self.output)

    @property
    def transitions(self) -> Any:
        """Contributions of the label patterns through this position, as a table.

        They are computed with the predicted labels at the neighbouring positions. Columns:
        ``offset`` of the position where the patterns end; ``labels`` up to there; ``weight``, the
        total weight of the patterns that end there; ``weight_against``, the same with the other
        label at this position; and ``contribution``, the difference. Weights of attributes for
        label pairs and patterns are included. In a tree-shaped graph, patterns follow the path from
        a root: the offset is a number of generations, and a column ``end`` has the position where
        the patterns end.
        """
        return self.transition_table.to(self.output)

    def to_table(self) -> Any:
        """Everything as one table: part, name, offset, value, contribution.

        The contributions add up to ``log_odds``.
        """
        return self._as_table().to(self.output)

    def _as_table(self) -> Table:
        features, transitions = self.feature_table, self.transition_table
        n_features, n_transitions = len(features["feature"]), len(transitions["labels"])
        return Table(
            {
                "part": _objects(
                    ["bias"]
                    + ["feature"] * n_features
                    + ["transition"] * n_transitions
                    + ["before", "after"]
                ),
                "name": _objects(
                    ["", *features["feature"], *_name_transitions(transitions), "", ""]
                ),
                "offset": np.concatenate([[0], features["offset"], transitions["offset"], [0, 0]]),
                "value": _objects([None, *features["value"], *[None] * (n_transitions + 2)]),
                "contribution": np.concatenate(
                    [
                        [self.bias],
                        features["contribution"],
                        transitions["contribution"],
                        [self.before, self.after],
                    ]
                ),
            }
        )

    def __repr__(self) -> str:
        return (
            f"Explanation(position={self.position}, label={self.label!r}, "
            f"against={self.against!r}, log_odds={self.log_odds:.4f})"
        )

    def __str__(self) -> str:
        """The explanation as text, with the features that contribute most."""
        header = ("contribution", "feature", "offset", "value")
        lines = [(_signed(line.contribution), *line[1:4]) for line in self._lines()]
        return "\n".join([self._title(), "", *_align([header, *lines])])

    def _repr_html_(self) -> str:
        lines = self._lines()
        largest = max((abs(line.contribution) for line in lines), default=0.0) or 1.0
        rows = [
            [line.name, line.offset, line.value, Bar(line.contribution / largest), number]
            for line, number in ((line, _signed(line.contribution)) for line in lines)
        ]
        sums = [number for number, line in enumerate(lines) if line.is_sum]
        header = ["feature", "offset", "value", "", "contribution"]
        right = ("offset", "contribution")
        return card(self._title(), table(header, rows, right=right, sums=sums))

    def _title(self) -> str:
        return (
            f"position {self.position}{self._describe_relatives()}: {self.label} (probability "
            f"{self.prob:.4g}) against {self.against} ({self.prob_against:.4g})"
        )

    def _describe_relatives(self) -> str:
        if self.relatives is None:
            return ""
        parent, children = self.relatives.parent, self.relatives.children
        shown = ", ".join(map(str, children[:MAX_SHOWN]))
        more = ", ..." if len(children) > MAX_SHOWN else ""
        below = f"{'child' if len(children) == 1 else 'children'} {shown}{more}"
        return (
            f" ({'a root' if parent is None else f'parent {parent}'}, "
            f"{below if children else 'no children'})"
        )

    def _lines(self) -> list[_Line]:
        """The lines of the text."""
        features = self.feature_table
        shown = min(len(features["feature"]), MAX_SHOWN)
        columns = (features[name][:shown].tolist() for name in features)
        lines = [
            _Line(
                contribution,
                feature,
                f"{offset:+d}" if offset else "0",
                self._show(feature, offset, value),
            )
            for feature, offset, value, contribution in zip(*columns, strict=True)
        ]
        n_others = len(features["feature"]) - shown
        of_features = float(features["contribution"].sum())
        if n_others:
            rest = float(features["contribution"][shown:].sum())
            lines.append(_Line(rest, count_of(n_others, "more feature")))
        lines.append(_Line(self.bias, "(bias)"))
        lines.append(_Line(self.bias + of_features, "= the position itself", is_sum=True))
        names = _name_transitions(self.transition_table)
        contributions = self.transition_table["contribution"].tolist()
        lines += [
            _Line(contribution, f"transition {name}")
            for name, contribution in zip(names, contributions, strict=True)
        ]
        has_before, has_after = self.position > 0, self.position < self.length - 1
        before, after = "uncertainty about labels before", "uncertainty about labels after"
        if self.relatives is not None:
            has_before = self.relatives.parent is not None
            has_after = bool(self.relatives.children)
            before, after = "uncertainty about labels above", "uncertainty about labels below"
        if has_before:
            lines.append(_Line(self.before, before))
        if has_after:
            lines.append(_Line(self.after, after))
        lines.append(_Line(self.log_odds, "= log-odds", is_sum=True))
        return lines

    def _show(self, feature: str, offset: int, value: Any) -> str:
        n_above = self.position if self.relatives is None else self.relatives.n_ancestors
        is_inside = 0 <= self.position + offset < self.length
        if not is_inside or (value is None and generation_of(feature) > n_above):
            return "outside"
        if value is None:
            return "missing"
        return f"{value:.6g}" if isinstance(value, float) else str(value)


class _Line(NamedTuple):
    """A line of an explanation; only features have an offset and a value."""

    contribution: float
    name: str
    offset: str = ""
    value: str = ""
    is_sum: bool = False


def _objects(values: list[Any]) -> NDArray[Any]:
    return np.fromiter(values, np.object_, len(values))


def _name_transitions(transitions: Table) -> list[str]:
    """``a -> [b]``: the labels up to an end, with brackets around the label of this position.

    If patterns may end at several positions below this one, as in ``[b] -> c at 4``, the position
    of the end is named too.
    """
    names = []
    for row, (offset, labels) in enumerate(
        zip(transitions["offset"], transitions["labels"], strict=True)
    ):
        words = list(map(str, labels))
        words[-1 - offset] = f"[{words[-1 - offset]}]"
        where = f" at {transitions['end'][row]}" if "end" in transitions and offset else ""
        names.append(" -> ".join(words) + where)
    return names


def _signed(number: float) -> str:
    return f"{round(number, 4) + 0.0:+.4f}"  # no minus sign before zero


def _align(rows: list[tuple[str, str, str, str]]) -> list[str]:
    """Align rows of four texts as lines; the last two are empty except for features."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    name_width = max(len(name) for _, name, offset, _ in rows if offset)
    return [
        f"{number:>{widths[0]}}  {name:<{name_width}}  {offset:>{widths[2]}}  {value}".rstrip()
        for number, name, offset, value in rows
    ]
