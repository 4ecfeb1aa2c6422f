"""Attributes: columns and items become sparse rows of named attributes.

A numeric column is an attribute of its own name (``x0``, ``x1``, ... without names) whose value is
the number; a text column has an attribute ``column:value`` for each of its values. Items name
their attributes themselves. Zeros are left out: an attribute of value 0 has no effect.

No two columns share an attribute: if there is a column ``c:x``, the value ``x`` of a text column
``c`` raises an error in training, and is unknown in prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import ALONE, Comm
from hedgerow.encode import number_categories
from hedgerow.linear.ancestor_attributes import AncestorAttributes
from hedgerow.sequences import Categorical, Sequences, SparseRows

# Number of cells of a dense X that are processed at a time.
BLOCK = 1 << 20


def attribute_rows(
    sequences: Sequences,
    index: _core.StringIndex,
    *,
    ancestors: AncestorAttributes | None = None,
) -> SparseRows:
    """Rows of attributes, numbered by `index`; those that are not in it are dropped.

    Parameters
    ----------
    sequences
        The data. Items must have been read with the same index.
    index
        Names of the attributes.
    ancestors
        The attributes that positions also get from their ancestors.
    """
    return _with_ancestors(_own_rows(sequences, index, grow=False), sequences, index, ancestors)


def learn_attributes(
    sequences: Sequences, index: _core.StringIndex, n_ancestors: int
) -> SparseRows:
    """Rows of attributes, which are all added to the index, the attributes of ancestors last."""
    rows = _own_rows(sequences, index, grow=True)
    ancestors = AncestorAttributes.of(index, n_ancestors, grow=True) if n_ancestors else None
    return _with_ancestors(rows, sequences, index, ancestors)


def _with_ancestors(
    rows: SparseRows,
    sequences: Sequences,
    index: _core.StringIndex,
    ancestors: AncestorAttributes | None,
) -> SparseRows:
    if ancestors is None:
        return rows
    joined = _side_by_side([rows, *ancestors.of_rows(rows, sequences)])
    return SparseRows(joined.indptr, joined.indices, joined.values, len(index))


def _own_rows(sequences: Sequences, index: _core.StringIndex, *, grow: bool) -> SparseRows:
    """Rows of the attributes that positions have themselves.

    If ``grow``, attributes that are not in the index are added to it; otherwise they are dropped.
    """
    if sequences.schema.kind == "items":
        assert sequences.sparse is not None
        return sequences.sparse

    names = sequences.schema.column_names()
    numeric = [name for name, flag in zip(names, sequences.schema.numeric, strict=True) if flag]
    parts = []
    if sequences.sparse is not None:
        parts.append(sequences.sparse.renumber(_number(numeric, index, grow)))
    elif sequences.dense is not None:
        parts.append(_nonzeros(sequences.dense).renumber(_number(numeric, index, grow)))
    for column in sequences.categorical:
        ids = _number_values(column, sequences, index, grow)[column.codes]
        indptr = np.arange(len(ids) + 1, dtype=np.int64)
        every = SparseRows(indptr, np.arange(len(ids), dtype=np.int32), None, 0)
        parts.append(every.renumber(ids))
    rows = parts[0] if len(parts) == 1 else _side_by_side(parts)
    return SparseRows(rows.indptr, rows.indices, rows.values, len(index))


def drop_rare(
    rows: SparseRows,
    index: _core.StringIndex,
    min_count: int,
    n_ancestors: int = 0,
    comm: Comm = ALONE,
) -> tuple[SparseRows, _core.StringIndex]:
    """Leave out the attributes that occur at fewer than `min_count` positions of all workers.

    A rare attribute is kept if it is frequent as an attribute of ancestors: ``word=the``, if
    ``word=the[parent]`` is.
    """
    if min_count <= 1:
        return rows, index
    keep = comm.sum(_core.count_positions(rows.indptr, rows.indices, len(index))) >= min_count
    for numbers in AncestorAttributes.of(index, n_ancestors).numbers:
        keep |= (numbers >= 0) & keep[numbers]
    kept = _core.StringIndex()
    ids = np.full(len(index), -1, dtype=np.int32)
    for old, name in enumerate(index.names()):
        if keep[old]:
            ids[old] = kept.add(name)
    return rows.renumber(ids, len(kept)), kept


def begin_with(prefix: str, index: _core.StringIndex, parameter: str) -> NDArray[np.bool_]:
    """Which attributes have names with this prefix, (A,); ValueError if none has.

    ``parameter`` is the name of the parameter in the message.
    """
    names = index.names()
    found = np.fromiter((name.startswith(prefix) for name in names), np.bool_, len(names))
    if not found.any():
        raise ValueError(
            f"{parameter} is {prefix!r}, but no attribute of X has a name that begins with "
            f"it{f' (the first one is {names[0]!r})' if names else ''}; pass another prefix, "
            "or False"
        )
    return found


def _number(names: list[str], index: _core.StringIndex, grow: bool) -> NDArray[np.int32]:
    find = index.add if grow else index.find
    try:
        return np.fromiter(map(find, names), np.int32, len(names))
    except UnicodeEncodeError as error:
        raise ValueError(
            f"X has the column or value {error.object!r}, which is not valid Unicode (half of a "
            "surrogate pair); repair or remove it"
        ) from None


def _number_values(
    column: Categorical, sequences: Sequences, index: _core.StringIndex, grow: bool
) -> NDArray[np.int32]:
    """Number of the attribute of each of K categories, and -1 for missing values, (K + 1,)."""
    prefix = f"{column.name}:"
    others = _columns_within(prefix, sequences)

    def find(category: str) -> int:
        is_other = others and _owner(category, others)
        return -1 if is_other else index.find(prefix + category)

    def known() -> Iterator[str]:
        text, offsets = index.to_arrays()
        names = (text[start:stop].tobytes().decode() for start, stop in pairwise(offsets))
        values = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
        return (value for value in values if not _owner(value, others))

    if not grow:
        return number_categories(column, find, known)
    _check_owners(column, others)
    names = [prefix + category for category in column.categories]
    return np.append(_number(names, index, grow), np.int32(-1))


class _Other(NamedTuple):
    """A column whose name begins with that of a text column and a colon."""

    rest: str
    name: str
    numeric: bool


def _columns_within(prefix: str, sequences: Sequences) -> list[_Other]:
    """The columns whose names have this prefix."""
    texts = iter(sequences.categorical)
    pairs = zip(sequences.schema.column_names(), sequences.schema.numeric, strict=True)
    named = [(name if numeric else next(texts).name, numeric) for name, numeric in pairs]
    return [
        _Other(name.removeprefix(prefix), name, numeric)
        for name, numeric in named
        if name.startswith(prefix)
    ]


def _owner(category: str, others: list[_Other]) -> str | None:
    """Name of another column that a value's attribute belongs to; usually None."""
    for rest, name, numeric in others:
        if category == rest if numeric else category.startswith(f"{rest}:"):
            return name
    return None


