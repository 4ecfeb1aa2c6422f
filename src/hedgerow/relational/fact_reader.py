"""Reading of facts: atoms, which are tuples, become the arrays of a `Database`."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.encode.codes import is_missing
from hedgerow.relational.database import GLOBAL, Database, Relation

__all__ = ["At", "Constants", "FactReader", "Place", "check_texts", "text_of", "to_list"]

AnyValue = TypeVar("AnyValue")


@dataclass(frozen=True)
class At:
    """A position of the same sequence, as an argument of a fact: ``("head", At(2))``.

    Parameters
    ----------
    position : int
        Index of the position, from 0.
    """

    position: int


@dataclass(frozen=True)
class Place:
    """The place of atoms: a position, a sequence, or (with neither) the background.

    Attributes
    ----------
    where : str
        Name in messages.
    sequence : int
        The sequence, or `GLOBAL`.
    first, n_positions : int
        Number of its first position among those of all sequences, and how many it has.
    position : int or None
        The position among those of all sequences.
    """

    where: str
    sequence: int = GLOBAL
    first: int = 0
    n_positions: int = 0
    position: int | None = None


class Constants:
    """Ids of constants, by their texts, in the order in which they first appear."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The id of a constant; a new one if it has none."""
        return self.ids.setdefault(text, len(self.ids))

    def texts(self) -> list[str]:
        """The texts of all constants, by id."""
        return list(check_texts(self.ids))


@dataclass
class _Rows:
    """Facts of one predicate, while they are read: arguments one after the other."""

    is_position: tuple[bool, ...]
    where: str  # the first one
    arguments: list[int] = field(default_factory=list)
    scopes: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)


class FactReader:
    """Collects facts and checks that they are consistent."""

    def __init__(self) -> None:
        self.constants = Constants()
        self._rows: dict[str, _Rows] = {}
        self._n_facts = 0

    def read(self, atoms: Any, place: Place) -> None:
        """Read all atoms of one place; those of a set in sorted order, which is reproducible."""
        listed = to_list(
            atoms, place.where, "a set or a list of atoms, tuples such as ('cd', 'thesis')"
        )
        for atom in sorted(listed, key=repr) if isinstance(atoms, AbstractSet) else listed:
            self._read_atom(atom, place)

    def database(self, offsets: NDArray[np.int64]) -> Database:
        """All facts that were read, without duplicates."""
        relations = {
            name: Relation(
                rows.is_position,
                np.array(rows.arguments, np.int32).reshape(len(rows.ranks), len(rows.is_position)),
                np.array(rows.scopes, np.int32),
                np.array(rows.ranks, np.int64),
            ).distinct()
            for name, rows in self._rows.items()
        }
        return Database.of(offsets, self.constants.texts(), check_texts(relations))

    def _read_atom(self, atom: Any, place: Place) -> None:
        if not (isinstance(atom, tuple | list) and atom and isinstance(atom[0], str)):
            raise TypeError(
                f"{place.where} holds {atom!r}; expected an atom, a tuple of a predicate and its "
                "arguments, such as ('cd', 'thesis')"
            )
        arguments, kinds = [], []
        if place.position is not None:
            arguments.append(place.position)
            kinds.append(True)
        for value in atom[1:]:
            is_position = isinstance(value, At)
            kinds.append(is_position)
            if is_position:
                arguments.append(_find_position(value, atom, place))
            elif type(value) is str:
                arguments.append(self.constants.number(value))
            else:
                arguments.append(
                    self.constants.number(text_of(value, f"{atom!r} at {place.where}"))
                )
        rows = self._rows.get(atom[0])
        if rows is None:
            rows = self._rows[atom[0]] = _Rows(tuple(kinds), f"{atom!r} at {place.where}")
        elif rows.is_position != tuple(kinds):
            raise _differing(atom, tuple(kinds), rows, place)
        rows.arguments += arguments
        rows.scopes.append(place.sequence)
        rows.ranks.append(self._n_facts)
        self._n_facts += 1


def to_list(value: Any, where: str, expected: str) -> list[Any]:
    """A list of the elements of a collection; TypeError if it is not one, or is text."""
    try:
        if not isinstance(value, str | bytes | Mapping):
            return list(value)
    except TypeError:
        pass  # not iterable
    raise TypeError(f"{where} is {value!r}; expected {expected}")


def check_texts(texts: dict[str, AnyValue]) -> dict[str, AnyValue]:
    """Raise ValueError if texts, the keys, cannot be written to a file."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"facts hold text that is not valid Unicode, {error.object[error.start :][:20]!r}; "
            "decode it with the right encoding"
        ) from None
    return texts


def text_of(value: Any, where: str) -> str:
    """The text of a constant; 3, 3.0 and "3" are the same one."""
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        raise ValueError(
            f"{where} has a missing value; leave the fact out, or use a constant such as 'unknown'"
        )
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    raise TypeError(
        f"{where} has the argument {value!r} of type {type(value).__name__}; expected a string, a "
        "number, or At(position)"
    )


def _find_position(at: At, atom: Any, place: Place) -> int:
    """The number of a position among those of all sequences."""
    if place.sequence == GLOBAL:
        raise ValueError(
            f"{atom!r} of {place.where} names a position, but holds for all sequences; put it at a "
            "position, or among the facts of one sequence: per_sequence"
        )
    number = at.position
    is_number = isinstance(number, Integral) and not isinstance(number, bool)
    if not (is_number and 0 <= number < place.n_positions):
        last = place.n_positions - 1
        raise ValueError(
            f"{atom!r} at {place.where} names position {number!r}, but the sequence has "
            f"{count_of(place.n_positions, 'position')}; expected At(0)"
            + (f" to At({last})" if last else "")
        )
    return place.first + int(number)


def _differing(atom: Any, kinds: tuple[bool, ...], rows: _Rows, place: Place) -> ValueError:
    def form(kinds: tuple[bool, ...]) -> str:
        return f"{atom[0]}({','.join('t' if each else 'c' for each in kinds)})"

    return ValueError(
        f"{atom!r} at {place.where} is of the form {form(kinds)}, but {rows.where} of the form "
        f"{form(rows.is_position)}, t being a position and c a constant; all facts of a predicate "
        "must have the same number and kinds of arguments (a fact at a position has that position "
        "as its first argument): rename one predicate"
    )
