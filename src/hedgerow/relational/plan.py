"""Plans: shapes of queries that were found in training, and the constants that fill them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.relational.database import Database, Ids
from hedgerow.relational.joins import Bindings, Joiner, cut_by_position, number_keys
from hedgerow.relational.query import Query
from hedgerow.relational.shape import Literal, Shape

__all__ = [
    "Entries",
    "Step",
    "Table",
    "build_plan",
    "entries_of",
    "follow",
    "instances_of",
    "merge_entries",
    "queries_of",
    "walk",
]


# The rank of queries that are not about a single fact.
AFTER_FACTS = np.iinfo(np.int64).max


class Entries(NamedTuple):
    """Where queries hold.

    Attributes
    ----------
    positions : (n,) int32
        Positions.
    queries : (n,) int64
        For each, the number of a query that holds there; a pair occurs only once.
    ranks : (n,) int64
        The entries of a position are sorted by rank, then by query. The rank of a query of one
        literal is that of its fact.
    """

    positions: Ids
    queries: NDArray[np.int64]
    ranks: NDArray[np.int64]

    @classmethod
    def none(cls) -> Entries:
        """No entries."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(eq=False)
class Step:
    """A shape, the constants that fill it, and its refinements, which add one literal.

    Attributes
    ----------
    shape : Shape
        Its last literal is the one that this step adds.
    constants : (n_instances, n_slots) list of tuples of str
        Constants of the slots, in the order of the shape, that are frequent enough.
    queries : (n_instances,) int64
        Number of the query that each instance forms, -1 if it forms none, for example because its
        literals do not all share variables, or some of them are implied by others.
    steps : list of Step
        Refinements.
    """

    shape: Shape
    constants: list[tuple[str, ...]]
    queries: NDArray[np.int64]
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Table:
    """Bindings of a shape, with its instances.

    Attributes
    ----------
    bindings : Bindings
        Rows, in which instances are numbered.
    constants : (n_instances, n_slots) int32
        Ids of the constants that fill the slots.
    """

    bindings: Bindings
    constants: Ids

    @classmethod
    def start(cls, database: Database) -> Table:
        """The table of the query without literals."""
        return cls(Bindings.of_positions(database.n_positions), np.zeros((1, 0), np.int32))

    def extend(self, joiner: Joiner, shape: Shape) -> Table:
        """Join with the last literal of a shape, and number the instances that occur."""
        bindings, filled = joiner.join(self.bindings, shape.literals[-1])
        constants, instances = self.constants, bindings.instances.astype(np.int64)
        size = max(len(joiner.database.constants), 1)
        for values in filled:
            known, instances = number_keys(instances * size + values)
            before, value = np.divmod(known, size)
            constants = np.column_stack([constants[before], value.astype(np.int32)])
        numbered = Bindings(
            bindings.positions, instances.astype(np.int32), bindings.variables, bindings.facts
        )
        return Table(numbered, constants)

    def pairs(self) -> tuple[Bindings, NDArray[np.int64]]:
        """The first row of each position and instance; the number of positions of each instance."""
        bindings = self.bindings
        if bindings.variables:
            n_instances = len(self.constants)
            first = []
            for begin, end in cut_by_position(bindings.positions):
                keys = bindings.positions[begin:end].astype(np.int64) * n_instances
                keys += bindings.instances[begin:end]
                first.append(begin + np.sort(np.unique(keys, return_index=True)[1]))
            bindings = bindings.take(np.concatenate(first))
        return bindings, np.bincount(bindings.instances, minlength=len(self.constants))

    def keep(self, numbers: NDArray[np.int64], n_kept: int) -> Table:
        """Give instances new numbers, and drop those of number -1."""
        constants = np.empty((n_kept, self.constants.shape[1]), np.int32)
        constants[numbers[numbers >= 0]] = self.constants[numbers >= 0]
        instances = numbers[self.bindings.instances].astype(np.int32)
        rows = self.bindings
        renumbered = Bindings(rows.positions, instances, rows.variables, rows.facts)
        return Table(
            renumbered if (numbers >= 0).all() else renumbered.take(instances >= 0), constants
        )


def walk(steps: list[Step]) -> Iterator[Step]:
    """All steps of a plan, each before its refinements."""
    for step in steps:
        yield step
        yield from walk(step.steps)


