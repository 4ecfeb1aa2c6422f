"""Joins: bindings of variables, and how one more literal extends them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.relational.database import GLOBAL, Database, Ids, Relation, expand_ranges
from hedgerow.relational.mode import BUILT_IN
from hedgerow.relational.shape import NEAR, SLOT, VARIABLE, Literal

__all__ = ["Bindings", "Joiner", "cut_by_position", "number_keys"]

# Number of rows that are joined, or keys that are sorted, at a time: Ctrl-C works in between.
BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Bindings:
    """Values of the variables for which a shape holds, one row for each combination and position.

    Attributes
    ----------
    positions : (n,) int32
        The position that the query is about, in ascending order.
    instances : (n,) int32
        Which constants the slots of the shape are filled with.
    variables : tuple of (n,) int32
        Value of each variable.
    facts : (n,) int64
        The fact that the last literal was joined with.
    """

    positions: Ids
    instances: Ids
    variables: tuple[Ids, ...]
    facts: NDArray[np.int64]

    @classmethod
    def of_positions(cls, n_positions: int) -> Bindings:
        """Bindings of the query without literals, which holds at every position."""
        positions = np.arange(n_positions, dtype=np.int32)
        return cls(positions, np.zeros_like(positions), (), np.zeros(n_positions, np.int64))

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Bindings:
        """Only some rows, in their order."""
        return Bindings(
            self.positions[rows],
            self.instances[rows],
            tuple(values[rows] for values in self.variables),
            self.facts[rows],
        )


@dataclass(frozen=True, eq=False)
class _Index:
    """Facts by the values of some of their arguments, their keys.

    Attributes
    ----------
    levels : list of ((n_keys,) int64, int)
        For each argument after the first: the distinct keys formed by the arguments up to this one,
        ascending, and n_values, the number of values that the argument can have. A key is
        ``k * n_values + value``, where k is the number of the key of the earlier arguments.
    starts : (n_keys + 1,) int64
        Where the facts of each key begin in `order`.
    order : (n_facts,) int64
        The facts by key, those of one key in the order in which they were given.
    """

    levels: list[tuple[NDArray[np.int64], int]]
    starts: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def build(
        cls, columns: list[NDArray[np.int64]], sizes: list[int], facts: NDArray[np.int64]
    ) -> _Index:
        levels = []
        keys, n_keys = columns[0], sizes[0]
        for column, size in zip(columns[1:], sizes[1:], strict=True):
            known, keys = number_keys(keys * size + column)
            levels.append((known, size))
            n_keys = len(known)
        counts = np.bincount(keys, minlength=n_keys)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return cls(levels, starts, facts[np.argsort(keys, kind="stable")])

    def find(self, columns: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], ...]:
        """Where the facts of keys begin in `order`, and how many there are; -1 matches nothing."""
        keys = columns[0]
        valid = keys >= 0
        for column, (known, size) in zip(columns[1:], self.levels, strict=True):
            wanted = keys * size + column
            keys = np.searchsorted(known, wanted)
            keys[keys == len(known)] = 0
            valid &= (column >= 0) & (known[keys] == wanted if len(known) else False)
        keys = np.where(valid, keys, 0)
        starts = self.starts[keys]
        counts = np.where(
            valid, self.starts[np.minimum(keys + 1, len(self.starts) - 1)] - starts, 0
        )
        return starts, counts


class Joiner:
    """Joins bindings with the facts of a database; indexes of facts are kept.

    Parameters
    ----------
    database : Database
        The facts.
    max_bindings : int
        Maximum number of bindings of a query per position; the first ones are kept.
    """

    def __init__(self, database: Database, max_bindings: int) -> None:
        self.database = database
        self._max_bindings = max_bindings
        self._indexes: dict[tuple[str, tuple[int, ...], bool], _Index | None] = {}
        self._built_in: dict[str, Relation] = {}

    def join(self, bindings: Bindings, literal: Literal) -> tuple[Bindings, list[Ids]]:
        """Bindings that satisfy one more literal, and the values of its slots.

        The instances of the result are still those without the new slots, whose values are returned
        separately.
        """
        relation = self._relation(literal.predicate)
        slots = [place for place, term in enumerate(literal.terms) if term.kind == SLOT]
        new = [
            place
            for place, term in enumerate(literal.terms)
            if term.kind == VARIABLE and term.number >= len(bindings.variables)
        ]
        parts, values = [], []
        for rows, facts in self._matches(bindings, literal):
            part = bindings.take(rows)
            part = Bindings(
                part.positions,
                part.instances,
                (*part.variables, *(relation.arguments[facts, place] for place in new)),
                facts,
            )
            filled = [relation.arguments[facts, place] for place in slots]
            kept = self._first_of_each(part, filled)
            if kept is not None:
                part, filled = part.take(kept), [column[kept] for column in filled]
            parts.append(part)
            values.append(filled)
        return _concatenate(parts), [
            np.concatenate([filled[number] for filled in values]) for number in range(len(slots))
        ]

    def _relation(self, predicate: str) -> Relation:
        if predicate in self.database.relations:
            return self.database.relations[predicate]
        if predicate not in self._built_in:
            self._built_in[predicate] = self.database.neighbours(BUILT_IN[predicate])
        return self._built_in[predicate]

    def _matches(
        self, bindings: Bindings, literal: Literal
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Rows of bindings and the facts that they are joined with, in blocks of positions."""
        places, columns = [], []
        for place, term in enumerate(literal.terms):
            if term.kind == NEAR:
                columns.append(self.database.shifted(bindings.positions, term.number))
            elif term.kind == VARIABLE and term.number < len(bindings.variables):
                columns.append(bindings.variables[term.number])
            else:
                continue
            places.append(place)
        found = []
        for of_sequences in (True, False):
            index = self._index(literal.predicate, tuple(places), of_sequences)
            if index is not None:
                keys = [column.astype(np.int64) for column in columns]
                if self._is_scoped(literal.predicate, places, of_sequences):
                    sequences = self.database.sequence_of[bindings.positions].astype(np.int64)
                    keys.insert(0, sequences)
                if not keys:
                    keys = [np.zeros(len(bindings.positions), np.int64)]
                found.append((index.order, *index.find(keys)))
        n_joined = sum((counts for _, _, counts in found), np.zeros(len(bindings.positions), int))
        for begin, end in cut_by_position(bindings.positions, n_joined):
            yield _expand(found, begin, end)

    def _is_scoped(self, predicate: str, places: list[int], of_sequences: bool) -> bool:
        """Whether the sequence is part of the key; not if a position identifies it already."""
        is_position = self._relation(predicate).is_position
        return of_sequences and not any(is_position[place] for place in places)

    def _index(self, predicate: str, places: tuple[int, ...], of_sequences: bool) -> _Index | None:
        """Facts of sequences, or those that hold everywhere; None if there are none."""
        key = (predicate, places, of_sequences)
        if key not in self._indexes:
            self._indexes[key] = self._build_index(*key)
        return self._indexes[key]

    def _build_index(
        self, predicate: str, places: tuple[int, ...], of_sequences: bool
    ) -> _Index | None:
        relation, data = self._relation(predicate), self.database
        facts = np.flatnonzero((relation.scopes != GLOBAL) == of_sequences)
        if not len(facts):
            return None
        columns = [relation.arguments[facts, place].astype(np.int64) for place in places]
        sizes = [
            data.n_positions if relation.is_position[place] else len(data.constants)
            for place in places
        ]
        if self._is_scoped(predicate, list(places), of_sequences):
            columns.insert(0, relation.scopes[facts].astype(np.int64))
            sizes.insert(0, data.n_sequences)
        if not columns:
            columns, sizes = [np.zeros(len(facts), np.int64)], [1]
        return _Index.build(columns, sizes, facts)

    def _first_of_each(self, bindings: Bindings, filled: list[Ids]) -> NDArray[np.bool_] | None:
        """Which rows are among the first `max_bindings` of a query at a position; None: all."""
        most = self._max_bindings
        positions = bindings.positions
        if len(positions) <= most or (positions[most:] != positions[:-most]).all():
            return None
        order = np.lexsort([bindings.instances, *filled, positions])  # stable
        same = np.ones(len(order) - 1, np.bool_)
        for column in (positions, bindings.instances, *filled):
            same &= column[order[1:]] == column[order[:-1]]
        numbers = np.arange(len(order))
        starts = np.maximum.accumulate(np.where(np.concatenate([[False], same]), 0, numbers))
        kept = np.zeros(len(order), np.bool_)
        kept[order[numbers - starts < most]] = True
        return kept


