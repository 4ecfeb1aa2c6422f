"""Forms: the format of an input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from numbers import Number
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np

Form = Literal["array", "frame", "sparse", "items"]

EXPECTED = (
    "expected a list of 2-D arrays, of DataFrames, of sparse matrices, or of lists of dicts "
    "or attribute strings; or one 2-D array, DataFrame or sparse matrix"
)
NUMERIC_KINDS = "biuf"
# Forms in messages; `hedgerow.encode.rows` also has lists of any rows.
FORM_WORDS = {
    "array": "an array of numbers",
    "frame": "a DataFrame",
    "sparse": "a sparse matrix",
    "items": "a list of dicts or attribute strings",
    "list": "a list",
}


def name_of(sequence: int, flat: bool) -> str:
    """Name a sequence for a message."""
    return "X" if flat else f"X[{sequence}]"


def is_sparse(value: Any) -> bool:
    """Whether a value is a scipy sparse matrix or array, without importing scipy."""
    return hasattr(value, "tocsr") and hasattr(value, "nnz")


def as_frame(value: Any, where: str) -> nw.DataFrame[Any] | None:
    """Wrap a DataFrame of any library; None for everything else."""
    try:
        frame = nw.from_native(value, eager_only=True, pass_through=True)
    except ValueError as error:
        raise ValueError(
            f"{where} is a DataFrame with a column name used twice; rename one. "
            + " ".join(str(error).split())
        ) from None
    if isinstance(frame, nw.DataFrame):
        return frame
    other = nw.from_native(value, pass_through=True)
    if isinstance(other, nw.LazyFrame):
        raise TypeError(
            f"{where} is a lazy frame; convert it to a frame in memory first, in polars by "
            ".collect(), in Dask by .compute()"
        )
    if isinstance(other, nw.DataFrame):
        raise TypeError(
            f"{where} is a {type(value).__name__}, a table that cannot be read as it is; convert "
            "it to a DataFrame of pandas or polars, or to an Arrow table: pyarrow.Table"
        )
    return None


def settle(value: Any, where: str) -> Any:
    """Turn a value into a list, tuple, ndarray, wrapped frame or sparse matrix.

    Other iterables become lists; a 1-D array of objects is a list as well. Strings, dicts, sets and
    scalars are returned unchanged, so that the caller can raise an error.
    """
    if not isinstance(value, np.ndarray):
        if isinstance(value, list | tuple | str | bytes | Mapping | AbstractSet | Number):
            return value
        if is_sparse(value):
            return value
        frame = as_frame(value, where)
        if frame is not None:
            return frame
        if hasattr(value, "__array__"):
            value = np.asarray(value)
        elif isinstance(value, Iterable):
            return list(value)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "O":
        return value.tolist()
    return value


def is_plain_items(sequence: Any) -> bool:
    """A quick check whether a sequence is certainly a list of items."""
    if type(sequence) is not list or not sequence:
        return False
    position = sequence[0]
    return type(position) is dict or (
        type(position) is list and bool(position) and type(position[0]) is str
    )


def form_of(sequence: Any, where: str) -> Form:
    """Return the form of one settled sequence; raises an error if it cannot be a sequence."""
    if isinstance(sequence, np.ndarray):
        form: Form = "array"
    elif isinstance(sequence, list | tuple):
        return _form_of_list(sequence, where)
    elif isinstance(sequence, nw.DataFrame):
        form = "frame"
    elif is_sparse(sequence):
        form = "sparse"
    else:
        # Objects with their own conversion to attributes say so.
        own_way = getattr(sequence, "how_to_encode", None)
        why = f"not a sequence; {EXPECTED}" if own_way is None else own_way
        raise TypeError(f"{where} is {_a(sequence)}, {why}")
    check_two_dimensional(sequence, where)
    if sequence.shape[0] == 0:
        raise _empty(where)
    return form


def check_two_dimensional(block: Any, where: str) -> None:
    """Raise ValueError unless a block is two-dimensional and has at least one column."""
    shape = tuple(block.shape)
    if len(shape) != 2:
        raise ValueError(
            f"{where} is {len(shape)}-D with shape {shape}; expected 2-D, (positions, features). "
            "Reshape your data: x.reshape(-1, 1) for one feature per position, "
            "x.reshape(1, -1) for one position"
        )
    if shape[1] == 0:
        raise ValueError(
            f"{where} has 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )


def is_table(value: Any) -> bool:
    """Whether nested plain lists are the rows of one 2-D array of numbers."""
    if not (isinstance(value, list | tuple) and value):
        return False
    first = value[0]
    return isinstance(first, list | tuple) and bool(first) and _is_number(first[0])


def _form_of_list(sequence: list[Any] | tuple[Any, ...], where: str) -> Form:
    if not len(sequence):
        raise _empty(where)
    for position in sequence:
        if isinstance(position, Mapping | AbstractSet):
            return "items"
        if isinstance(position, list | tuple):
            if not position:
                continue  # a position without attributes: check the next one
            return "items" if isinstance(position[0], str) else "array"
        if isinstance(position, str | bytes):
            raise TypeError(
                f"{where} is a list of strings such as {position!r}; expected a list of dicts or "
                "of lists of attribute strings. For words write [[word] for word in sequence]; "
                "if X is one sequence of attribute lists, wrap it in a list: [X]"
            )
        if hasattr(position, "__array__") and not isinstance(position, np.generic):
            return "array"
        if _is_number(position):
            raise ValueError(
                f"{where} is a 1-D list of numbers; expected 2-D, (positions, features). "
                "Reshape your data: [[value] for value in sequence] for one feature per position"
            )
        raise TypeError(
            f"{where} holds {_a(position)} as a position; expected a row of numbers, a dict or "
            "a list of attribute strings"
        )
    return "items"


def check_list_of_sequences(sequences: list[Any]) -> None:
    """Raise an error for an empty list, or for a single sequence that is not wrapped in a list."""
    if not sequences:
        raise ValueError("X is empty; expected at least one sequence")
    first = sequences[0]
    if isinstance(first, Mapping | AbstractSet) and not is_sparse(first):
        raise TypeError(
            f"X is a flat list: X[0] is {_a(first)}, one position; expected a list of "
            "sequences. Wrap a single sequence in a list: [X]"
        )
    if isinstance(first, str | bytes):
        raise TypeError(
            f"X is a flat list of strings: X[0] is {first!r}; expected a list of sequences of "
            "dicts or attribute lists. Wrap a single sequence in a list: "
            "[[[word] for word in X]]"
        )
    if _is_number(first):
        raise ValueError(
            "X is a 1-D list of numbers; expected 2-D, (positions, features). Reshape your "
            "data: [[value] for value in X] for one feature per position"
        )


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, Number | np.bool_)


def _empty(where: str) -> ValueError:
    return ValueError(f"{where} is empty; a sequence needs at least one position: drop it")


def _a(value: Any) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
