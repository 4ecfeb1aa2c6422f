"""Search: the queries that hold at enough positions, found by adding one literal after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.relational.database import Database, Ids
from hedgerow.relational.joins import Joiner
from hedgerow.relational.plan import Entries, Step, Table, entries_of, merge_entries
from hedgerow.relational.query import name_query
from hedgerow.relational.refinement import Language
from hedgerow.relational.shape import Literal, Shape

__all__ = ["Limits", "Search", "are_redundant", "first_instance"]


@dataclass(frozen=True)
class Limits:
    """Limits of a search.

    Attributes
    ----------
    min_count : int
        Minimum number of positions at which a query must hold.
    max_bindings : int
        Maximum number of bindings of a query that are kept per position.
    max_queries : int
        Maximum number of queries; if there are more, the search raises an error.
    """

    min_count: int
    max_bindings: int
    max_queries: int


class Search:
    """Finds all queries of a language that hold at enough positions.

    A refined query holds at no more positions than the query it was made from, so queries that are
    too rare are not refined. Shapes are searched depth first: only the bindings of the current
    shape, and of the shapes it was made from, are in memory.

    Attributes
    ----------
    steps : list of Step
        The plan by which the queries are found in other data.
    entries : Entries
        Where they hold in this database.
    n_queries : int
        Number of queries; they are numbered in the order of the search, and those of one shape in
        the order of their constants.
    counts : (n_queries,) int64
        Number of positions at which each of them holds.
    """

    def __init__(self, database: Database, language: Language, limits: Limits) -> None:
        self.steps: list[Step] = []
        self.n_queries = 0
        self._database, self._language, self._limits = database, language, limits
        self._joiner = Joiner(database, limits.max_bindings)
        self._seen: set[Shape] = set()  # canonical ones
        self._named: set[tuple[Literal, ...]] = (
            set()
        )  # of canonical shapes whose instances are queries already
        self._counts: dict[int, int] = {}  # queries by number of literals
        self._found = [Entries.none()]
        self._refine(Shape(), Table.start(database), self.steps)
        self.entries = merge_entries(self._found, database.n_positions)
        self.counts = np.bincount(self.entries.queries, minlength=self.n_queries)

    def _refine(self, shape: Shape, table: Table, steps: list[Step]) -> None:
        for refined in self._language.refine(shape):
            canonical, _ = refined.canonical
            if canonical not in self._seen:
                self._seen.add(canonical)
                step = self._search(refined, table)
                if step is not None:
                    steps.append(step)

    def _search(self, shape: Shape, before: Table) -> Step | None:
        """Search a shape and its refinements; None if none of them gives a query."""
        table = before.extend(self._joiner, shape)
        pairs, counts = table.pairs()
        frequent = counts >= self._limits.min_count
        if not frequent.any():
            return None
        numbers = np.where(frequent, np.cumsum(frequent) - 1, -1)
        queries = self._number(shape, table, frequent)
        texts = self._database.constants
        step = Step(
            shape,
            [tuple(texts[c] for c in row) for row in table.constants[frequent].tolist()],
            queries,
        )
        if (queries >= 0).any():
            pairs = pairs.take(frequent[pairs.instances])
            pairs.instances[:] = numbers[pairs.instances]
            self._found.append(entries_of(pairs, step, self._database))
        del pairs
        if len(shape.literals) < self._language.depth:
            self._refine(shape, table.keep(numbers, int(frequent.sum())), step.steps)
        return step if step.steps or (queries >= 0).any() else None

    def _number(self, shape: Shape, table: Table, frequent: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Number the instances that are queries by themselves, -1 for the others."""
        constants = table.constants[frequent]
        queries = np.full(len(constants), -1, np.int64)
        canonical, _ = shape.canonical
        if shape.n_parts > 1 or canonical.literals in self._named:
            return queries
        self._named.add(canonical.literals)
        is_query = are_queries(shape, constants)
        n_new = int(is_query.sum())
        queries[is_query] = self.n_queries + np.arange(n_new)
        self.n_queries += n_new
        n_literals = len(shape.literals)
        self._counts[n_literals] = self._counts.get(n_literals, 0) + n_new
        if self.n_queries > self._limits.max_queries:
            raise self._too_many(shape, n_new)
        return queries

    def _too_many(self, shape: Shape, n_new: int) -> ValueError:
        by_length = ", ".join(
            f"{number:,} with {count_of(length, 'literal')}"
            for length, number in sorted(self._counts.items())
        )
        pattern = name_query(shape.canonical[0], ["..."] * shape.n_slots)
        return ValueError(
            f"at least {self.n_queries:,} queries hold at "
            f"{count_of(self._limits.min_count, 'position')} or more ({by_length}; the last "
            f"{n_new:,} of the form '{pattern}'), but max_queries is "
            f"{self._limits.max_queries:,}; raise min_count, lower depth or window, leave out "
            "modes, or raise max_queries"
        )


def are_queries(shape: Shape, constants: Ids) -> NDArray[np.bool_]:
    """Which instances of a shape are queries of their own, given the ids of their constants.

    Instances with literals that imply one another are not; of instances that are the same query,
    only the first is.
    """
    is_query = ~are_redundant(shape, constants)
    for symmetry in shape.symmetries[1:]:
        is_query &= _is_first(constants, symmetry, shape.canonical[1])
    return is_query


def are_redundant(shape: Shape, constants: Ids) -> NDArray[np.bool_]:
    """Which instances of a shape have literals that imply one another."""
    is_redundant = np.zeros(len(constants), np.bool_)
    for equal in shape.redundant_if:
        is_redundant |= np.all(
            [constants[:, one] == constants[:, other] for one, other in equal]
            or [np.ones(len(constants), np.bool_)],
            axis=0,
        )
    return is_redundant


def first_instance(shape: Shape, constants: tuple[str, ...]) -> tuple[str, ...]:
    """Of the instances of a shape that are the same query, the one that `are_queries` keeps."""
    slots = shape.canonical[1]
    instances = []
    for symmetry in shape.symmetries:
        instance = list(constants)
        for slot, image in enumerate(symmetry):
            instance[image] = constants[slot]
        instances.append(tuple(instance))
    return min(instances, key=lambda instance: [instance[slot] for slot in slots])


def _is_first(
    constants: Ids, symmetry: tuple[int, ...], slots: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Whether each row comes before, or equals, the row that a symmetry turns it into, (n,)."""
    other = np.empty_like(constants)
    other[:, list(symmetry)] = constants
    first = np.ones(len(constants), np.bool_)
    undecided = first.copy()
    for slot in slots:
        first &= ~(undecided & (constants[:, slot] > other[:, slot]))
        undecided &= constants[:, slot] == other[:, slot]
    return first
