"""Classes: the labels of a model and their codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import ALONE, Comm
from hedgerow.encode.codes import code_values, in_blocks
from hedgerow.labels.column import (
    Family,
    LabelColumn,
    family_of_dtype,
    family_of_type,
    place,
)
from hedgerow.labels.numbering import number
from hedgerow.sequences import Sequences

MAX_SHOWN = 10


# Kinds of classes, by the kind of their dtype.
_KINDS = {"U": "text", "i": "integers", "u": "integers", "b": "bools"}


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
    >>> from hedgerow.labels import LabelColumn
    >>> labels, codes = Labels.learn(LabelColumn(np.array(["O", "B", "O"])))
    >>> codes.tolist(), labels.decode(codes).tolist()
    ([1, 0, 1], ['O', 'B', 'O'])
    """

    classes: NDArray[Any]

    @classmethod
    def learn(cls, column: LabelColumn, comm: Comm = ALONE) -> tuple[Labels, NDArray[np.int32]]:
        """Learn the classes from the known labels.

        Parameters
        ----------
        column : LabelColumn
            Labels of N positions, as `read_labels` gives them.
        comm : Comm
            The workers; at least one of them must have a label.

        Returns
        -------
        labels : Labels
            The classes in the labels of this worker.
        codes : (N,) int32
            -1 where the label is missing.
        """
        column.require_any(comm)
        if column.missing is None:
            return cls._learn(column.values)
        known = ~column.missing
        labels, known_codes = cls._learn(column.values[known])
        codes = np.full(len(known), -1, np.int32)
        codes[known] = known_codes
        return labels, codes

    @classmethod
    def _learn(cls, values: NDArray[Any]) -> tuple[Labels, NDArray[np.int32]]:
        if values.dtype.kind not in "UO":
            if values.dtype.kind in "iu" and values.min(initial=0) >= 0:
                found, inverse, _ = number(values, int(values.max(initial=0)) + 1, np.int32)
                classes = found.astype(values.dtype)
            else:
                classes, inverse = np.unique(values, return_inverse=True)
            return cls(classes), inverse.astype(np.int32, copy=False)
        distinct, codes = code_values(in_blocks(values))
        order = sorted(range(len(distinct)), key=distinct.__getitem__)
        rank = np.empty(len(distinct), np.int32)
        rank[order] = np.arange(len(distinct), dtype=np.int32)
        classes = np.array([distinct[code] for code in order], np.str_)
        if (classes[1:] == classes[:-1]).any():
            twin = int((classes[1:] == classes[:-1]).argmax())
            raise ValueError(
                f"labels {distinct[order[twin]]!r} and {distinct[order[twin + 1]]!r} differ only "
                "by NUL characters at the end, which NumPy does not keep; rename one of them"
            )
        return cls(classes), rank[codes]

    @staticmethod
    def union(workers: Sequence[Labels]) -> Labels:
        """The classes of all workers, as if they had been learned together.

        Raises ValueError if they are not of one kind.
        """
        workers = [each for each in workers if len(each.classes)]  # one may know no label at all
        kinds = sorted({_KINDS[each.classes.dtype.kind] for each in workers})
        if len(kinds) > 1:
            raise ValueError(
                f"y holds {' on one worker and '.join(kinds)} on another; pass labels of one type"
            )
        every = np.concatenate([each.classes for each in workers])
        if every.dtype.kind != "U":
            return Labels(np.unique(every))
        return Labels(np.array(sorted(set(every.tolist())), np.str_))

    def encode(
        self, column: LabelColumn, sequences: Sequences, name: str = "y"
    ) -> NDArray[np.int32]:
        """Turn labels into codes.

        Parameters
        ----------
        column : LabelColumn
            Labels of N positions, as `read_labels` gives them.
        sequences : Sequences
            The positions of the labels, for the message about an unknown one.
        name : str
            Name of the argument in the message.

        Returns
        -------
        codes : (N,) int32
            -1 where the label is missing.
        """
        codes, unknown = self.match(column)
        if unknown.any():
            position = int(unknown.argmax())
            raise ValueError(
                f"unknown label {column.values[position : position + 1].tolist()[0]!r} at "
                f"{place(sequences, position, name)}; known labels: {self.shown()}"
            )
        return codes

    def match(self, column: LabelColumn) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Codes of labels, (N,), -1 for missing and unknown ones; and which are unknown, (N,)."""
        codes = self.find(column.values)
        unknown = codes < 0
        if column.missing is not None:
            codes[column.missing] = -1
            unknown &= ~column.missing
        return codes, unknown

    def decode(self, codes: NDArray[Any], *, n_threads: int = 1) -> NDArray[Any]:
        """Turn codes of any shape into labels."""
        labels = np.empty(codes.shape, self.classes.dtype)
        width = self.classes.itemsize
        _core.take_rows(
            np.ascontiguousarray(self.classes).view(np.uint8).reshape(-1, width),
            np.ascontiguousarray(codes, np.int32).reshape(-1),
            labels.reshape(-1).view(np.uint8).reshape(-1, width),
            n_threads,
        )
        return labels

    def find(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Code of each label, -1 for an unknown one."""
        if family_of_dtype(values.dtype) != family_of_dtype(self.classes.dtype):
            return np.full(len(values), -1, np.int32)
        if family_of_dtype(values.dtype) == Family.TEXT:
            code_of = {label: code for code, label in enumerate(self.classes.tolist())}
            found = (map(code_of.get, block, repeat(-1)) for block in in_blocks(values))
            return np.fromiter(chain.from_iterable(found), np.int32, len(values))
        places = np.searchsorted(self.classes, values).clip(max=len(self.classes) - 1)
        return np.where(self.classes[places] == values, places, -1).astype(np.int32)

    def read_codes(self, members: list[Any], name: str) -> list[int]:
        """Codes of labels that a user lists in a parameter of this name."""
        code_of = {label: code for code, label in enumerate(self.classes.tolist())}
        family = family_of_dtype(self.classes.dtype)
        codes = []
        for label in members:
            # True is not 1 here, although a dict treats them as equal; a list is not a label
            # either.
            if family_of_type(type(label)) != family or label not in code_of:
                raise ValueError(
                    f"{name} has the unknown label {label!r}; known labels: {self.shown()}"
                )
            codes.append(code_of[label])
        return codes

    def shown(self) -> str:
        """List the labels for a message, the first few if there are many."""
        return shorten(self.classes.tolist())


def shorten(labels: list[Any]) -> str:
    """List labels for a message, the first few if there are many."""
    shown = ", ".join(map(repr, labels[:MAX_SHOWN]))
    return shown if len(labels) <= MAX_SHOWN else f"{shown}, ... ({len(labels)} in all)"