def instances_of(steps: list[Step]) -> Iterator[tuple[int, Query]]:
    """Number of every query of a plan, and the query, its literals in the order of the plan."""
    for step in walk(steps):
        for number, constants in zip(step.queries.tolist(), step.constants, strict=True):
            if number >= 0:
                yield number, Query(step.shape, constants)


def queries_of(steps: list[Step]) -> Iterator[tuple[int, Query]]:
    """Number of every query of a plan, and the query in canonical form."""
    for number, query in instances_of(steps):
        yield number, query.canonical


def build_plan(queries: Iterable[Query]) -> list[Step]:
    """A plan that finds some queries, numbered in this order; keeps the order of their literals."""
    root = _Draft(Shape())
    for number, query in enumerate(queries):
        draft = root
        for literal in query.shape.literals:
            draft = draft.refine(literal, query)
        draft.numbers[query.constants] = number
    return [draft.finish() for draft in root.drafts.values()]


@dataclass(eq=False)
class _Draft:
    """A step of a plan that is being built."""

    shape: Shape
    numbers: dict[tuple[str, ...], int] = field(default_factory=dict)
    drafts: dict[Literal, _Draft] = field(default_factory=dict)

    def refine(self, literal: Literal, query: Query) -> _Draft:
        """The step with one more literal; the constants of ``query`` are added to its instances."""
        found = self.drafts.get(literal)
        if found is None:
            shape = query.shape.prefix(len(self.shape.literals) + 1)
            found = self.drafts[literal] = _Draft(shape)
        found.numbers.setdefault(query.constants[: found.shape.n_slots], -1)
        return found

    def finish(self) -> Step:
        """The step, with its refinements."""
        numbers = np.fromiter(self.numbers.values(), np.int64, len(self.numbers))
        steps = [draft.finish() for draft in self.drafts.values()]
        return Step(self.shape, list(self.numbers), numbers, steps)


def follow(steps: list[Step], database: Database, max_bindings: int) -> Entries:
    """Where the queries of a plan hold."""
    joiner = Joiner(database, max_bindings)
    found = [Entries.none()]
    stack = [(Table.start(database), step) for step in reversed(steps)]
    while stack:
        before, step = stack.pop()
        table = before.extend(joiner, step.shape)
        ids = _find_constants(step, database)
        numbers = np.array([ids.get(tuple(row), -1) for row in table.constants.tolist()], np.int64)
        table = table.keep(numbers.reshape(-1), len(step.constants))
        if len(table.bindings.positions):
            found.append(entries_of(table.pairs()[0], step, database))
            stack += [(table, refinement) for refinement in reversed(step.steps)]
    return merge_entries(found, database.n_positions)


def entries_of(pairs: Bindings, step: Step, database: Database) -> Entries:
    """Entries of the instances that are queries."""
    queries = step.queries[pairs.instances]
    rows = pairs.take(queries >= 0)
    queries = queries[queries >= 0]
    relation = database.relations.get(step.shape.literals[-1].predicate)
    if len(step.shape.literals) == 1 and relation is not None:
        return Entries(rows.positions, queries, relation.ranks[rows.facts])
    return Entries(rows.positions, queries, np.full(len(queries), AFTER_FACTS))


def merge_entries(found: list[Entries], n_positions: int) -> Entries:
    """All entries, by position, rank and query; each part is in the order of positions."""
    counts = np.zeros(n_positions, np.int64)
    for part in found:
        counts += np.bincount(part.positions, minlength=n_positions)
    merged = []
    for begin, end in cut_by_position(np.arange(n_positions, dtype=np.int32), counts):
        rows = [slice(*np.searchsorted(part.positions, [begin, end])) for part in found]
        columns = zip(
            *([c[r] for c in part] for part, r in zip(found, rows, strict=True)), strict=True
        )
        positions, queries, ranks = map(np.concatenate, columns)
        order = np.lexsort([queries, ranks, positions])
        merged.append((positions[order], queries[order], ranks[order]))
    return Entries(*map(np.concatenate, zip(*merged, strict=True)))


def _find_constants(step: Step, database: Database) -> dict[tuple[int, ...], int]:
    """Numbers of instances by the ids that their constants have in a database."""
    find = database.constant_ids.get
    return {
        tuple(find(text, -1) for text in texts): number
        for number, texts in enumerate(step.constants)
    }
