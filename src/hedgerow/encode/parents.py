"""Parents: in a tree-shaped graph, the position that each position depends on.

Inside hedgerow a parent is an index in its sequence, counted from 0, and -1 is a root.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral
from typing import Any, Literal, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.encode.codes import is_missing
from hedgerow.encode.set_apart import PARENTS, check_column
from hedgerow.parameters import check_choice
from hedgerow.sequences import Schema, Sequences

ParentsFormat = Literal["zero_based", "conllu"]
FORMATS = ("zero_based", "conllu")

# A parent that is None or NaN, that is, a root.
NO_PARENT = np.iinfo(np.int64).min

CONLLU = "If these are heads of CoNLL-U, counted from 1 with 0 for a root, set "
ZERO_BASED = (
    "If parents are counted from 0, with -1 for a root, add 1 to each, or in Python set "
    "parents_format='zero_based'"
)


class ParentsError(ValueError):
    """A parent is invalid.

    Attributes
    ----------
    position : int
        The position of the child, counted over all sequences.
    reason : str
        What is wrong with it, without the place.
    """

    def __init__(self, where: str, position: int, reason: str) -> None:
        super().__init__(f"{where} {reason}")
        self.position = position
        self.reason = reason


@dataclass(frozen=True, eq=False)
class GivenParents:
    """Parents as a user passes them: as an argument, or in a column of X.

    Attributes
    ----------
    values : Any
        One array or list per sequence, or one for all rows of a flat X; None if not given.
    column : str, int or None
        Name or number of a column of X, or a key of dicts, with the parents.
    format : {"zero_based", "conllu"}
        From 0 with -1 for a root, or from 1 with 0 for a root.
    """

    values: Any = None
    column: str | int | None = None
    format: ParentsFormat = "zero_based"

    def check(self) -> None:
        """Raise ValueError for a parameter that is invalid for any data."""
        check_column(PARENTS, self.column)
        check_choice("parents_format", self.format, FORMATS)

    def attach(self, sequences: Sequences, in_column: Any = None) -> Sequences:
        """Sequences with their parents, which were in a column or passed as an argument."""
        if in_column is None and self.values is None:
            return sequences
        name = "parents"
        if self.values is None:
            name = f"parents_column {self.column!r}"
        values = in_column if self.values is None else self.values
        reader = _Reader(sequences, name, self.format)
        schema = replace(sequences.schema, has_parents=True)
        return replace(sequences, schema=schema, parents=reader.read(values))

    def write(self, sequences: Sequences) -> Any:
        """Parents of sequences in this format: one array for a flat X, otherwise a list."""
        begins = np.repeat(sequences.offsets[:-1], sequences.lengths)
        before = np.arange(sequences.n_positions) - begins - 1
        parents = before if sequences.parents is None else sequences.parents.astype(np.int64)
        return sequences.mirror(parents + int(self.format == "conllu"))


def check_parents(parents: list[list[Any]], format: ParentsFormat) -> None:
    """Raise `ParentsError` if the parents of some sequences are wrong."""
    offsets = np.cumsum([0, *map(len, parents)], dtype=np.int64)
    sequences = Sequences(offsets, Schema("items", 0, None, ()), None, None, (), flat=False)
    _Reader(sequences, "parents", format).read(parents)


def take_out_key(sequences: list[Any], key: str | int) -> tuple[list[list[Any]], list[Any]]:
    """The parents under a key of dicts, and the dicts without this key."""
    found: list[list[Any]] = []
    rest: list[Any] = []
    for number, sequence in enumerate(sequences):
        parents = []
        for t, position in enumerate(sequence):
            if not isinstance(position, Mapping):
                raise ValueError(
                    f"parents_column is {key!r}, but X[{number}] holds a "
                    f"{type(position).__name__} at position {t}, where only a dict can have such "
                    f"a key; {PARENTS.argument_for(key)}"
                )
            if key not in position:
                raise ValueError(
                    f"parents_column is {key!r}, but X[{number}] has no such key at position {t}; "
                    "give every position this key, with the value None for a root, or "
                    f"{PARENTS.argument_for(key)}"
                )
            parents.append(position[key])
        found.append(parents)
        rest.append([{k: v for k, v in position.items() if k != key} for position in sequence])
    return found, rest


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads the parents of some sequences, with messages that name the position."""

    sequences: Sequences
    name: str
    format: ParentsFormat

    def read(self, values: Any) -> NDArray[np.int32] | None:
        """Positions of the parents, (N,), -1 for roots; None if all sequences are chains."""
        given = self._numbers(self._flatten(values))
        roots = given == NO_PARENT
        first, root = (0, -1) if self.format == "zero_based" else (1, 0)
        roots |= given == root
        parents = np.where(roots, -1, given - first)
        offsets, lengths = self.sequences.offsets, self.sequences.lengths
        places = np.arange(len(parents)) - np.repeat(offsets[:-1], lengths)
        self._check_range(given, parents, roots, np.repeat(lengths, lengths))
        if (parents == places - 1).all():
            return None
        self._check_itself(given, parents == places)
        self._check_cycles(given, parents, np.repeat(offsets[:-1], lengths))
        return parents.astype(np.int32)

    def _flatten(self, values: Any) -> Any:
        """The parents of all positions, one sequence after another."""
        flat, lengths = self.sequences.flat, self.sequences.lengths.tolist()
        values = self._settle(values, self.name, "row of X" if flat else "sequence of X")
        expected, items = (
            (self.sequences.n_positions, "row") if flat else (len(lengths), "sequence")
        )
        if len(values) != expected:
            each = "one parent for every row" if flat else "a list with one array for each"
            raise ValueError(
                f"{self.name} has {count_of(len(values), 'entry')} but X has "
                f"{count_of(expected, items)}; pass {each}"
            )
        if flat:
            return values
        parts = [self._settle(own, f"{self.name}[{s}]", "position") for s, own in enumerate(values)]
        for s, (own, length) in enumerate(zip(parts, lengths, strict=True)):
            if len(own) != length:
                raise ValueError(
                    f"{self.name}[{s}] has {count_of(len(own), 'parent')} but X[{s}] has "
                    f"{count_of(length, 'position')}; pass one parent for every position"
                )
        if all(isinstance(own, np.ndarray) and own.dtype.kind in "iu" for own in parts):
            return np.concatenate(parts)
        return list(chain.from_iterable(map(_to_list, parts)))

    def _settle(self, values: Any, name: str, item: str) -> Any:
        """A list or an array, if possible."""
        if isinstance(values, list | tuple):
            return values
        if isinstance(values, np.ndarray) and values.ndim > 0:
            return values
        series = nw.from_native(values, allow_series=True, pass_through=True)
        if isinstance(series, nw.Series):
            is_plain = series.dtype.is_numeric() and not series.null_count()
            return series.to_numpy() if is_plain else series.to_list()
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
            raise TypeError(
                f"{name} is {values!r}; expected an entry for every {item} (to name a column of X "
                "instead, set the model's parameter parents_column)"
            )
        return list(values)

    def _numbers(self, values: Any) -> NDArray[np.int64]:
        """Integers, and `NO_PARENT` where there is no parent."""
        if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
            return self._numbers_of_objects(_to_list(values))
        if values.ndim != 1:
            raise ValueError(
                f"{self.name} has shape {values.shape}; expected 1-D, one parent for every row"
            )
        kind = values.dtype.kind
        if kind in "iu":
            return values.astype(np.int64)
        if kind != "f":
            return self._numbers_of_objects(values.tolist())
        missing = np.isnan(values)
        with np.errstate(invalid="ignore"):
            whole = values.astype(np.int64)
        wrong = ~missing & (whole != values)
        if wrong.any():
            self._refuse_value(int(wrong.argmax()), values[wrong.argmax()].item())
        whole[missing] = NO_PARENT
        return whole

    def _numbers_of_objects(self, values: list[Any]) -> NDArray[np.int64]:
        kinds = set(map(type, values))
        if kinds <= {int} and (not values or max(map(abs, values)) < 2**31):
            return np.array(values, np.int64)
        return np.array([self._number(t, value) for t, value in enumerate(values)], np.int64)

    def _number(self, t: int, value: Any) -> int:
        if is_missing(value):
            return int(NO_PARENT)
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value):
            value = int(value)
        is_bool = isinstance(value, bool | np.bool_)
        is_whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        if is_bool or not is_whole or abs(int(value)) >= 2**31:
            self._refuse_value(t, value)
        return int(value)

    def _refuse_value(self, t: int, value: Any) -> NoReturn:
        self._refuse(
            t,
            f"is {value!r}; expected the index of the parent in its sequence, a whole number, or "
            f"{self._root} for a root",
        )

    def _check_range(
        self,
        given: NDArray[np.int64],
        parents: NDArray[np.int64],
        roots: NDArray[np.bool_],
        lengths: NDArray[np.int64],
    ) -> None:
        wrong = ~roots & ((parents < 0) | (parents >= lengths))
        if not wrong.any():
            return
        t = int(wrong.argmax())
        length = int(lengths[t])
        span = f"0 to {length - 1}" if self.format == "zero_based" else f"1 to {length}"
        self._refuse(
            t,
            f"is {given[t]}, but its sequence has {count_of(length, 'position')}; expected {span}, "
            f"counted within the sequence, or {self._root} for a root{self._hint(t, given)}",
        )

    def _check_itself(self, given: NDArray[np.int64], wrong: NDArray[np.bool_]) -> None:
        if wrong.any():
            t = int(wrong.argmax())
            self._refuse(
                t,
                f"is {given[t]}, the position itself; expected another one, or {self._root} for a "
                f"root{self._hint(t, given)}",
            )

    def _check_cycles(
        self,
        given: NDArray[np.int64],
        parents: NDArray[np.int64],
        begins: NDArray[np.int64],
    ) -> None:
        """Raise ValueError if some positions are ancestors of themselves.

        Ancestors 1, 2, 4, 8, ... generations up are computed by doubling, until all are beyond the
        roots. What is left after as many generations as a sequence has positions is on a cycle.
        """
        n_positions = len(parents)
        beyond = n_positions  # the parent of roots, and of itself
        ancestors = np.append(np.where(parents < 0, beyond, parents + begins), beyond)
        n_steps, longest = 1, int(self.sequences.lengths.max())
        while n_steps < longest and (ancestors != beyond).any():
            ancestors, n_steps = ancestors[ancestors], 2 * n_steps
        on_cycle = ancestors[ancestors != beyond]
        if not len(on_cycle):
            return
        first = int(on_cycle.min())
        cycle, begin = [first], int(begins[first])
        while len(cycle) < 5 and (following := int(parents[cycle[-1]]) + begin) != first:
            cycle.append(following)
        places = [str(t - begin) for t in cycle]
        ends = "..." if int(parents[cycle[-1]]) + begin != first else places[0]
        self._refuse(
            first,
            f"is part of a cycle: {' -> '.join([*places, ends])}, positions counted from 0; every "
            f"path of parents must end at a root{self._hint(first, given)}",
        )

    def _refuse(self, t: int, reason: str) -> NoReturn:
        raise ParentsError(self._where(t), t, reason)

    @property
    def _root(self) -> str:
        return "-1" if self.format == "zero_based" else "0"

    def _where(self, t: int) -> str:
        """Name the parent of a position."""
        s, place = self.sequences.locate(t)
        if not self.sequences.flat:
            if self.name == "parents":
                return f"parents[{s}] at position {place}"
            return f"{self.name} of X[{s}] at position {place}"
        if self.sequences.n_sequences == 1:
            return f"{self.name} at row {t}"
        ids = self.sequences.ids
        named = f"sequence {s}" if ids is None else f"group {ids[s]!r}"
        return f"{self.name} at row {t}, position {place} of {named},"

    def _hint(self, t: int, given: NDArray[np.int64]) -> str:
        """What else the parents of a sequence may mean."""
        s, _ = self.sequences.locate(t)
        own = given[self.sequences.offsets[s] : self.sequences.offsets[s + 1]]
        own = own[own != NO_PARENT]
        if self.format == "conllu":
            return f". {ZERO_BASED}" if own.min() == -1 else ""
        in_range = own.min() == 0 and own.max() <= self.sequences.lengths[s]
        return f". {CONLLU}parents_format='conllu'" if in_range else ""


def _to_list(values: Any) -> list[Any]:
    """Settled values as Python objects."""
    found: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return found
