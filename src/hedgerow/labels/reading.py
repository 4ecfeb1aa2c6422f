"""Reading labels: every format of y becomes one column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from hedgerow.counting import count_of
from hedgerow.data_warning import warn_user
from hedgerow.encode.arrays import join_plain_arrays
from hedgerow.encode.codes import is_missing
from hedgerow.labels.column import Family, LabelColumn, family_of_dtype, family_of_type, place
from hedgerow.sequences import Sequences

CONVERT = "labels are strings or integers: convert with .astype(int) or .astype(str)"
# From here on, neighbouring integers are the same float.
LARGEST_FLOAT = 2.0**53
LARGEST_INTEGER = int(np.iinfo(np.int64).max)


def read_labels(
    y: Any, sequences: Sequences, *, name: str = "y", missing_label: Any = None
) -> LabelColumn:
    """Check labels against their sequences, and concatenate them.

    Parameters
    ----------
    y : list of lists of labels, or flat labels
        For a list X, one list, array or Series per sequence; for a flat X, one list, array or
        Series. Labels are all strings, all integers or all bools. None, NaN, NaT and NA mark
        missing labels. Floats without a fraction are read as integers: pandas turns a column of
        integers into floats if a value is missing, and they remain floats when that row is removed.
    sequences : Sequences
        The X that the labels belong to.
    name : str
        Name of `y` in messages.
    missing_label : str, int or bool, optional
        A label that also marks missing labels.

    Returns
    -------
    column : LabelColumn

    Examples
    --------
    >>> import numpy as np
    >>> from hedgerow.encode import encode
    >>> column = read_labels(["B", None, "?"], encode(np.zeros((3, 1))), missing_label="?")
    >>> column.missing.tolist()
    [False, True, True]
    """
    check_missing_label(missing_label)
    if y is None:
        if name == "y":
            raise ValueError("this method requires y to be passed, but the target y is None")
        raise ValueError(f"{name} is None; {_expected(sequences, name)}")
    if isinstance(y, str | bytes | Mapping | AbstractSet) or not (
        isinstance(y, Iterable) or hasattr(y, "__array__")
    ):
        raise TypeError(f"{name} is of type {type(y).__name__}; {_expected(sequences, name)}")
    read = _read_flat if sequences.flat else _read_list
    return _to_column(read(y, sequences, name), missing_label, sequences, name)


def check_missing_label(missing_label: Any) -> None:
    """Raise ValueError unless it can be a label, or is None."""
    family = family_of_type(type(missing_label))
    if missing_label is not None and family not in (Family.TEXT, Family.BOOL, Family.INTEGER):
        raise ValueError(
            f"missing_label is {missing_label!r}; expected a string, an integer or a bool, as the "
            "labels are (None and NaN always mark a missing label)"
        )


def _read_flat(y: Any, sequences: Sequences, name: str) -> NDArray[Any]:
    labels = _settle(y, name)
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == 1:
        warn_user(
            f"A column-vector {name} was passed when a 1d array was expected. Please change the "
            f"shape of {name}, {labels.shape}, to ({len(labels)},): {name}.ravel()",
            DataConversionWarning,
        )
        labels = labels.ravel()
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise ValueError(f"{name} has shape {labels.shape}; {_expected(sequences, name)}")
    if len(labels) != sequences.n_positions:
        raise ValueError(
            f"{name} has {count_of(len(labels), 'label')} but X has "
            f"{count_of(sequences.n_positions, 'row')}; "
            "pass one label for every row"
        )
    return labels if isinstance(labels, np.ndarray) else _to_objects(labels)


def _read_list(y: Any, sequences: Sequences, name: str) -> NDArray[Any]:
    y = _settle(y, name)
    if isinstance(y, np.ndarray) and y.ndim == 0:
        raise ValueError(f"{name} has shape (); {_expected(sequences, name)}")
    parts = list(y)
    if parts and (isinstance(parts[0], str | bytes) or not hasattr(parts[0], "__iter__")):
        first = parts[0].item() if isinstance(parts[0], np.generic) else parts[0]
        raise ValueError(
            f"{name} is flat ({name}[0] is {first!r}), but X is not; {_expected(sequences, name)}"
        )
    joined = _join_plain(parts, sequences)
    if joined is not None:
        return joined
    if len(parts) != sequences.n_sequences:
        raise ValueError(
            f"{name} has {count_of(len(parts), 'sequence')} but X has {sequences.n_sequences}; "
            "pass one list of labels for every sequence"
        )
    parts = [
        part if type(part) in (list, np.ndarray) else _settle(part, f"{name}[{s}]")
        for s, part in enumerate(parts)
    ]
    for s, (part, length) in enumerate(zip(parts, sequences.lengths.tolist(), strict=True)):
        if isinstance(part, np.ndarray) and part.ndim != 1:
            raise ValueError(f"{name}[{s}] has shape {part.shape}; {_expected(sequences, name)}")
        if len(part) != length:
            raise ValueError(
                f"{name}[{s}] has {count_of(len(part), 'label')} but X[{s}] has "
                f"{count_of(length, 'position')}; "
                "pass one label for every position"
            )
    kinds = {part.dtype.kind if isinstance(part, np.ndarray) else "O" for part in parts}
    if len(kinds) == 1 and "O" not in kinds:
        return np.concatenate(parts)
    lists = (part.tolist() if isinstance(part, np.ndarray) else part for part in parts)
    return _to_objects(list(chain.from_iterable(lists)))


def _join_plain(parts: list[Any], sequences: Sequences) -> NDArray[Any] | None:
    """Similar arrays of labels, concatenated all at once, not one by one; None for others."""
    first = parts[0] if parts else None
    if type(first) is not np.ndarray or first.ndim != 1 or first.dtype.kind not in "iub":
        return None
    joined = join_plain_arrays(parts, first.dtype)
    if joined is None or not np.array_equal(joined[0], sequences.lengths):
        return None
    return joined[1]


def _settle(labels: Any, where: str) -> Any:
    """Get a list, a tuple or an array from any container of labels."""
    if isinstance(labels, np.ma.MaskedArray):
        return labels.tolist()  # None where masked
    if isinstance(labels, list | tuple | np.ndarray):
        return labels
    if isinstance(labels, str | bytes | Mapping | AbstractSet):
        raise TypeError(f"{where} is of type {type(labels).__name__}; expected a list of labels")
    native = nw.from_native(labels, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.LazyFrame):
        raise TypeError(f"{where} is a DataFrame; pass the one column that holds the labels")
    if isinstance(native, nw.Series):
        # As an array, integers with gaps would be floats, which lose precision.
        gaps = native.dtype.is_integer() and native.null_count() > 0
        return native.to_list() if gaps else native.to_numpy()
    if hasattr(labels, "__array__"):
        return np.asarray(labels)
    if isinstance(labels, Iterable):
        return list(labels)
    raise TypeError(f"{where} is of type {type(labels).__name__}; expected a list of labels")


def _to_objects(labels: Any) -> NDArray[Any]:
    return np.fromiter(labels, np.object_, len(labels))


def _to_column(
    values: NDArray[Any], missing_label: Any, sequences: Sequences, name: str
) -> LabelColumn:
    """Find the missing labels; the others must be of one kind."""
    if values.dtype.kind == "T":
        values = values.astype(np.object_)
    if len(values) and values.dtype.kind in "Uiub" and missing_label is None:
        return LabelColumn(values)  # all of one kind, and none is missing
    families = _families(values)
    missing = families == Family.MISSING
    if missing_label is not None:
        same = np.flatnonzero(families == family_of_type(type(missing_label)))
        missing[same] = values[same] == missing_label
    labels = _to_labels(values, families, ~missing, sequences, name)
    if not missing.any():
        return LabelColumn(labels)
    return LabelColumn(labels, missing, mark=values[int(missing.argmax())])


def _families(values: NDArray[Any]) -> NDArray[np.int8]:
    """Kind of each value, (N,) numbers of `Family`."""
    families: NDArray[np.int8] = np.full(len(values), family_of_dtype(values.dtype), np.int8)
    if values.dtype.kind == "O":
        labels = values.tolist()
        family_of = {cls: int(family_of_type(cls)) for cls in set(map(type, labels))}
        if set(family_of.values()) != {Family.TEXT}:
            found = map(family_of.__getitem__, map(type, labels))
            families = np.fromiter(found, np.int8, len(labels))
    others = np.flatnonzero(families == Family.OTHER)
    gone = np.fromiter(map(is_missing, values[others]), np.bool_, len(others))
    families[others[gone]] = Family.MISSING
    floats = np.flatnonzero(families == Family.FLOAT)
    numbers = values[floats].astype(np.float64)
    families[floats[np.isnan(numbers)]] = Family.MISSING
    whole = (np.rint(numbers) == numbers) & (np.abs(numbers) < LARGEST_FLOAT)
    families[floats[whole]] = Family.INTEGER
    return families


def _to_labels(
    values: NDArray[Any],
    families: NDArray[np.int8],
    known: NDArray[np.bool_],
    sequences: Sequences,
    name: str,
) -> NDArray[Any]:
    """Check that the known labels are of one kind, and convert them to its dtype."""
    if not known.any():
        return np.zeros(len(values), np.int64)
    first = int(known.argmax())
    family = families[first]
    wrong = known & ((families != family) | (families >= Family.FLOAT))
    if wrong.any():
        position = int(wrong.argmax())
        if families[position] >= Family.FLOAT:
            raise _bad_label(values, position, sequences, name)
        raise ValueError(
            f"{name} mixes kinds of labels: {place(sequences, first, name)} is {values[first]!r} "
            f"and {place(sequences, position, name)} is {values[position]!r}; make all of them "
            "strings, or all integers"
        )
    if values.dtype.kind in "Uiub":
        return values
    if not known.all():
        values = values.copy()
        values[~known] = values[first]
    dtypes = {Family.TEXT: np.object_, Family.BOOL: np.bool_, Family.INTEGER: np.int64}
    try:
        return values.astype(dtypes[Family(family)], copy=False)
    except OverflowError:
        fits = [-LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER for value in values.tolist()]
        position = fits.index(False)
        raise ValueError(
            f"{place(sequences, position, name)} is {values[position]}, too large an integer for a "
            "label; make the labels strings"
        ) from None


def _bad_label(values: NDArray[Any], position: int, sequences: Sequences, name: str) -> Exception:
    label = values[position]
    where = place(sequences, position, name)
    if isinstance(label, float | np.floating):
        return ValueError(f"Unknown label type: {where} is the float {label}; {CONVERT}")
    if isinstance(label, list | tuple | np.ndarray):
        return ValueError(
            f"{where} is a {type(label).__name__}, not a label; {_expected(sequences, name)}"
        )
    return TypeError(f"Unknown label type: {where} is {label!r}; {CONVERT}")


def _expected(sequences: Sequences, name: str) -> str:
    if sequences.flat:
        return f"X is flat, so {name} must be 1-D, one label for every row"
    return (
        f"X is a list of sequences, so {name} must be a list with one list of labels for every "
        "sequence"
    )