def number_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct keys in ascending order, and the number of each key among them."""
    if len(keys) <= BLOCK:
        return np.unique(keys, return_inverse=True)
    blocks = [keys[start : start + BLOCK] for start in range(0, len(keys), BLOCK)]
    distinct = np.unique(np.concatenate([np.unique(block) for block in blocks]))
    return distinct, np.concatenate([np.searchsorted(distinct, block) for block in blocks])


def cut_by_position(
    positions: Ids, counts: NDArray[np.int64] | None = None
) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks of about `BLOCK` entries; the rows of a position are in one block.

    ``counts`` are the numbers of entries of the rows; None: each row is one entry.
    """
    n_rows = len(positions)
    ends = np.arange(1, n_rows + 1) if counts is None else np.cumsum(counts)
    n_entries = int(ends[-1]) if n_rows else 0
    cuts = np.searchsorted(ends, np.arange(BLOCK, n_entries, BLOCK))
    cuts = np.searchsorted(positions, positions[cuts])  # where the position of the row begins
    bounds = np.unique(np.concatenate([[0], cuts, [n_rows]])).tolist()
    yield from pairwise(bounds) if n_rows else [(0, 0)]


def _expand(
    found: list[tuple[NDArray[np.int64], ...]], begin: int, end: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows, each repeated for every fact that it is joined with, and those facts."""
    rows, facts = [], []
    for order, starts, counts in found:
        rows.append(np.repeat(np.arange(begin, end), counts[begin:end]))
        facts.append(order[expand_ranges(starts[begin:end], counts[begin:end])])
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if len(found) == 1:
        return rows[0], facts[0]
    both = np.concatenate(rows)
    by_row = np.argsort(both, kind="stable")
    return both[by_row], np.concatenate(facts)[by_row]


def _concatenate(parts: list[Bindings]) -> Bindings:
    if len(parts) == 1:
        return parts[0]
    return Bindings(
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.instances for part in parts]),
        tuple(
            np.concatenate(values)
            for values in zip(*(part.variables for part in parts), strict=True)
        ),
        np.concatenate([part.facts for part in parts]),
    )
