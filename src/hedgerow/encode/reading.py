"""Encoding: every accepted format of X becomes `Sequences` here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw
import numpy as np

from hedgerow.encode.arrays import read_arrays, read_plain_arrays
from hedgerow.encode.cut_frame import CutFrame
from hedgerow.encode.forms import (
    EXPECTED,
    FORM_WORDS,
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
from hedgerow.encode.groups import name_groups, name_sequences, read_groups
from hedgerow.encode.items import read_items
from hedgerow.encode.numbered_names import NumberedNames
from hedgerow.encode.parents import GivenParents, take_out_key
from hedgerow.encode.set_apart import GROUPS, PARENTS, Role, check_given_once, split_off
from hedgerow.encode.sparse import read_sparse
from hedgerow.encode.table_store import StoredTable
from hedgerow.sequences import Sequences

if TYPE_CHECKING:
    from hedgerow._core import StringIndex


def encode(
    X: Any,
    groups: Any = None,
    index: StringIndex | None = None,
    grow: bool = True,
    group_column: str | int | None = None,
    parents: GivenParents | None = None,
    n_threads: int = 1,
) -> Sequences:
    """Turn user input into `Sequences`.

    Parameters
    ----------
    X : list of sequences, or one flat block of rows
        A sequence is a 2-D array (positions, features), a DataFrame, a sparse matrix, or a list of
        dicts or of lists of attribute strings. Any iterable of sequences is accepted, and so is a
        3-D array. A flat block is one 2-D array, DataFrame or sparse matrix.
    groups : array-like of hashable ids, optional
        For a flat X, the sequence of each row; the rows of a sequence must be consecutive. Without
        it, a flat X is one sequence.
    index : StringIndex, optional
        Names of the attributes; needed for dicts and attribute strings only.
    grow : bool
        Whether attributes that are not in `index` are added to it; otherwise they are dropped.
    group_column : str or int, optional
        Name or number of the column of X with the group ids, instead of `groups`; an X without a
        column of this name needs `groups`. It is not a feature; in a list of sequences, where it is
        not needed, it is dropped.
    parents : GivenParents, optional
        The parents of positions in tree-shaped graphs, or the column of X that contains them, which
        is not a feature. Without it, sequences are chains.
    n_threads : int
        Number of threads that copy arrays and look up names.

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
    parents = GivenParents() if parents is None else parents
    if isinstance(X, StoredTable):
        return parents.attach(X.sequences)
    columns = {GROUPS: group_column, PARENTS: parents.column}
    apart = {role: column for role, column in columns.items() if column is not None}
    fast = _read_known(X, index, grow, parents) if groups is None and GROUPS not in apart else None
    if fast is not None:
        return fast
    block = settle(X, "X")
    for role, given in ((GROUPS, groups), (PARENTS, parents.values)):
        if given is not None and role in apart:
            check_given_once(block, role, apart.pop(role))
    if isinstance(block, np.ndarray) and block.ndim == 3:
        is_plain = block.size > 0 and block.dtype.kind in NUMERIC_KINDS
        if groups is None and not apart and is_plain:
            return parents.attach(_read_stack(block))
        block = list(block)
    if isinstance(block, np.ndarray | nw.DataFrame) or is_sparse(block) or is_table(block):
        return parents.attach(*_read_flat(block, groups, apart))
    if not isinstance(block, list | tuple):
        raise TypeError(f"X is of type {type(block).__name__}; {EXPECTED}")
    if groups is not None:
        raise ValueError(
            "groups is for one flat X, but X is a list of sequences, which needs no groups; leave "
            "groups out, or concatenate X"
        )
    sequences = list(block)
    check_list_of_sequences(sequences)
    return parents.attach(*_read_list(sequences, index, grow, apart, n_threads))


def _read_known(
    X: Any, index: StringIndex | None, grow: bool, parents: GivenParents
) -> Sequences | None:
    """Read input that was made for fast reading; None for all other input."""
    if isinstance(X, CutFrame):
        frame, in_frames = X.frame, None
        if parents.column is not None and parents.values is None:
            found, frame = split_off(frame, {PARENTS: parents.column}, "X")
            in_frames = [found[PARENTS][begin:end] for begin, end in pairwise(X.offsets.tolist())]
        sequences = replace(read_frames([frame], flat=False), offsets=X.offsets)
        return parents.attach(sequences, in_frames)
    if isinstance(X, NumberedNames) and index is not None and parents.column is None:
        return parents.attach(X.numbered_by(index, grow))
    return None


