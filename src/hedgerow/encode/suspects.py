"""Suspects: columns that are probably misinterpreted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from narwhals.stable.v1.dependencies import is_pandas_dataframe, is_pandas_series
from numpy.typing import NDArray

from hedgerow.data_warning import warn_user
from hedgerow.encode.codes import code_values
from hedgerow.encode.cut_frame import CutFrame
from hedgerow.sequences import Categorical, Sequences

# A flat X with more rows than this is unlikely to be one sequence.
MOST_ROWS = 100_000
# Last words of names of id columns.
ID_WORDS = frozenset({"id", "ids", "uid", "uuid", "key"})
GROUP_WORDS = ID_WORDS | frozenset(
    {"day", "doc", "document", "episode", "group", "participant", "patient", "recording", "run"}
    | {"sentence", "seq", "sequence", "series", "session", "subject", "trial", "trip", "walk"}
)
# From this many values on, each in a single run of rows, they look like ids.
FEWEST_IDS = 5
# This many increases, and no decrease, are not a coincidence.
FEWEST_STEPS = 20
# Maximum number of distinct texts that may mark missing values in a numeric column, and the minimum
# number of distinct numbers beside them.
MOST_MARKS = 2
FEWEST_NUMBERS = 10


class Column(NamedTuple):
    """A column of X: its name, and its values as numbers or codes, (N,)."""

    name: str
    values: NDArray[Any]


def warn_of_suspects(sequences: Sequences, model: str, sample_weight: Any = None) -> None:
    """Warn if training data probably contain a mistake.

    ``model`` is the name of the estimator, for messages.
    """
    if sequences.flat and sequences.n_sequences == 1 and sequences.ids is None:
        if _look_like_groups(sample_weight):
            warn_user(
                "sample_weight looks like the ids of groups, such as 0, 0, 1, 1, 1, 2, but X has "
                "no groups, so all of its rows are one sequence; the third argument of fit is "
                "sample_weight: pass groups by name, groups=..."
            )
        else:
            _warn_of_one_sequence(sequences, model)
    for column in sequences.categorical:
        _warn_of_numbers(column)


def warn_of_indices(X: Any, **given: Any) -> None:
    """Warn if an argument has the index of the pandas DataFrame X, but in another order."""
    index = _index_of(X)
    for name, values in given.items():
        own = _index_of(values)
        if index is None or own is None or len(own) != len(index) or own.equals(index):
            continue
        if not (own.is_unique and index.is_unique and index.isin(own).all()):
            continue
        for row, (here, of_X) in enumerate(zip(own.tolist(), index.tolist(), strict=True)):
            if here != of_X:
                warn_user(
                    f"{name} has the index of X in another order: row {row} has the index {here!r} "
                    f"in {name}, but {of_X!r} in X. Rows are matched by position, not by index; "
                    f"pass {name}.loc[X.index], or {name}.to_numpy() if the order is right as it is"
                )
                break


def _index_of(values: Any) -> Any:
    """The index of a pandas DataFrame or Series; None for anything else."""
    is_pandas = is_pandas_dataframe(values) or is_pandas_series(values)
    return values.index if is_pandas else None


def find_counters(frames: CutFrame) -> Iterator[tuple[str, str]]:
    """Columns that look like an id or a time: their names and what they look like.

    Such a column will have different values in new data, so nothing can be learned from it.
    """
    starts, n_rows = frames.offsets[:-1], int(frames.offsets[-1])
    within = np.delete(np.arange(n_rows), starts)  # rows that are not the first of their sequence
    for series in frames.frame.iter_columns():
        is_number = series.dtype.is_numeric()
        if is_number:
            values = series.to_numpy().astype(np.float64)
        elif series.dtype == nw.String:
            values = code_values([series.to_list()])[1]
        else:
            continue
        steps = values[within] - values[within - 1]
        n_values = len(np.unique(values))
        is_whole = not is_number or _are_whole(values)
        if is_number and len(steps) >= FEWEST_STEPS and (steps > 0).all():
            yield series.name, "rises from row to row in every sequence, like a time"
        elif is_whole and n_values == len(starts) >= FEWEST_IDS and not steps.any():
            yield series.name, "has one value per sequence, different in each, like an id"
        elif n_values == n_rows >= FEWEST_STEPS and not is_number:
            yield series.name, "is different in every row, like an id"


def _look_like_groups(weights: Any) -> bool:
    """Whether weights count runs of rows: 0, 0, 1, 1, 1, 2 and so on, or from 1 on."""
    try:
        numbers = np.asarray(weights)
    except ValueError:  # an error is raised later
        return False
    if numbers.dtype.kind not in "iuf" or numbers.ndim != 1 or len(numbers) < FEWEST_IDS:
        return False
    steps = np.diff(numbers.astype(np.float64))
    counts = numbers[0] in (0, 1) and ((steps == 0) | (steps == 1)).all() and (steps == 0).any()
    return bool(counts and steps.sum() + 1 >= FEWEST_IDS)


def _warn_of_one_sequence(sequences: Sequences, model: str) -> None:
    n_rows, column = sequences.n_positions, _find_id(sequences)
    if column is not None:
        warn_user(
            f"X is one flat table without groups, so all of its {n_rows:,} rows are one sequence, "
            f"but column {column!r} looks like an id of sequences; pass groups=X[{column!r}] to "
            f"fit, or {model}(group_column={column!r}). If X is one sequence, pass [X] and [y]"
        )
    elif n_rows > MOST_ROWS:
        warn_user(
            f"X is one flat table without groups, so all of its {n_rows:,} rows are one sequence; "
            f"pass groups=..., an id for every row, to fit, or {model}(group_column=...). If X is "
            "one sequence, pass [X] and [y]"
        )


def _find_id(sequences: Sequences) -> str | None:
    """Name of the first column that looks like a sequence id."""
    for column in _whole_columns(sequences):
        is_first = np.append(True, column.values[1:] != column.values[:-1])
        n_runs, n_rows, word = int(is_first.sum()), len(is_first), _last_word(column.name)
        if n_runs == 1 or (n_runs == n_rows and word not in ID_WORDS):
            continue
        n_values = len(np.unique(column.values[is_first]))
        is_named = word in GROUP_WORDS if n_values == n_runs else word in ID_WORDS
        in_runs = n_values == n_runs and n_values >= FEWEST_IDS
        if n_values <= n_rows // 2 and (is_named or in_runs):
            return column.name
    return None


def _whole_columns(sequences: Sequences) -> Iterator[Column]:
    """Columns of a frame with text or integers and no missing values."""
    names, numeric = sequences.schema.names, sequences.schema.numeric
    if names is None:
        return
    dense, texts = iter(range(len(names))), iter(sequences.categorical)
    for name, is_number in zip(names, numeric, strict=True):
        if not is_number:
            codes = next(texts).codes
            if (codes >= 0).all():
                yield Column(name, codes)
            continue
        assert sequences.dense is not None
        values = sequences.dense[:, next(dense)]
        if values.dtype.kind in "iu" or _are_whole(values):
            yield Column(name, values)


def _are_whole(values: NDArray[Any]) -> bool:
    # Most columns with fractions have one near the beginning.
    with np.errstate(invalid="ignore"):  # infinite numbers, which are refused later
        return all(bool((part % 1 == 0).all()) for part in (values[:100], values))


def _last_word(name: str) -> str:
    """For ``user_id``, ``userId`` and ``User ID`` it is ``id``."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return words[-1].lower() if words else ""


