"""Labels: what users call the classes, and the codes that stand for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.encode.codes import code_values, in_blocks, is_missing
from hedgerow.sequences import Sequences

__all__ = ["Labels", "read_labels"]

CONVERT = "labels are strings or integers: convert with .astype(int) or .astype(str)"
MAX_SHOWN = 10


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes of a model.

    Attributes
    ----------
    classes : (K,) array
        The labels, sorted; of string, integer or bool dtype. A code is an index into it.

    Examples
    --------
    >>> import numpy as np
    >>> labels, codes = Labels.learn(np.array(["O", "B", "O"]))
    >>> codes.tolist(), labels.decode(codes).tolist()
    ([1, 0, 1], ['O', 'B', 'O'])
    """

    classes: NDArray[Any]

    @classmethod
    def learn(cls, values: NDArray[Any]) -> tuple[Labels, NDArray[np.int32]]:
        """Learn the classes from labels.

        Parameters
        ----------
        values : (N,) array
            Labels, as `read_labels` gives them.

        Returns
        -------
        labels : Labels
        codes : (N,) int32
        """
        if values.dtype.kind not in "UO":
            classes, inverse = np.unique(values, return_inverse=True)
            return cls(classes), inverse.astype(np.int32, copy=False)
        distinct, codes = code_values(in_blocks(values))
        order = sorted(range(len(distinct)), key=distinct.__getitem__)
        rank = np.empty(len(distinct), np.int32)
        rank[order] = np.arange(len(distinct), dtype=np.int32)
        classes = np.array([distinct[code] for code in order], np.str_)
        if (classes[1:] == classes[:-1]).any():
            place = int((classes[1:] == classes[:-1]).argmax())
            raise ValueError(
                f"labels {distinct[order[place]]!r} and {distinct[order[place + 1]]!r} differ only "
                "by NUL characters at the end, which NumPy does not keep; rename one of them"
            )
        return cls(classes), rank[codes]

    def encode(self, values: NDArray[Any], sequences: Sequences) -> NDArray[np.int32]:
        """Turn labels into codes.

        Parameters
        ----------
        values : (N,) array
            Labels, as `read_labels` gives them.
        sequences : Sequences
            Where the labels stand, for the message about an unknown one.

        Returns
        -------
        codes : (N,) int32
        """
        codes = self.find(values)
        if codes.size and codes.min() < 0:
            position = int((codes < 0).argmax())
            raise ValueError(
                f"unknown label {values[position : position + 1].tolist()[0]!r} at "
                f"{_place(sequences, position)}; known labels: {self._shown()}"
            )
        return codes

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Turn codes, of any shape, into labels."""
        labels: NDArray[Any] = self.classes[codes]
        return labels

    def find(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Code of each label, -1 for an unknown one."""
        if _family(values.dtype) != _family(self.classes.dtype):
            return np.full(len(values), -1, np.int32)
        if _family(values.dtype) == "text":
            code_of = {label: code for code, label in enumerate(self.classes.tolist())}
            found = (map(code_of.get, block, repeat(-1)) for block in in_blocks(values))
            return np.fromiter(chain.from_iterable(found), np.int32, len(values))
        places = np.searchsorted(self.classes, values).clip(max=len(self.classes) - 1)
        return np.where(self.classes[places] == values, places, -1).astype(np.int32)

    def _shown(self) -> str:
        shown = ", ".join(map(repr, self.classes[:MAX_SHOWN].tolist()))
        n_labels = len(self.classes)
        return shown if n_labels <= MAX_SHOWN else f"{shown}, ... ({n_labels} in all)"


def read_labels(y: Any, sequences: Sequences) -> NDArray[Any]:
    """Check labels against their sequences, and concatenate them.

    Parameters
    ----------
    y : list of lists of labels, or flat labels
        For a list X one list, array or Series a sequence; for a flat X one list, array or
        Series. Labels are all strings, all integers or all bools.
    sequences : Sequences
        The X that the labels belong to.

    Returns
    -------
    values : (N,) array
        Of string, integer or bool dtype, or Python strings in an array of objects.
    """
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    if isinstance(y, str | bytes | Mapping | AbstractSet) or not (
        isinstance(y, Iterable) or hasattr(y, "__array__")
    ):
        raise TypeError(f"y is of type {type(y).__name__}; {_expected(sequences)}")
    values = _read_flat(y, sequences) if sequences.flat else _read_list(y, sequences)
    return _check_labels(values, sequences)


def _read_flat(y: Any, sequences: Sequences) -> NDArray[Any]:
    labels = _settle(y, "y")
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise ValueError(f"y has shape {labels.shape}; {_expected(sequences)}")
    if len(labels) != sequences.n_positions:
        raise ValueError(
            f"y has {len(labels)} labels but X has {sequences.n_positions} rows; "
            "pass one label for every row"
        )
    return labels if isinstance(labels, np.ndarray) else _to_objects(labels)


