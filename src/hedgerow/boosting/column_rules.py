"""Column rules: monotone and interaction constraints, from names to the tree learner's format.

In a softmax only differences of scores matter. A monotone constraint is therefore about the odds of
labels. Of two labels with different directions for a column, the odds of the one with the larger
direction never decrease as the column increases; labels that are not named have the direction 0.
This holds if the scores of the labels with the largest direction never decrease, those with the
smallest never increase, and those in between do not depend on the column.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.counting import count_of
from hedgerow.labels import Labels
from hedgerow.parameters import plain_value
from hedgerow.sequences import Schema
from hedgerow.suggestions import suggest
from hedgerow.trees.columns import Columns

__all__ = [
    "InteractionConstraints",
    "MonotoneConstraints",
    "check_column_parameters",
    "read_column_rules",
]

Column = str | int
MonotoneConstraints = Mapping[Any, int | Mapping[Any, int]] | Sequence[int] | NDArray[Any] | None
InteractionConstraints = Sequence[Any] | Literal["pairwise", "no_interactions"] | None

# Instead of a direction: the trees of a label do not split on the column.
UNUSED = 2
MAX_COLUMNS = {"no_interactions": 1, "pairwise": 2}
MAX_SHOWN = 10


def check_column_parameters(monotone: Any, interaction: Any) -> None:
    """Raise ValueError or TypeError for constraints that are invalid for any data."""
    _plain_monotone(monotone)
    _plain_interaction(interaction)


def read_column_rules(
    monotone: MonotoneConstraints,
    interaction: InteractionConstraints,
    columns: Columns,
    labels: Labels,
) -> _core.ColumnRules | None:
    """The constraints of columns in the trees of each label; None: no constraints.

    Raises ValueError for columns and labels that do not exist.
    """
    more: dict[str, Any] = {}
    directions = _read_directions(_plain_monotone(monotone), columns, labels)
    if directions is not None:
        more["directions"] = directions
    groups = _plain_interaction(interaction)
    if isinstance(groups, str):
        more["max_columns"] = MAX_COLUMNS[groups]
    elif groups is not None:
        more["group_offsets"], more["group_columns"] = _read_groups(groups, columns)
    return _core.ColumnRules(n_columns=columns.n_columns, **more) if more else None


def _plain_monotone(value: Any) -> dict[Any, Any] | list[Any] | None:
    """A dict by column, or a list with one number per column."""
    name = "monotone_constraints"
    if value is None:
        return None
    plain = None if isinstance(value, str) else plain_value(name, value)
    if isinstance(plain, list):
        for place, direction in enumerate(plain):
            _check_direction(f"{name}[{place}]", direction)
        return plain
    if not isinstance(plain, dict):
        raise ValueError(
            f"{name} is {value!r}; expected a dict from columns to directions, such as "
            "{'speed': {'running': 1}}, a list with a direction for each column, or None"
        )
    for column, directions in plain.items():
        where = f"{name}[{column!r}]"
        _check_column(name, column)
        if not isinstance(directions, dict):
            _check_direction(where, directions, ", or a dict with one of these for each label")
            continue
        for label, direction in directions.items():
            _check_direction(f"{where}[{label!r}]", direction)
    return plain


def _check_direction(where: str, value: Any, others: str = "") -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and value in (-1, 0, 1)):
        raise ValueError(f"{where} is {value!r}; expected 1, -1 or 0{others}")


def _plain_interaction(value: Any) -> list[list[Column]] | str | None:
    """Groups of columns, or the name of a rule."""
    name = "interaction_constraints"
    if value is None or (isinstance(value, str) and value in MAX_COLUMNS):
        return value
    plain = None if isinstance(value, str) else plain_value(name, value)
    if not isinstance(plain, list):
        raise ValueError(
            f"{name} is {value!r}; expected a list of groups of columns, such as [['speed', "
            "'slope'], ['day']], 'pairwise', 'no_interactions' or None"
        )
    for place, group in enumerate(plain):
        if not isinstance(group, list):
            raise ValueError(
                f"{name}[{place}] is {group!r}; expected a group of columns, such as ['speed', "
                "'slope']"
            )
        for column in group:
            _check_column(f"{name}[{place}]", column)
    return plain


def _check_column(where: str, column: Any) -> None:
    if isinstance(column, bool) or not isinstance(column, str | int):
        raise ValueError(
            f"{where} has the column {column!r}; expected the name or the number of a column"
        )


def _read_directions(
    plain: dict[Any, Any] | list[Any] | None, columns: Columns, labels: Labels
) -> NDArray[np.int8] | None:
    """The direction of each column for each label's score, (K, C); None: no constraints."""
    if plain is None:
        return None
    names = _Names("monotone_constraints", columns)
    if isinstance(plain, list):
        names.check_length(len(plain))
        plain = dict(enumerate(plain))
    directions = np.zeros((len(labels.classes), columns.n_columns), np.int8)
    for column, value in plain.items():
        found = names.find(column)
        ways = _by_label(f"monotone_constraints[{column!r}]", column, value, labels)
        if ways is not None:
            names.check_numeric(column, found)
            if directions[:, found].any():
                raise ValueError(
                    f"monotone_constraints has the column {column!r} twice, by name and by number; "
                    "keep one of them"
                )
            directions[:, found] = ways[:, None]
    return directions if directions.any() else None