def _read_flat(
    block: Any, groups: Any, apart: dict[Role, str | int]
) -> tuple[Sequences, Any | None]:
    """Read one block of rows, with one sequence or one per group, and its column of parents."""
    if not isinstance(block, list | tuple):
        check_two_dimensional(block, "X")
    n_rows = len(block) if isinstance(block, list | tuple) else block.shape[0]
    if n_rows == 0:
        raise ValueError(f"X has no rows (shape {tuple(block.shape)}); expected at least one")
    form: Form = "array" if isinstance(block, list | tuple) else form_of(block, "X")
    found: dict[Role, Any] = {}
    if apart:
        found, block = split_off(block, apart, "X")
    group_column = apart.get(GROUPS)
    groups = found.get(GROUPS, groups)
    if isinstance(groups, Iterator):
        groups = list(groups)
    # Checking groups is cheap, so errors are found before X is copied.
    offsets = None if groups is None else read_groups(groups, n_rows, group_column)
    sequences = _read_columns(form, [block], apart, flat=True)
    if offsets is not None:
        ids = name_groups(groups, offsets)
        sequences = replace(sequences, offsets=offsets)
        sequences = name_sequences(sequences, ids, are_kept=group_column is not None)
    return sequences, found.get(PARENTS)


def _read_list(
    sequences: list[Any],
    index: StringIndex | None,
    grow: bool,
    apart: dict[Role, str | int],
    n_threads: int,
) -> tuple[Sequences, list[Any] | None]:
    """Read a list of sequences of the same format, and their columns of parents."""
    plain = None if apart else read_plain_arrays(sequences, n_threads)
    if plain is not None:
        return plain, None
    form: Form = "items" if all(map(is_plain_items, sequences)) else _settle_all(sequences)
    if form == "items":
        if GROUPS in apart:
            raise ValueError(
                f"group_column is {apart[GROUPS]!r}, but X holds dicts or attribute strings, which "
                "have no columns; leave it out: a list of sequences needs no groups"
            )
        parents = None
        if PARENTS in apart:
            parents, sequences = take_out_key(sequences, apart[PARENTS])
        return read_items(sequences, index, grow, n_threads), parents
    if not apart:
        return _read_columns(form, sequences, apart, flat=False), None
    split = [split_off(each, apart, f"X[{number}]") for number, each in enumerate(sequences)]
    columns = [found[PARENTS] for found, _ in split] if PARENTS in apart else None
    return _read_columns(form, [rest for _, rest in split], apart, flat=False), columns


def _settle_all(sequences: list[Any]) -> Form:
    """Settle all sequences of a list in place, and return their common form."""
    first: Form | None = None
    for number, sequence in enumerate(sequences):
        where = f"X[{number}]"
        settled = sequences[number] = settle(sequence, where)
        form = form_of(settled, where)
        if first is None:
            first = form
        elif form != first:
            raise TypeError(
                f"X mixes forms: X[0] is {FORM_WORDS[first]} and {where} is {FORM_WORDS[form]}; "
                "give all sequences in one form"
            )
    assert first is not None
    return first


def _read_columns(
    form: Form, blocks: list[Any], apart: dict[Role, str | int], flat: bool
) -> Sequences:
    """Read blocks of columns, without those that were split off, `apart`."""
    if form == "frame":
        return read_frames(blocks, flat)
    if form == "sparse":
        return read_sparse(blocks, flat, len(apart))
    return read_arrays(blocks, flat, [int(number) for number in apart.values()])


def _read_stack(stack: np.ndarray[Any, np.dtype[Any]]) -> Sequences:
    """Read a 3-D array (sequences, positions, features), without a copy if possible."""
    n_sequences, length, n_features = stack.shape
    sequences = read_arrays([stack.reshape(-1, n_features)], flat=False)
    return replace(sequences, offsets=np.arange(n_sequences + 1, dtype=np.int64) * length)
