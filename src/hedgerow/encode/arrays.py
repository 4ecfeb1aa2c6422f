"""Arrays: 2-D blocks of numbers become dense columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.counting import count_of
from hedgerow.encode.forms import NUMERIC_KINDS, check_two_dimensional, name_of
from hedgerow.sequences import Schema, Sequences

ADVICE = "for words and categories pass a list of lists of dicts, or DataFrames with text columns"
TIMES = "convert times to numbers first, such as seconds"

# Objects that NumPy would convert to numbers, although they are not numbers.
NO_NUMBERS = (str, bytes, np.datetime64, np.timedelta64)


def read_arrays(blocks: Sequence[Any], flat: bool, apart: Sequence[int] = ()) -> Sequences:
    """Concatenate 2-D arrays, or nested lists of numbers, one per sequence.

    `apart` are the numbers of the columns of X that were split off: messages count them too.
    """
    arrays = [to_matrix(block, name_of(s, flat), apart) for s, block in enumerate(blocks)]
    n_features = arrays[0].shape[1]
    for s, array in enumerate(arrays):
        check_same_count(array.shape[1], n_features, s, len(apart))
    dtype = common_dtype(array.dtype for array in arrays)
    if len(arrays) == 1:
        dense = np.ascontiguousarray(arrays[0], dtype=dtype)
    else:
        n_positions = sum(map(len, arrays))
        dense = np.concatenate(arrays, out=np.empty((n_positions, n_features), dtype))
    schema = Schema("columns", n_features, None, (True,) * n_features)
    return Sequences(to_offsets(map(len, arrays)), schema, dense, None, (), flat)


def read_plain_arrays(blocks: list[Any], n_threads: int = 1) -> Sequences | None:
    """Read similar C-contiguous arrays all at once, not one by one; None for others."""
    first = blocks[0]
    if type(first) is not np.ndarray or first.ndim != 2 or first.dtype.kind not in NUMERIC_KINDS:
        return None
    joined = join_plain_arrays(blocks, common_dtype([first.dtype]), n_threads)
    if joined is None:
        return None
    lengths, dense = joined
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    schema = Schema("columns", dense.shape[1], None, (True,) * dense.shape[1])
    return Sequences(offsets, schema, dense, None, (), False)


def join_plain_arrays(
    blocks: list[Any], dtype: np.dtype[Any], n_threads: int = 1
) -> tuple[NDArray[np.int64], NDArray[Any]] | None:
    """Concatenate C-contiguous 1-D or 2-D arrays of one dtype with the same number of columns.

    Returns their lengths, and all rows converted to `dtype`; None if the arrays are not like that.
    Adjacent pieces of one array, as returned by `numpy.split`, are not copied.
    """
    first = blocks[0]
    measured = _core.measure_blocks(blocks) if type(first) is np.ndarray else None
    if measured is None:
        return None
    lengths, are_pieces = measured
    shape = int(lengths.sum()), *first.shape[1:]
    if first.dtype != dtype:
        return lengths, np.concatenate(blocks, out=np.empty(shape, dtype))
    if are_pieces:
        strides = [dtype.itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))]
        joined = np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)
    else:
        joined = np.empty(shape, dtype)
        _core.join_blocks(blocks, joined.reshape(-1).view(np.uint8), n_threads)
    return lengths, joined


def to_offsets(lengths: Iterable[int]) -> NDArray[np.int64]:
    """Turn the S lengths into the S + 1 offsets."""
    return np.cumsum([0, *lengths], dtype=np.int64)


def common_dtype(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Find a dtype that can represent all columns; bools become uint8."""
    numbers = {np.dtype(np.uint8) if dtype.kind == "b" else dtype for dtype in dtypes}
    common: np.dtype[Any] = np.result_type(*sorted(numbers, key=str)).newbyteorder("=")
    return common


def check_same_count(n_columns: int, expected: int, sequence: int, n_apart: int = 0) -> None:
    """Raise ValueError unless a sequence has as many columns as the first.

    `n_apart` is the number of columns that were split off both.
    """
    if n_columns != expected:
        raise ValueError(
            f"X[{sequence}] has {count_of(n_columns + n_apart, 'column')} but X[0] has "
            f"{expected + n_apart}; every sequence needs the same columns"
        )


