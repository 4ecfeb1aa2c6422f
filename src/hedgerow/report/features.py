"""Features: the values at each position, as columns of texts and of numbers.

Attributes of items have names such as ``word:the`` or ``w[0]=the``. Those with the same prefix,
such as ``w[0]``, form a column of texts if enough positions have one of them and none has two. An
attribute with other values than 1, such as ``speed``, forms a column of numbers if enough positions
have it. The others remain a list.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.encode import encode
from hedgerow.sequences import Sequences, SparseRows

# Attributes with the same prefix form a column if this share of the positions has one.
COMMON = 0.05
# Name of the column of parents.
PARENTS = "(parent)"
# Maximum number of numeric columns.
MAX_NUMBERS = 256


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts by position: the index of each in `texts`, (N,); -1 for none."""

    name: str
    codes: NDArray[np.int32]
    texts: list[str]


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """Numbers by position, (N,); NaN for none."""

    name: str
    values: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Features:
    """All values at the positions.

    Attributes
    ----------
    texts, numbers : lists of columns
    loose : SparseRows or None
        Attributes that are in no column.
    loose_names : list of str
        Names of its columns.
    n_left_out : int
        Number of columns of numbers beyond `MAX_NUMBERS`.
    """

    texts: list[TextColumn]
    numbers: list[NumberColumn]
    loose: SparseRows | None = None
    loose_names: list[str] | None = None
    n_left_out: int = 0


def read_features(X: Any, groups: Any, sequences: Sequences) -> Features:
    """Features of X, which a model has read as `sequences`; parents, if any, are a column too."""
    features = _read_features(X, groups, sequences)
    if sequences.parents is None:
        return features
    places = [str(place) for place in range(int(sequences.lengths.max()))]
    parents = TextColumn(PARENTS, sequences.parents + np.int32(1), ["root", *places])
    return replace(features, texts=[*features.texts, parents])


def _read_features(X: Any, groups: Any, sequences: Sequences) -> Features:
    if sequences.schema.kind == "items":
        # Read again: `sequences` does not contain attributes that the model does not know.
        index = _core.StringIndex()
        rows = encode(X, groups, index).sparse
        assert rows is not None
        return _split_items(rows, index.names())
    named = list(zip(sequences.schema.column_names(), sequences.schema.numeric, strict=True))
    numeric = [name for name, is_numeric in named if is_numeric]
    texts = [
        TextColumn(name, column.codes, column.categories)
        for name, column in zip(
            (name for name, is_numeric in named if not is_numeric),
            sequences.categorical,
            strict=True,
        )
    ]
    if sequences.sparse is not None:
        return Features(texts, [], sequences.sparse, numeric)
    dense = sequences.dense
    kept = [] if dense is None else _most_varied(dense)
    numbers = [] if dense is None else [NumberColumn(numeric[j], dense[:, j]) for j in kept]
    return Features(texts, numbers, n_left_out=len(numeric) - len(kept))


def _most_varied(dense: NDArray[Any]) -> list[int]:
    """Columns to show, in order: all, or those that change most often between positions."""
    n_columns = dense.shape[1]
    if n_columns <= MAX_NUMBERS:
        return list(range(n_columns))
    changes = np.mean(dense[1:] != dense[:-1], axis=0)
    return sorted(np.argsort(-changes, kind="stable")[:MAX_NUMBERS].tolist())


def _split_items(rows: SparseRows, names: list[str]) -> Features:
    """Attributes of items as columns, as far as possible."""
    n_positions = len(rows.indptr) - 1
    counts = np.bincount(rows.indices, minlength=len(names))
    splits = split_names(names, counts.tolist(), n_positions)
    stems: dict[str, int] = {}
    stem_of = np.array([stems.setdefault(stem, len(stems)) for stem, _ in splits], np.int32)
    stem_counts = np.bincount(stem_of, counts, len(stems)) if len(stems) else np.empty(0)
    position_of = np.repeat(np.arange(n_positions, dtype=np.int32), np.diff(rows.indptr))
    entry_stems = stem_of[rows.indices]
    order = np.argsort(entry_stems, kind="stable")
    bounds = np.searchsorted(entry_stems[order], np.arange(len(stems) + 1))
    loose = np.ones(len(order), np.bool_)
    texts: list[TextColumn] = []
    numbers: list[NumberColumn] = []
    for stem, number in stems.items():
        if stem_counts[number] < COMMON * n_positions:
            continue
        entries = order[bounds[number] : bounds[number + 1]]
        places, attributes = position_of[entries], rows.indices[entries]
        if (places[1:] == places[:-1]).any():
            continue  # several at some positions
        values = None if rows.values is None else rows.values[entries]
        is_text = all(splits[a][1] is not None for a in np.unique(attributes))
        if values is None or (values == 1).all():
            if not is_text:
                continue  # a flag, present or not
            texts.append(_text_column(stem, places, attributes, splits, n_positions))
        elif not is_text:
            column = np.full(n_positions, np.nan)
            column[places] = values
            numbers.append(NumberColumn(stem, column))
        else:
            continue
        loose[entries] = False
    kept = np.concatenate([[0], np.cumsum(loose, dtype=np.int64)])
    left = SparseRows(
        kept[rows.indptr],
        rows.indices[loose],
        None if rows.values is None else rows.values[loose],
        len(names),
    )
    return Features(texts, numbers, left if loose.any() else None, names)


def split_names(
    names: list[str], counts: list[int], n_positions: int
) -> list[tuple[str, str | None]]:
    """Split names into a stem and a text, at ":" or "=": ``word=the`` into ``word`` and ``the``.

    A name with several of these characters is split at the last one that follows a common stem, see
    `COMMON`. A name without a common stem is not split: its text is None. ``counts`` are the
    numbers of positions at which the names occur.
    """
    stems: defaultdict[str, int] = defaultdict(int)
    cuts = [_find_separators(name) for name in names]
    for name, places, count in zip(names, cuts, counts, strict=True):
        for place in places:
            stems[name[:place]] += count
    common = {stem for stem, count in stems.items() if count >= COMMON * n_positions}
    splits: list[tuple[str, str | None]] = []
    for name, places in zip(names, cuts, strict=True):
        cut = next((place for place in reversed(places) if name[:place] in common), None)
        splits.append((name, None) if cut is None else (name[:cut], name[cut + 1 :]))
    return splits


def _find_separators(name: str) -> list[int]:
    """Positions of ":" and "=" in a name."""
    name = name.replace(":", "=")
    places = []
    place = name.find("=")
    while place >= 0:
        places.append(place)
        place = name.find("=", place + 1)
    return places


def _text_column(
    stem: str,
    places: NDArray[np.int32],
    attributes: NDArray[np.int32],
    splits: list[tuple[str, str | None]],
    n_positions: int,
) -> TextColumn:
    distinct, numbers = np.unique(attributes, return_inverse=True)
    codes = np.full(n_positions, -1, np.int32)
    codes[places] = numbers
    return TextColumn(stem, codes, [splits[a][1] or "" for a in distinct.tolist()])