def _by_label(where: str, column: Hashable, value: Any, labels: Labels) -> NDArray[np.int8] | None:
    """The direction of a column for the score of each label, (K,); None: no constraints."""
    classes = labels.classes.tolist()
    if not isinstance(value, dict):
        if value == 0:
            return None
        if len(classes) != 2:
            raise ValueError(
                f"{where} is {value!r}, but y has {count_of(len(classes), 'label')}, so "
                "monotone_constraints must say which labels the column constrains; expected a dict "
                f"by column and label, such as {{{column!r}: {{{classes[-1]!r}: {value!r}}}}}, "
                "with a direction for one or more labels"
            )
        value = {classes[1]: value}
    directions = np.zeros(len(classes), np.int8)
    directions[labels.read_codes(list(value), where)] = list(value.values())
    lowest, highest = directions.min(), directions.max()
    if lowest == highest:
        if highest == 0:
            return None
        raise ValueError(
            f"{where} has the direction {int(highest)} for every label, which has no effect: only "
            "the odds of labels with different directions are constrained; leave some labels out"
        )
    ways = np.full(len(classes), UNUSED, np.int8)
    ways[directions == lowest], ways[directions == highest] = -1, 1
    return ways


def _read_groups(
    groups: list[list[Column]], columns: Columns
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Groups of the C columns: offsets (G + 1,) and columns.

    Ungrouped columns form the last group.
    """
    names = _Names("interaction_constraints", columns)
    found = [
        np.unique(np.concatenate([np.empty(0, np.int64), *map(names.find, group)]))
        for group in groups
    ]
    listed = np.concatenate([np.empty(0, np.int64), *found])
    found.append(np.setdiff1d(np.arange(columns.n_columns), listed))
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in found], dtype=np.int64)])
    return offsets, np.concatenate(found).astype(np.int32)


class _Names:
    """Finds the columns that a parameter names."""

    def __init__(self, parameter: str, columns: Columns) -> None:
        self._parameter = parameter
        self._schema: Schema = columns.schema
        self._origins = columns.of_schema()
        self._attributes = columns.column_names() if columns.schema.kind == "items" else []

    def check_length(self, n_given: int) -> None:
        """Raise ValueError unless there are this many columns, and they are numbered."""
        if self._schema.kind == "items":
            raise ValueError(
                f"{self._parameter} is a list, but X has named attributes, not numbered columns; "
                "pass a dict by name"
            )
        if n_given != self._schema.n_features:
            raise ValueError(
                f"{self._parameter} has {count_of(n_given, 'direction')}, but X has "
                f"{count_of(self._schema.n_features, 'feature')}; pass one for each, or a dict by "
                "feature"
            )

    def find(self, column: Column) -> NDArray[np.int64]:
        """Find all columns that a column of X has become; for dicts, all attributes of a key."""
        if self._schema.kind == "columns":
            return np.flatnonzero(self._origins == self._number(column))
        prefix = f"{column}:"
        found = [
            number
            for number, name in enumerate(self._attributes)
            if name == column or name.startswith(prefix)
        ]
        if not found:
            keys = {part for name in self._attributes for part in (name, name.partition(":")[0])}
            # X also has attributes that occur only in held-out sequences.
            what = f"the attribute {column!r}, which does not occur in training"
            raise self._unknown(what, column, "the attributes", sorted(keys))
        return np.array(found, np.int64)

    def check_numeric(self, column: Column, found: NDArray[np.int64]) -> None:
        """Raise ValueError unless it is a numeric column, or one attribute."""
        if self._schema.kind == "columns":
            number, names = self._number(column), self._schema.names
            is_numeric = self._schema.numeric[number]
            column = column if names is None else names[number]
        else:
            is_numeric = [self._attributes[number] for number in found] == [column]
        if not is_numeric:
            raise ValueError(
                f"{self._parameter} names the feature {column!r}, which holds text, and text has "
                "no order; name numeric features, or encode its categories as numbers"
            )

    def _number(self, column: Column) -> int:
        """Find the number of a column of X."""
        names, n_columns = self._schema.names, self._schema.n_features
        if names is not None and column in names:
            return names.index(str(column))
        if isinstance(column, int) and 0 <= column < n_columns:
            return column
        if isinstance(column, str) and names is None:
            raise ValueError(
                f"{self._parameter} names the feature {column!r}, but X has no column names; pass "
                "the number of the feature, or a DataFrame"
            )
        known = [f"0 to {n_columns - 1}"] if names is None else list(names)
        raise self._unknown(
            f"{column!r}, which is not a feature of X", column, "its features", known
        )

    def _unknown(self, what: str, column: Column, kind: str, known: list[str]) -> ValueError:
        shown = ", ".join(known[:MAX_SHOWN]) + (", ..." if len(known) > MAX_SHOWN else "")
        hint = suggest(str(column), known) or f"; {kind} are {shown}"
        return ValueError(f"{self._parameter} names {what}{hint}")