def _warn_of_numbers(column: Categorical) -> None:
    """Warn if categories look like numbers, except for a few marks of missing values."""
    if column.declared or column.kind == "bools" or not column.categories:
        return
    marks = [] if column.kind == "numbers" else _first_words(column.categories)
    n_numbers = len(column.categories) - len(marks)
    if len(marks) > MOST_MARKS or (marks and n_numbers < FEWEST_NUMBERS):
        return
    exceptions = f" except {' and '.join(map(repr, marks))}" if marks else ""
    first = next(text for text in column.categories if text not in marks)
    found = (
        f"column {column.name!r} holds numbers, such as {first}, as Python objects (dtype object)"
        if column.kind == "numbers"
        else f"all values of column {column.name!r}{exceptions} look like numbers, such as "
        f"{first!r}, but are stored as text"
    )
    warn_user(
        f"{found}, so they are treated as categories; convert the column to numbers, with an empty "
        "cell or NaN for a missing value, for example by "
        f"pandas.to_numeric(X[{column.name!r}], errors='coerce'). If they are codes, convert it to "
        "a categorical dtype (in a CSV file, put a letter before each code)"
    )


def _first_words(categories: list[str]) -> list[str]:
    """Categories that are not numbers, at most one more than are accepted."""
    return list(islice((text for text in categories if not _is_number(text)), MOST_MARKS + 1))


def _is_number(text: str) -> bool:
    for spelling in (text, text.replace(",", ".")):
        try:
            float(spelling)
        except ValueError:
            continue
        return True
    return False
