"""Encoding: every accepted form of X becomes `Sequences` here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw
import numpy as np

from hedgerow.encode.arrays import read_arrays, read_plain_arrays
from hedgerow.encode.cut_frame import CutFrame
from hedgerow.encode.forms import (
    EXPECTED,
    NUMERIC_KINDS,
    Form,
    check_list_of_sequences,
    check_two_dimensional,
    form_of,
    is_plain_items,
    is_sparse,
    is_table,
    settle,
)
from hedgerow.encode.frames import read_frames
from hedgerow.encode.group_column import check_given_once, split_off_groups
from hedgerow.encode.groups import merely_count, name_groups, read_groups
from hedgerow.encode.items import read_items
from hedgerow.encode.numbered_names import NumberedNames
from hedgerow.encode.sparse import read_sparse
from hedgerow.sequences import Sequences

if TYPE_CHECKING:
    from hedgerow._core import StringIndex


def encode(
    X: Any,
    groups: Any = None,
    index: StringIndex | None = None,
    grow: bool = True,
    group_column: str | int | None = None,
) -> Sequences:
    """Turn what a user hands in into `Sequences`.

    Parameters
    ----------
    X : list of sequences, or one flat block of rows
        A sequence is a 2-D array (positions, features), a DataFrame, a sparse matrix, or a
        list of dicts or of lists of attribute strings. Any iterable of sequences will do, and
        so will a 3-D array. A flat block is one 2-D array, DataFrame or sparse matrix.
    groups : array-like of hashable ids, optional
        For a flat X, the sequence of each row; the rows of a sequence stand together.
        Without it a flat X is one sequence.
    index : StringIndex, optional
        Names of the attributes; needed for dicts and attribute strings only.
    grow : bool
        Whether attributes that are not in `index` are added to it, or dropped.
    group_column : str or int, optional
        Name or number of a column of X that holds the group ids, in place of `groups`; an X that
        has no column of that name may have `groups` beside it. It is no feature; in a list of
        sequences, which says itself where each of them ends, it is dropped.

    Returns
    -------
    Sequences

    Examples
    --------
    >>> import numpy as np
    >>> sequences = encode([np.zeros((3, 2)), np.ones((1, 2))])
    >>> sequences.offsets.tolist(), sequences.dense.shape
    ([0, 3, 4], (4, 2))
    """
    if groups is None and group_column is None:
        if isinstance(X, CutFrame):
            return replace(read_frames([X.frame], flat=False), offsets=X.offsets)
        if isinstance(X, NumberedNames) and index is not None:
            return X.numbered_by(index, grow)
    block = settle(X, "X")
    if groups is not None and group_column is not None:
        check_given_once(block, group_column)
        group_column = None
    if isinstance(block, np.ndarray) and block.ndim == 3:
        if (
            groups is None
            and group_column is None
            and block.size
            and block.dtype.kind in NUMERIC_KINDS
        ):
            return _read_stack(block)
        block = list(block)
    if isinstance(block, np.ndarray | nw.DataFrame) or is_sparse(block) or is_table(block):
        return _read_flat(block, groups, group_column)
    if not isinstance(block, list | tuple):
        raise TypeError(f"X is of type {type(block).__name__}; {EXPECTED}")
    if groups is not None:
        raise ValueError(
            "groups goes with one flat X, but X is a list of sequences, which already says "
            "where each sequence ends; leave groups out, or concatenate X"
        )
    sequences = list(block)
    check_list_of_sequences(sequences)
    return _read_list(sequences, index, grow, group_column)


def _read_flat(block: Any, groups: Any, group_column: str | int | None) -> Sequences:
    """Read one block of rows: one sequence, or one per group."""
    if not isinstance(block, list | tuple):
        check_two_dimensional(block, "X")
    n_rows = len(block) if isinstance(block, list | tuple) else block.shape[0]
    if n_rows == 0:
        raise ValueError(f"X has no rows (shape {tuple(block.shape)}); expected at least one")
    form: Form = "array" if isinstance(block, list | tuple) else form_of(block, "X")
    if group_column is not None:
        groups, block = split_off_groups(block, group_column, "X")
    if isinstance(groups, Iterator):
        groups = list(groups)
    # Groups are cheap to check, so a mistake in them shows before X is copied.
    offsets = None if groups is None else read_groups(groups, n_rows, group_column)
    sequences = _read_columns(form, [block], flat=True)
    if offsets is None:
        return sequences
    ids = name_groups(groups, offsets)
    has_names = group_column is not None or not merely_count(ids)
    return replace(sequences, offsets=offsets, ids=ids if has_names else None)


def _read_list(
    sequences: list[Any], index: StringIndex | None, grow: bool, group_column: str | int | None
) -> Sequences:
    """Read a list of sequences, all of one form."""
    plain = read_plain_arrays(sequences) if group_column is None else None
    if plain is not None:
        return plain
    form: Form = "items" if all(map(is_plain_items, sequences)) else _settle_all(sequences)
    if form == "items":
        if group_column is not None:
            raise ValueError(
                f"group_column is {group_column!r}, but X holds dicts or attribute strings, which "
                "have no columns; leave it out: a list of sequences needs no groups"
            )
        return read_items(sequences, index, grow)
    if group_column is not None:
        sequences = [
            split_off_groups(sequence, group_column, f"X[{number}]")[1]
            for number, sequence in enumerate(sequences)
        ]
    return _read_columns(form, sequences, flat=False)


def _settle_all(sequences: list[Any]) -> Form:
    """Settle all sequences of a list in place, and tell the form that they share."""
    first: Form | None = None
    for number, sequence in enumerate(sequences):
        where = f"X[{number}]"
        settled = sequences[number] = settle(sequence, where)
        form = form_of(settled, where)
        if first is None:
            first = form
        elif form != first:
            raise TypeError(
                f"X mixes forms: X[0] is of form {first!r} and {where} of form {form!r}; "
                "give all sequences in one form"
            )
    assert first is not None
    return first


def _read_columns(form: Form, blocks: list[Any], flat: bool) -> Sequences:
    if form == "frame":
        return read_frames(blocks, flat)
    if form == "sparse":
        return read_sparse(blocks, flat)
    return read_arrays(blocks, flat)


def _read_stack(stack: np.ndarray[Any, np.dtype[Any]]) -> Sequences:
    """Read a 3-D array (sequences, positions, features), without a copy where possible."""
    n_sequences, length, n_features = stack.shape
    sequences = read_arrays([stack.reshape(-1, n_features)], flat=False)
    return replace(sequences, offsets=np.arange(n_sequences + 1, dtype=np.int64) * length)