def _check_owners(column: Categorical, others: list[_Other]) -> None:
    for category in column.categories if others else ():
        owner = _owner(category, others)
        if owner is not None:
            raise ValueError(
                f"column {column.name!r} has the value {category!r}, whose attribute "
                f"'{column.name}:{category}' can also come from column {owner!r}, so that both "
                "columns would share a weight; rename one of them"
            )


def _nonzeros(dense: NDArray[np.generic]) -> SparseRows:
    n_rows, n_columns = dense.shape
    indices, values = [np.empty(0, np.int32)], [np.empty(0)]
    counts = [np.zeros(1, dtype=np.int64)]
    step = max(1, BLOCK // max(1, n_columns))
    for start in range(0, n_rows, step):
        block = dense[start : start + step]
        mask = block != 0
        indices.append(np.nonzero(mask)[1].astype(np.int32))
        values.append(block[mask].astype(np.float64))
        counts.append(mask.sum(axis=1))
    ones = all((part == 1).all() for part in values)
    return SparseRows(
        np.cumsum(np.concatenate(counts), dtype=np.int64),
        np.concatenate(indices),
        None if ones else np.concatenate(values),
        n_columns,
    )


def _side_by_side(parts: list[SparseRows]) -> SparseRows:
    """Concatenate the entries of each row, in the order of the parts."""
    counts = [np.diff(part.indptr) for part in parts]
    row_of = np.concatenate([np.repeat(np.arange(len(n)), n) for n in counts])
    order = np.argsort(row_of, kind="stable")
    values = None
    if any(part.values is not None for part in parts):
        filled = [np.ones(len(p.indices)) if p.values is None else p.values for p in parts]
        values = np.concatenate(filled)[order]
    indptr = np.concatenate([[0], np.cumsum(np.sum(counts, axis=0), dtype=np.int64)])
    indices = np.concatenate([part.indices for part in parts])[order]
    return SparseRows(indptr.astype(np.int64), indices, values, 0)