def _read_list(y: Any, sequences: Sequences) -> NDArray[Any]:
    parts = list(_settle(y, "y"))
    if parts and (isinstance(parts[0], str | bytes) or not hasattr(parts[0], "__iter__")):
        raise ValueError(f"y is flat, y[0] is {parts[0]!r}, but X is not; {_expected(sequences)}")
    if len(parts) != sequences.n_sequences:
        raise ValueError(
            f"y has {len(parts)} sequences but X has {sequences.n_sequences}; "
            "pass one list of labels for every sequence"
        )
    parts = [
        part if type(part) is list else _settle(part, f"y[{s}]") for s, part in enumerate(parts)
    ]
    for s, (part, length) in enumerate(zip(parts, sequences.lengths.tolist(), strict=True)):
        if isinstance(part, np.ndarray) and part.ndim != 1:
            raise ValueError(f"y[{s}] has shape {part.shape}; {_expected(sequences)}")
        if len(part) != length:
            raise ValueError(
                f"y[{s}] has {len(part)} labels but X[{s}] has {length} positions; "
                "pass one label for every position"
            )
    kinds = {part.dtype.kind if isinstance(part, np.ndarray) else "O" for part in parts}
    if len(kinds) == 1 and "O" not in kinds:
        return np.concatenate(parts)
    lists = (part.tolist() if isinstance(part, np.ndarray) else part for part in parts)
    return _to_objects(list(chain.from_iterable(lists)))


def _settle(labels: Any, where: str) -> Any:
    """Get a list, a tuple or an array from whatever holds labels."""
    if isinstance(labels, list | tuple | np.ndarray):
        return labels
    if isinstance(labels, str | bytes | Mapping | AbstractSet):
        raise TypeError(f"{where} is of type {type(labels).__name__}; expected a list of labels")
    native = nw.from_native(labels, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.LazyFrame):
        raise TypeError(f"{where} is a DataFrame; pass the one column that holds the labels")
    if isinstance(native, nw.Series):
        return native.to_numpy()
    if hasattr(labels, "__array__"):
        return np.asarray(labels)
    if isinstance(labels, Iterable):
        return list(labels)
    raise TypeError(f"{where} is of type {type(labels).__name__}; expected a list of labels")


def _to_objects(labels: Any) -> NDArray[Any]:
    return np.fromiter(labels, np.object_, len(labels))


def _check_labels(values: NDArray[Any], sequences: Sequences) -> NDArray[Any]:
    """Labels are all strings, all integers or all bools."""
    kind = values.dtype.kind
    if kind in "Uiub":
        return values
    if kind not in "OT":
        # An array of floats, dates or bytes: wrong as a whole, so its first label will do.
        missing = np.isnan(values) if kind in "fmM" else np.zeros(1, np.bool_)
        raise _bad_label(values, int(missing.argmax()), sequences)
    labels = values.tolist()
    types = set(map(type, labels))
    if all(issubclass(cls, str) for cls in types):
        return values.astype(np.object_, copy=False)
    if all(issubclass(cls, bool | np.bool_) for cls in types):
        return values.astype(np.bool_)
    if all(_is_integer(cls) for cls in types):
        return values.astype(np.int64)
    # A missing label comes first: it may be the reason why integers came as floats.
    position = next((p for p, label in enumerate(labels) if is_missing(label)), None)
    if position is not None:
        raise _bad_label(values, position, sequences)
    families = [_type_family(type(label)) for label in labels]
    position = next(
        p for p, family in enumerate(families) if family is None or family != families[0]
    )
    if families[position] is None:
        raise _bad_label(values, position, sequences)
    raise ValueError(
        f"y mixes kinds of labels: {_place(sequences, 0)} is {labels[0]!r} and "
        f"{_place(sequences, position)} is {labels[position]!r}; make all of them strings, "
        "or all integers"
    )


def _bad_label(values: NDArray[Any], position: int, sequences: Sequences) -> Exception:
    label = values[position]
    place = _place(sequences, position)
    if is_missing(label):
        return ValueError(f"{place} is missing ({label}); every position needs a label")
    if isinstance(label, float | np.floating):
        return ValueError(f"Unknown label type: {place} is the float {label}; {CONVERT}")
    if isinstance(label, list | tuple | np.ndarray):
        return ValueError(
            f"{place} is a {type(label).__name__}, not a label; {_expected(sequences)}"
        )
    return TypeError(f"Unknown label type: {place} is {label!r}; {CONVERT}")


def _is_integer(cls: type) -> bool:
    return issubclass(cls, int | np.integer) and not issubclass(cls, bool)


def _type_family(cls: type) -> str | None:
    if issubclass(cls, str):
        return "text"
    if issubclass(cls, bool | np.bool_):
        return "bool"
    return "integer" if _is_integer(cls) else None


def _family(dtype: np.dtype[Any]) -> str:
    return {"U": "text", "O": "text", "b": "bool"}.get(dtype.kind, "integer")


def _place(sequences: Sequences, position: int) -> str:
    if sequences.flat:
        return f"y[{position}]"
    sequence, within = sequences.locate(position)
    return f"y[{sequence}][{within}]"


def _expected(sequences: Sequences) -> str:
    if sequences.flat:
        return "X is flat, so y is 1-D, one label for every row"
    return "X is a list of sequences, so y is a list with one list of labels for every sequence"
