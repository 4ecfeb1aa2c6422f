"""Frames: DataFrames become dense columns and categorical columns."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.encode.arrays import common_dtype, to_offsets
from hedgerow.encode.categories import (
    category_of,
    is_bool,
    is_number,
    kind_of_values,
    other_spellings,
)
from hedgerow.encode.codes import BLOCK, code_values, is_missing
from hedgerow.encode.forms import name_of
from hedgerow.encode.schema import first_difference
from hedgerow.sequences import Categorical, Schema, Sequences

Frame: TypeAlias = "nw.DataFrame[Any]"
# One column, with one part per frame.
Column: TypeAlias = "tuple[nw.Series[Any], ...]"

# Number of bytes of the dense array that are written column by column: fits into a core's cache.
TILE = 1 << 18

# Libraries in whose frames tables are returned.
LIBRARIES = {nw.Implementation.PANDAS: "pandas", nw.Implementation.POLARS: "polars"}

# Types of objects that cannot be categories, except in a categorical column.
NO_CATEGORIES = (
    *(datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64),
    *(complex, np.complexfloating, bytes),
)


def read_frames(blocks: Sequence[Frame], flat: bool) -> Sequences:
    """Read DataFrames, one per sequence: numbers and bools are dense, other columns categorical."""
    offsets = to_offsets(map(len, blocks))
    names = blocks[0].columns
    _check_names_apart(names)
    for number, block in enumerate(blocks):
        check_same_columns(block, blocks[0], number)
    parts = _join(blocks)
    numbers: list[list[NDArray[Any]]] = []
    categorical: list[Categorical] = []
    numeric: list[bool] = []
    for column in zip(*(part.iter_columns() for part in parts), strict=True):
        numeric.append(_is_numeric(column, flat))
        if numeric[-1]:
            numbers.append([_to_numbers(series) for series in column])
        else:
            categorical.append(_to_categorical(column))
    named = all(isinstance(name, str) for name in names)
    schema = Schema(
        "columns",
        len(names),
        tuple(names) if named else None,
        tuple(numeric),
        LIBRARIES.get(blocks[0].implementation),
    )
    dense = _to_dense(numbers, int(offsets[-1])) if numbers else None
    return Sequences(offsets, schema, dense, None, tuple(categorical), flat)


def _check_names_apart(names: Sequence[Any]) -> None:
    """Raise an error for names that differ only in type, such as 1 and "1"."""
    first: dict[str, Any] = {}
    for name in names:
        if first.setdefault(str(name), name) is not name:
            raise ValueError(
                f"X has columns named {first[str(name)]!r} and {name!r}, which are equal "
                "when converted to text; rename one"
            )


def check_same_columns(block: Frame, first: Frame, number: int) -> None:
    """Raise unless a frame is of the same library as the first, and has the same columns."""
    if block.implementation is not first.implementation:
        raise TypeError(
            f"X mixes forms: X[0] is a {first.implementation} frame and X[{number}] a "
            f"{block.implementation} frame; give all sequences in one form"
        )
    if block.columns != first.columns:
        difference = first_difference(first.columns, block.columns, "X[0]", f"X[{number}]")
        raise ValueError(
            f"X[{number}] has different columns from X[0]: {difference}; "
            "every sequence needs the same columns in the same order"
        )


def _join(blocks: Sequence[Frame]) -> Sequence[Frame]:
    """One frame instead of many if the dtypes agree: it is much faster to read."""
    schema = blocks[0].schema
    # Two enums with different categories look alike here, and cannot be joined.
    joinable = len(blocks) > 1 and not any(dtype == nw.Enum for dtype in schema.values())
    if joinable and all(block.schema == schema for block in blocks):
        return [nw.concat(list(blocks))]
    return blocks


def _is_numeric(column: Column, flat: bool) -> bool:
    """Whether a column contains numbers; a part without any value fits both kinds."""
    flags = [_is_numeric_part(series, name_of(s, flat)) for s, series in enumerate(column)]
    if len(set(flags)) == 1:
        return flags[0]
    filled = [s for s, series in enumerate(column) if series.null_count() < len(series)]
    for s in filled:
        if flags[s] != flags[filled[0]]:
            raise ValueError(
                f"column {column[0].name!r} is {_kind(flags[filled[0]])} in X[{filled[0]}] but "
                f"{_kind(flags[s])} in X[{s}]; convert it to one kind"
            )
    return flags[filled[0]] if filled else True


def _is_numeric_part(series: nw.Series[Any], where: str) -> bool:
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return True
    if any(dtype == text for text in (nw.String, nw.Categorical, nw.Enum, nw.Object)):
        return False
    if series.null_count() == len(series):
        return True
    native = series.to_native()
    kind = native.dtype if hasattr(native, "dtype") else native.type  # Arrow has types
    raise TypeError(
        f"column {series.name!r} of {where} has dtype {kind}; expected "
        "numbers, bools, strings or categories: convert it first"
    )


def _kind(numeric: bool) -> str:
    return "numeric" if numeric else "text"


def _to_numbers(series: nw.Series[Any]) -> NDArray[Any]:
    """Read one part of a numeric column; nulls become NaN."""
    n_null = 0 if series.dtype.is_float() else series.null_count()
    if n_null == len(series):
        return np.full(len(series), np.nan, np.float32)
    wide = series.dtype in (nw.Int128, nw.UInt128)  # NumPy has no such integers
    if wide or (n_null and series.dtype == nw.Boolean):
        series = series.cast(nw.Float64)
    values: NDArray[Any] = series.to_numpy()
    # Decimals and other exact numbers are objects.
    return values.astype(np.float64) if values.dtype.kind == "O" else values


def _to_dense(columns: Sequence[Sequence[NDArray[Any]]], n_positions: int) -> NDArray[Any]:
    """Copy columns into a dense array, tile by tile, so that both sides stay in the cache."""
    dtype = common_dtype(part.dtype for column in columns for part in column)
    dense = np.empty((n_positions, len(columns)), dtype)
    step = max(1, TILE // (len(columns) * dtype.itemsize))
    stop = 0
    for parts in zip(*columns, strict=True):
        start, stop = stop, stop + len(parts[0])
        for low in range(start, stop, step):
            tile = dense[low : min(low + step, stop)]
            for number, values in enumerate(parts):
                tile[:, number] = values[low - start : low - start + len(tile)]
    return dense


def _to_categorical(column: Column) -> Categorical:
    """Encode the values of a text column as strings, with sorted categories."""
    name = str(column[0].name)
    try:
        distinct, codes = _code_apart(column)
    except TypeError as error:
        raise TypeError(
            f"column {name!r} of X holds values that are not hashable ({error}); expected numbers, "
            "bools, strings or categories: convert it first"
        ) from None
    strings = [None if is_missing(value) else category_of(value) for value in distinct]
    categories = sorted({string for string in strings if string is not None})
    rank: dict[str | None, int] = {string: code for code, string in enumerate(categories)}
    ranks = np.array([rank.get(string, -1) for string in strings], np.int32)
    values = [value for value, string in zip(distinct, strings, strict=True) if string is not None]
    if any(series.dtype == nw.Object for series in column):
        _check_objects(values, name)
    kind = kind_of_values(values)
    numbers = values if kind == "numbers" else filter(is_number, values)
    spellings = {category_of(value): other_spellings(value) for value in numbers}
    declared = any(series.dtype in (nw.Categorical, nw.Enum) for series in column)
    return Categorical(name, ranks[codes], categories, kind, spellings, declared)


def _check_objects(values: list[Any], name: str) -> None:
    """Raise an error for Python objects that would not be categories in a typed column."""
    for value in values:
        if isinstance(value, NO_CATEGORIES):
            raise TypeError(
                f"column {name!r} of X holds {value!r}; expected numbers, bools, strings or "
                "categories: convert it first"
            )
    if all(map(is_number, values)):
        fractions = [v for v in values if not isinstance(v, Integral) and float(v) % 1]
        if fractions:
            raise TypeError(
                f"column {name!r} of X holds numbers such as {fractions[0]!r} as Python objects, "
                "which would be categories; convert it to a numeric dtype, or to strings"
            )


def _code_apart(column: Column) -> tuple[list[Any], NDArray[np.int32]]:
    """Number the values of a column; True and 1, which are equal, remain distinct."""
    types: set[type] = set()
    distinct, codes = code_values(_noting_types(_lists(column), types))
    if {bool, np.bool_}.isdisjoint(types) or len(types) == 1:
        return distinct, codes
    texts = ([str(v) if is_bool(v) else v for v in values] for values in _lists(column))
    return code_values(texts)


def _noting_types(blocks: Iterator[list[Any]], types: set[type]) -> Iterator[list[Any]]:
    for block in blocks:
        types.update(map(type, block))
        yield block


def _lists(column: Column) -> Iterator[list[Any]]:
    for series in column:
        for start in range(0, len(series), BLOCK):
            yield series[start : start + BLOCK].to_list()
