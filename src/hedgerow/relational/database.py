"""Databases: facts of sequences as arrays of integers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.lazy import LazyAttributes, lazy

__all__ = ["GLOBAL", "Database", "Relation", "expand_ranges"]

# Instead of a sequence: the fact holds in all of them.
GLOBAL = -1

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Relation:
    """All facts of one predicate; `ranks` is the order in which they were given.

    Attributes
    ----------
    is_position : tuple of bool
        For each argument, whether it is a position or a constant.
    arguments : (n_facts, n_arguments) int32
        Constants by their ids, positions by their numbers among those of all sequences.
    scopes : (n_facts,) int32
        The sequence in which a fact holds, or `GLOBAL`.
    ranks : (n_facts,) int64
        Rank of a fact among the facts of all predicates, in the order in which they were given.
    """

    is_position: tuple[bool, ...]
    arguments: Ids
    scopes: Ids
    ranks: NDArray[np.int64]

    @classmethod
    def empty(cls, is_position: tuple[bool, ...]) -> Relation:
        """No facts."""
        none = np.empty(0, np.int32)
        return cls(is_position, none.reshape(0, len(is_position)), none, none.astype(np.int64))

    @property
    def n_facts(self) -> int:
        """Number of facts."""
        return len(self.scopes)

    def take(self, facts: NDArray[np.int64]) -> Relation:
        """Only some facts, in the order given."""
        return replace(
            self,
            arguments=self.arguments[facts],
            scopes=self.scopes[facts],
            ranks=self.ranks[facts],
        )

    def renumbered(self, ids: Ids) -> Relation:
        """The same facts with new ids of the constants: ``ids[old]``."""
        arguments = self.arguments.copy()
        for place in np.flatnonzero(np.logical_not(self.is_position)):
            arguments[:, place] = ids[arguments[:, place]]
        return replace(self, arguments=arguments)

    def distinct(self) -> Relation:
        """The same facts without duplicates; global facts are not repeated for a sequence."""
        columns = [self.scopes, *reversed(self.arguments.T)]
        order = np.lexsort(columns)  # by arguments, then by scope: global ones first
        same = np.zeros(len(order), np.bool_)
        same[1:] = (self.arguments[order[1:]] == self.arguments[order[:-1]]).all(axis=1)
        starts = np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
        scopes = self.scopes[order]
        repeated = same & (scopes[starts] == GLOBAL)
        repeated[1:] |= same[1:] & (scopes[1:] == scopes[:-1])
        return self.take(np.sort(order[~repeated])) if repeated.any() else self


@dataclass(frozen=True, eq=False)
class Database(LazyAttributes):
    """Facts about N positions of S sequences.

    Attributes
    ----------
    offsets : (S + 1,) int64
        Sequence s holds the positions ``offsets[s]`` to ``offsets[s + 1]``.
    constants : list of str
        Texts of the constants, by id, in ascending order: ids, and all that is numbered by them,
        do not depend on the order of the sequences.
    relations : dict
        Facts by predicate.
    """

    offsets: NDArray[np.int64]
    constants: list[str]
    relations: dict[str, Relation]

    @classmethod
    def of(
        cls, offsets: NDArray[np.int64], texts: list[str], relations: dict[str, Relation]
    ) -> Database:
        """A database of facts whose constants are numbered in any order."""
        order = sorted(range(len(texts)), key=texts.__getitem__)
        ids = np.empty(len(order), np.int32)
        ids[order] = np.arange(len(order), dtype=np.int32)
        return cls(
            offsets,
            [texts[number] for number in order],
            {name: relation.renumbered(ids) for name, relation in relations.items()},
        )

    @property
    def n_sequences(self) -> int:
        """Number of sequences, S."""
        return len(self.offsets) - 1

    @property
    def n_positions(self) -> int:
        """Number of positions of all sequences together, N."""
        return int(self.offsets[-1])

    @property
    def n_facts(self) -> int:
        """Number of facts of all predicates together."""
        return sum(relation.n_facts for relation in self.relations.values())

    @lazy
    def sequence_of(self) -> Ids:
        """The sequence of each position, (N,)."""
        return np.repeat(np.arange(self.n_sequences, dtype=np.int32), np.diff(self.offsets))

    @lazy
    def constant_ids(self) -> dict[str, int]:
        """Ids of the constants, by text."""
        return {text: number for number, text in enumerate(self.constants)}

    def select(self, sequences: NDArray[np.int64]) -> Database:
        """Some sequences, by number, with the facts that hold in them."""
        lengths = np.diff(self.offsets)[sequences]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shifts = offsets[:-1] - self.offsets[sequences]
        relations = {
            name: _select(relation, sequences, shifts, self.n_sequences)
            for name, relation in self.relations.items()
        }
        return Database(offsets, self.constants, relations)

    def neighbours(self, step: int) -> Relation:
        """Pairs of positions this many steps apart, as facts."""
        positions = np.arange(self.n_positions, dtype=np.int32)
        others = self.shifted(positions, step)
        pairs = np.column_stack([positions, others])[others >= 0]
        return Relation(
            (True, True), pairs, self.sequence_of[pairs[:, 0]], pairs[:, 0].astype(np.int64)
        )

    def shifted(self, positions: Ids, step: int) -> Ids:
        """The positions this many steps after these, -1 beyond the ends of a sequence."""
        others = positions + np.int32(step)
        inside = (others >= 0) & (others < self.n_positions)
        inside &= self.sequence_of[np.where(inside, others, 0)] == self.sequence_of[positions]
        return np.where(inside, others, np.int32(-1))


def expand_ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of all ranges, one after another, given starts and lengths."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)


def _select(
    relation: Relation,
    sequences: NDArray[np.int64],
    shifts: NDArray[np.int64],
    n_sequences: int,
) -> Relation:
    """Facts that hold in some sequences, whose positions move by `shifts`."""
    everywhere = np.flatnonzero(relation.scopes == GLOBAL)
    order = np.argsort(relation.scopes, kind="stable")[len(everywhere) :]
    counts = np.bincount(relation.scopes[order], minlength=n_sequences)
    starts = np.cumsum(counts) - counts
    chosen = order[expand_ranges(starts[sequences], counts[sequences])]
    scopes = np.repeat(np.arange(len(sequences), dtype=np.int32), counts[sequences])
    arguments = relation.arguments[chosen]
    places = np.flatnonzero(relation.is_position)
    arguments[:, places] += shifts[scopes][:, None].astype(np.int32)
    return Relation(
        relation.is_position,
        np.concatenate([relation.arguments[everywhere], arguments]),
        np.concatenate([relation.scopes[everywhere], scopes]),
        np.concatenate([relation.ranks[everywhere], relation.ranks[chosen]]),
    )