def to_matrix(block: Any, where: str, apart: Sequence[int] = ()) -> NDArray[Any]:
    """Turn one array, or nested lists, into a 2-D array of numbers.

    For `apart` see `read_arrays`.
    """
    try:
        matrix = np.asarray(_fill_masked(block))
    except ValueError as error:
        raise _ragged(block, where, len(apart), str(error)) from None
    check_two_dimensional(matrix, where)
    kind = matrix.dtype.kind
    if kind in NUMERIC_KINDS:
        return matrix
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: {where} has dtype {matrix.dtype}; "
            "pass real and imaginary parts as two columns"
        )
    if kind == "O":
        return _to_floats(matrix, where, apart)
    if kind in "UST":
        raise _bad_cell(block, where, apart)
    raise TypeError(f"{where} has dtype {matrix.dtype}; expected numbers: convert it first")


def _fill_masked(block: Any) -> Any:
    """Masked values are missing: NaN, or None among objects."""
    if isinstance(block, list | tuple) and any(isinstance(r, np.ma.MaskedArray) for r in block):
        return [_fill_masked(row) for row in block]
    if not isinstance(block, np.ma.MaskedArray) or block.dtype.kind not in f"{NUMERIC_KINDS}O":
        return block
    filled: Any = block.data.astype(np.object_ if block.dtype.kind == "O" else np.float64)
    filled[np.ma.getmaskarray(block)] = None  # NaN among floats
    return filled


def _to_floats(matrix: NDArray[Any], where: str, apart: Sequence[int]) -> NDArray[np.float64]:
    """Objects that are all numbers; None becomes NaN."""
    if any(issubclass(cls, NO_NUMBERS) for cls in set(map(type, matrix.ravel().tolist()))):
        raise _bad_cell(matrix, where, apart)
    try:
        return matrix.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _bad_cell(matrix, where, apart) from None


def _bad_cell(rows: Any, where: str, apart: Sequence[int]) -> Exception:
    """Name the first cell that is not a number."""
    lists = (row.tolist() if isinstance(row, np.ndarray) else row for row in rows)
    columns = np.delete(np.arange(len(rows[0]) + len(apart)), apart).tolist()  # their numbers in X
    cells = ((t, *each) for t, row in enumerate(lists) for each in zip(columns, row, strict=True))
    position, column, cell = next(place for place in cells if _why_no_number(place[2]))
    error = ValueError if isinstance(cell, str | bytes) else TypeError
    advice = TIMES if isinstance(cell, np.datetime64 | np.timedelta64) else ADVICE
    return error(
        f"{where} has {cell!r} at position {position}, column {column}; expected a number"
        f"{_why_no_number(cell)}; {advice}"
    )


def _why_no_number(cell: Any) -> str | None:
    if isinstance(cell, str | bytes):
        return ", not text"
    if isinstance(cell, NO_NUMBERS):
        return ", not a time"
    try:
        float("nan" if cell is None else cell)
    except (TypeError, ValueError, OverflowError) as error:
        return f" ({error})"
    return None


def _ragged(rows: Any, where: str, n_apart: int, reason: str) -> Exception:
    """Name the first position whose row differs in length from the first row."""
    per_sequence = (
        ". If X is a list of 1-D sequences: Reshape your data, each sequence x to "
        "[[value] for value in x]"
    )
    hint = per_sequence if where == "X" else ""
    for position, row in enumerate(rows):
        is_row = hasattr(row, "__len__") and getattr(row, "shape", None) != ()
        if isinstance(row, str | dict) or not is_row:
            return TypeError(
                f"{where} mixes forms: position {position} is of type {type(row).__name__}, where "
                "a row of numbers is expected"
            )
        if len(row) != len(rows[0]):
            return ValueError(
                f"{where} is ragged: position {position} has "
                f"{count_of(len(row) + n_apart, 'column')} but position 0 has "
                f"{len(rows[0]) + n_apart}; every position needs the same columns{hint}"
            )
    return ValueError(f"{where} is not a 2-D block of numbers: {reason}")
