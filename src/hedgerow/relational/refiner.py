"""Refiner: adds literals to the queries that trees split on.

On the side of a split where its query holds, a tree may ask whether the query holds with one more
literal, whose variables are those of the query or new ones (as in TILDE, Blockeel and De Raedt).
With ``depth`` - 1 literals of lookahead, a literal that only introduces variables, and is not
informative by itself, is added together with others that use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.relational.database import Ids
from hedgerow.relational.facts import Facts
from hedgerow.relational.features import RelationalFeatures
from hedgerow.relational.joins import Bindings, Joiner
from hedgerow.relational.mode import read_modes
from hedgerow.relational.plan import Table, build_plan, follow
from hedgerow.relational.query import Query
from hedgerow.relational.refinement import Language
from hedgerow.relational.search import are_redundant, first_instance
from hedgerow.relational.shape import SLOT, VARIABLE, Shape

__all__ = ["Refined", "Refiner"]


class Refined(NamedTuple):
    """A query that another one was refined to, and the positions at which it holds, ascending."""

    name: str
    query: Query
    positions: Ids


class Refiner:
    """Refines queries, each once.

    Parameters
    ----------
    features : RelationalFeatures
        The queries so far, and how they are made.
    facts : Facts
        Facts about the training positions.
    max_literals : int
        Maximum number of literals of a query.
    """

    def __init__(self, features: RelationalFeatures, facts: Facts, max_literals: int) -> None:
        self._features, self._facts, self._max_literals = features, facts, max_literals
        queries = features.listed()
        names = [query.name for query in queries]
        self.queries = dict(zip(names, queries, strict=True))
        self.counts = dict(zip(names, features.counts_.tolist(), strict=True))
        self.refined = {names[number] for number in features.refined_}
        self._modes = read_modes(features.modes_)
        self._joiner = Joiner(facts.database, features.max_bindings)
        self._shapes: dict[tuple[Shape, int], list[Shape]] = {}

    def with_queries(self, features: RelationalFeatures) -> Refiner:
        """A refiner with the queries of a checkpoint: the current ones, then refined ones."""
        found = Refiner(features, self._facts, self._max_literals)
        if list(found.queries)[: len(self.queries)] != list(self.queries):
            raise ValueError("the queries are not those of the data")
        return found

    def can_refine(self, name: str) -> bool:
        """Whether a query can be refined, and has not been refined yet."""
        shape = self.queries[name].shape
        is_open = bool(shape.types) and len(shape.literals) < self._max_literals
        return is_open and name not in self.refined

    @property
    def is_full(self) -> bool:
        """Whether the maximum number of queries has been reached."""
        return len(self.queries) >= self.max_queries

    @property
    def max_queries(self) -> int:
        """Maximum number of queries."""
        return self._features.max_queries

    def refine(self, name: str, positions: Ids) -> list[Refined]:
        """Add literals to a query, which holds at these positions; returns the new queries.

        Those that hold at all of these positions are left out, since they are not informative.
        """
        self.refined.add(name)
        query = self.queries[name]
        table = self._bind(query, self._facts.to_places(positions))
        found = []
        for new in self._extend(query.shape, table, 1, len(positions)):
            if new.name not in self.queries:
                self.queries[new.name] = new.query
                self.counts[new.name] = len(new.positions)
                found.append(new)
        return found

    def find(self, names: list[str], facts: Facts) -> list[Ids]:
        """The positions at which each of some queries holds, in these facts."""
        plan = build_plan(self.queries[name] for name in names)
        found = follow(plan, facts.database, self._features.max_bindings)
        positions = facts.find_positions(found.positions)
        order = np.argsort(found.queries, kind="stable")
        order = order[positions[order] >= 0]
        bounds = np.searchsorted(found.queries[order], np.arange(1, len(names)))
        return np.split(positions[order], bounds)

    def features(self) -> RelationalFeatures:
        """All queries."""
        names = list(self.queries)
        return self._features.extended(
            list(self.queries.values()),
            np.array([self.counts[name] for name in names], np.int64),
            [number for number, name in enumerate(names) if name in self.refined],
        )

    def _bind(self, query: Query, places: Ids) -> Table:
        """Bindings of a query."""
        zeros = np.zeros(len(places), np.int32)
        table = Table(Bindings(places, zeros, (), zeros.astype(np.int64)), np.zeros((1, 0), int))
        ids = self._facts.database.constant_ids
        wanted = np.array([ids[text] for text in query.constants], np.int32)
        for n_literals in range(1, len(query.shape.literals) + 1):
            shape = query.shape.prefix(n_literals)
            table = table.extend(self._joiner, shape)
            is_own = (table.constants == wanted[: shape.n_slots]).all(axis=1)
            table = table.keep(np.where(is_own, 0, -1), 1)
        return table

    def _extend(
        self, shape: Shape, table: Table, n_added: int, n_holding: int
    ) -> Iterator[Refined]:
        for refined in self._refinements(shape, n_added):
            longer = table.extend(self._joiner, refined)
            pairs, counts = longer.pairs()
            frequent = counts >= self._features.min_count
            if not frequent.any():
                continue
            if refined.n_parts == 1:
                is_new = frequent & (counts < n_holding)
                is_new &= ~are_redundant(refined, longer.constants)
                yield from self._instances(refined, longer, pairs, is_new)
            literal = refined.literals[-1]
            has_slot = any(term.kind == SLOT for term in literal.terms)
            if not has_slot and len(refined.types) > len(shape.types):
                yield from self._extend(refined, longer, n_added + 1, n_holding)

    def _instances(
        self, shape: Shape, table: Table, pairs: Bindings, chosen: NDArray[np.bool_]
    ) -> Iterator[Refined]:
        """The chosen instances of a shape, and where they hold."""
        texts = self._facts.database.constants
        order = np.argsort(pairs.instances, kind="stable")
        bounds = np.searchsorted(pairs.instances[order], np.arange(len(chosen) + 1))
        for number in np.flatnonzero(chosen).tolist():
            rows = order[bounds[number] : bounds[number + 1]]
            constants = tuple(texts[c] for c in table.constants[number].tolist())
            query = Query(shape, first_instance(shape, constants))
            positions = self._facts.find_positions(pairs.positions[rows])
            yield Refined(query.name, query, positions)

    def _refinements(self, shape: Shape, n_added: int) -> list[Shape]:
        """Shapes with one more literal that has variables; it is the `n_added`-th that is added."""
        key = (shape, n_added)
        if key not in self._shapes:
            n_more = self._features.depth - n_added + 1
            depth = min(len(shape.literals) + max(n_more, 0), self._max_literals)
            features = self._features
            language = Language(self._modes, depth, features.window, features.max_variables)
            self._shapes[key] = [
                refined
                for refined in language.refine(shape)
                if any(term.kind == VARIABLE for term in refined.literals[-1].terms)
            ]
        return self._shapes[key]
