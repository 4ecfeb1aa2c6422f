"""Relational features: queries about facts become attributes for both estimators."""

from __future__ import annotations

import os
from collections.abc import Collection
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, TransformerTags
from sklearn.utils.validation import check_is_fitted

from hedgerow.atomic_write import open_atomic
from hedgerow.counting import count_of
from hedgerow.encode.numbered_names import NumberedNames
from hedgerow.parameters import check_choice, check_number
from hedgerow.relational.atoms import Atoms
from hedgerow.relational.database import GLOBAL, Database, Relation
from hedgerow.relational.facts import Facts
from hedgerow.relational.features_state import pack_features, unpack_features
from hedgerow.relational.mode import check_modes, default_modes, read_modes
from hedgerow.relational.plan import (
    Entries,
    Step,
    build_plan,
    follow,
    instances_of,
    queries_of,
)
from hedgerow.relational.query import Query, describe_query, name_query
from hedgerow.relational.refinement import Language
from hedgerow.relational.search import Limits, Search
from hedgerow.sequences import SparseRows
from hedgerow.tables import Output, Table, check_output, choose_output

__all__ = ["RelationalFeatures"]

# Integer parameters with their minimum and maximum.
BOUNDS: dict[str, tuple[int, int | None]] = {
    "depth": (1, 6),
    "min_count": (1, None),
    "window": (0, 1000),
    "max_variables": (0, None),
    "max_bindings": (1, None),
    "max_queries": (1, None),
}


class RelationalFeatures(BaseEstimator):  # type: ignore[misc]
    """Turn facts into binary features: queries that hold at a position or do not.

    A query is a conjunction of up to `depth` literals, ``ls(X) & previous: cd(X)``: this position
    has ls of some X, and the previous one has cd of the same X. Shared variables compare constants
    without naming them, so that a model works for constants that did not occur in training. `fit`
    finds all queries that the modes allow and that hold at `min_count` positions or more;
    `transform` returns, for each position, the names of those that hold there, which `TreeCRF` and
    `LinearCRF` accept as attributes.

    Parameters
    ----------
    modes : list of str or None, default None
        How predicates may be used: ``"ls(+t,-file)"``. An argument has a sign and a type. ``+``: a
        variable of this type that an earlier literal introduced; ``-``: a new variable; ``+-``:
        either of them; ``#``: a constant that occurs in the data. ``t`` is the type of positions;
        ``+t`` can be the position itself or any other in the `window`. ``next(+t,-t)`` and
        ``prev(+t,-t)`` need no facts. None: every predicate whose first argument is a position is
        used; its other arguments are constants (``#``), or new variables (``-t``) if they are
        positions (links).
    depth : int, default 2
        Maximum number of literals of a query, up to 6.
    min_count : int, default 1
        Minimum number of positions at which a query must hold in training.
    window : int, default 0
        How many positions before the current one, and how many after it, queries may refer to, as
        in ``previous: word=the``; up to 1000.
    max_variables : int, default 4
        Maximum number of variables of a query.
    max_bindings : int, default 64
        At each position, at most this many ways to bind the variables of a query are tried, in the
        order of the facts. A query that only later bindings satisfy is not found.
    max_queries : int, default 100000
        If more queries are found, `fit` raises an error with advice. Trees that extend queries
        stop at this number, with a warning.

    Attributes
    ----------
    modes_ : list of str
        The modes that were used.
    n_queries_ : int
        Number of queries.
    counts_ : (n_queries_,) array
        Number of training positions at which each query holds.

    Notes
    -----
    All literals of a query are connected by shared variables. Literals without such a connection
    form separate queries; trees find conjunctions of queries by themselves. A literal that the
    others imply is left out. `transform` returns a list of sequences, each a list of tuples of
    names.

    Examples
    --------
    >>> from hedgerow import TreeCRF
    >>> from hedgerow.relational import RelationalFeatures
    >>> from sklearn.pipeline import make_pipeline
    >>> X = [[{("cd", "a")}, {("ls", "a")}, {("ls", "b")}], [{("cd", "c")}, {("ls", "d")}]]
    >>> y = [["new", "same", "new"], ["new", "new"]]
    >>> features = RelationalFeatures(["cd(+t,-file)", "ls(+t,+-file)"], window=1)
    >>> features.fit_transform(X)[0][1]
    ('previous: cd(X)', 'ls(X)', 'next: ls(X)', 'ls(X) & previous: cd(X)')
    >>> model = make_pipeline(features, TreeCRF(n_rounds=5, min_child_weight=0)).fit(X, y)
    >>> model.predict([[{("cd", "unseen")}, {("ls", "unseen")}]])[0].tolist()
    ['new', 'same']
    """

    steps_: list[Step]
    forms_: dict[str, tuple[tuple[bool, ...], bool]]
    modes_: list[str]
    n_queries_: int
    counts_: NDArray[np.int64]
    refined_: list[int]  # those that trees have already extended

    def __init__(
        self,
        modes: Any = None,
        *,
        depth: int = 2,
        min_count: int = 1,
        window: int = 0,
        max_variables: int = 4,
        max_bindings: int = 64,
        max_queries: int = 100_000,
    ) -> None:
        self.modes = modes
        self.depth = depth
        self.min_count = min_count
        self.window = window
        self.max_variables = max_variables
        self.max_bindings = max_bindings
        self.max_queries = max_queries

    def __sklearn_tags__(self) -> Tags:
        """Tags for scikit-learn: this is a transformer of lists."""
        tags: Tags = super().__sklearn_tags__()
        tags.estimator_type, tags.transformer_tags = "transformer", TransformerTags()
        tags.input_tags.three_d_array, tags.input_tags.two_d_array = True, False
        return tags

    def fit(self, X: Any, y: Any = None) -> RelationalFeatures:
        """Find the queries that hold at enough positions.

        Parameters
        ----------
        X : Atoms, or list of sequences
            The sequences. In a list of sequences, each position is a set or a list of atoms.
        y
            Not used.
        """
        self._search(Atoms.of(X).database)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NumberedNames:
        """Find queries, and return the names of those that hold at each position."""
        return self.learn(X)[0]

    def transform(self, X: Any) -> NumberedNames:
        """Return the names of the queries that hold at each position.

        X must have the same background as in `fit`.
        """
        check_is_fitted(self, "steps_")
        return self.read(X)[0]

    def learn(self, X: Any) -> tuple[NumberedNames, Facts]:
        """Find queries, and return the output of `fit_transform`, and the facts."""
        database = Atoms.of(X).database
        return self._name(self._search(database), database.offsets), Facts(database)

    def read(self, X: Any) -> tuple[NumberedNames, Facts]:
        """Return the output of `transform`, and the facts."""
        database = self._read(X)
        return self._name(self.find(database), database.offsets), Facts(database)

    def find(self, database: Database) -> Entries:
        """Where the queries hold."""
        return follow(self.steps_, database, self.max_bindings)

    def listed(self) -> list[Query]:
        """The queries by number, their literals in the order in which they are joined."""
        return [query for _, query in sorted(instances_of(self.steps_), key=lambda pair: pair[0])]

    def only(self, names: Collection[str]) -> RelationalFeatures:
        """A copy with only the queries of these names, renumbered."""
        kept = [number for number, query in enumerate(self.listed()) if query.name in names]
        return self.take(kept)

    def take(self, numbers: list[int]) -> RelationalFeatures:
        """A copy with only the queries of these numbers, renumbered."""
        queries = self.listed()
        return self.extended([queries[number] for number in numbers], self.counts_[numbers], [])

    def extended(
        self, queries: list[Query], counts: NDArray[np.int64], refined: list[int]
    ) -> RelationalFeatures:
        """A copy with other queries; ``refined`` are the numbers of those that trees extended."""
        more = copy(self)
        more.steps_, more.n_queries_ = build_plan(queries), len(queries)
        more.counts_, more.refined_ = counts, refined
        return more

    def rows(self, facts: Facts, index: Any) -> SparseRows:
        """Sparse rows of the queries that hold at each position, as numbered by ``index``."""
        found = self.find(facts.database)
        positions = facts.find_positions(found.positions)
        inside = positions >= 0
        entries = Entries(positions[inside], found.queries[inside], found.ranks[inside])
        offsets = np.array([0, facts.n_positions], np.int64)
        rows = self._name(entries, offsets).numbered_by(index, grow=False).sparse
        assert rows is not None
        return rows

    def set_output(self, *, transform: Output | None = None) -> RelationalFeatures:
        """Set the type of the tables that are returned: "pandas", "polars" or "default".

        The output of `transform` is not affected, since lists of names are not a table.
        """
        check_output(transform)
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # `clone` copies it
        return self

    def _give(self, table: Table) -> Any:
        """A table, converted to the output type."""
        asked = getattr(self, "_sklearn_output_config", {}).get("transform")
        return table.to(choose_output(asked, None))

    def queries(self) -> Any:
        """The queries, as a table: query, words, n_literals, predicates, count.

        ``words`` is the query as a sentence, ``predicates`` a tuple, ``count`` the number of
        positions of the training data at which the query holds.
        """
        check_is_fitted(self, "steps_")
        return self._give(self._query_table())

    def _query_table(self) -> Table:
        columns: dict[str, NDArray[Any]] = {
            name: np.empty(self.n_queries_, np.object_) for name in ("query", "words", "predicates")
        }
        n_literals = np.empty(self.n_queries_, np.int64)
        for number, (shape, constants) in queries_of(self.steps_):
            columns["query"][number] = name_query(shape, constants)
            columns["words"][number] = describe_query(shape, constants)
            columns["predicates"][number] = tuple(each.predicate for each in shape.literals)
            n_literals[number] = len(shape.literals)
        return Table(
            {
                "query": columns["query"],
                "words": columns["words"],
                "n_literals": n_literals,
                "predicates": columns["predicates"],
                "count": self.counts_,
            }
        )

    def importances(self, crf: Any, *, by: str = "query") -> Any:
        """Importance of the queries in a model, as a table, the most important first.

        Parameters
        ----------
        crf : fitted TreeCRF or LinearCRF
            A model that was fitted on the output of this object. The importance of a query is the
            gain of the splits on it, or the sum of the absolute values of its weights.
        by : {"query", "predicate"}
            One row for each query, or for each predicate: the importance of a query is then shared
            equally by its literals.

        Returns
        -------
        hedgerow.tables.Table, or a DataFrame
            The columns ``query`` and ``words`` with ``by="query"``, ``predicate`` with
            ``by="predicate"``; and ``importance``.
        """
        check_choice("by", by, ("query", "predicate"))
        check_is_fitted(self, "steps_")
        of_query, table = _sum_by_name(crf), self._query_table()
        sums: dict[str, float] = {}
        words = dict(zip(table["query"], table["words"], strict=True))
        for query, predicates in zip(table["query"], table["predicates"], strict=True):
            if of_query.get(query):
                for name in [query] if by == "query" else predicates:
                    share = 1 if by == "query" else len(predicates)
                    sums[name] = sums.get(name, 0.0) + of_query[query] / share
        order = sorted(sums, key=lambda name: (-sums[name], name))
        columns = {by: np.array(order, np.object_)}
        if by == "query":
            columns["words"] = np.array([words[name] for name in order], np.object_)
        return self._give(Table(columns | {"importance": np.array([sums[name] for name in order])}))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the queries."""
        check_is_fitted(self, "steps_")
        names: NDArray[np.object_] = self._query_table()["query"]
        return names

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the queries to a JSON file, which `load` reads.

        The file of a model that was trained on the output of `transform` does not contain the
        queries: keep both files.
        """
        check_is_fitted(self, "steps_")
        with open_atomic(Path(path)) as file:
            file.write(self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RelationalFeatures:
        """Read the output of `save`; raises `hedgerow.ModelFileError` for anything else."""
        return cls.from_bytes(Path(path).read_bytes())

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        return pack_features(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> RelationalFeatures:
        """Read the output of `to_bytes`; raises `hedgerow.ModelFileError` for anything else."""
        features = cls()
        features.__dict__ |= unpack_features(data, cls().get_params())
        return features

    def _search(self, database: Database) -> Entries:
        """Find queries, and where they hold."""
        for name, (minimum, maximum) in BOUNDS.items():
            value = getattr(self, name)
            check_number(name, value, minimum=minimum, maximum=maximum, integer=True)
        modes = default_modes(database) if self.modes is None else read_modes(self.modes)
        check_modes(modes, database)
        language = Language(modes, self.depth, self.window, self.max_variables)
        limits = Limits(self.min_count, self.max_bindings, self.max_queries)
        search = Search(database, language, limits)
        if not search.n_queries:
            raise ValueError(
                f"no query of modes {', '.join(map(str, modes))} holds at "
                f"{count_of(self.min_count, 'position')} or more; lower min_count, or correct "
                "the modes"
            )
        self.__dict__ |= {
            "steps_": search.steps,
            "modes_": [str(mode) for mode in modes],
            "n_queries_": search.n_queries,
            "counts_": search.counts,
            "refined_": [],
            "forms_": {
                name: (relation.is_position, bool((relation.scopes == GLOBAL).any()))
                for name, relation in sorted(database.relations.items())
                if any(mode.predicate == name for mode in modes)
            },
        }
        return search.entries

    def _read(self, X: Any) -> Database:
        """Read facts; those of predicates that `fit` used must have the same kinds of arguments."""
        database = Atoms.of(X).database
        for name, (is_position, is_background) in self.forms_.items():
            relation = database.relations.get(name)
            if relation is None and is_background:
                raise ValueError(
                    f"X has no facts of {name!r}, which fit had in the background; pass the same "
                    "background: Atoms(X, background=...)"
                )
            if relation is not None and relation.is_position != is_position:
                forms = (
                    f"{name}({','.join('t' if each else 'c' for each in kinds)})"
                    for kinds in (relation.is_position, is_position)
                )
                raise ValueError(
                    "facts of X are of the form {}, but fit had {}, t being a position and c a "
                    "constant; give facts the arguments used in training".format(*forms)
                )
        # Predicates that do not occur here have no facts.
        relations = {name: Relation.empty(form) for name, (form, _) in self.forms_.items()}
        return replace(database, relations=relations | database.relations)

    def _name(self, entries: Entries, offsets: NDArray[np.int64]) -> NumberedNames:
        names = [""] * self.n_queries_
        for number, query in queries_of(self.steps_):
            names[number] = name_query(*query)
        counts = np.bincount(entries.positions, minlength=offsets[-1])
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return NumberedNames.from_numbers(names, offsets, indptr, entries.queries.astype(np.int32))


def _sum_by_name(crf: Any) -> dict[str, float]:
    """Gains of splits, or absolute weights, by name of the attribute."""
    if hasattr(crf, "weights"):
        table, name, value = crf.weights(), "attribute", "weight"
    elif hasattr(crf, "importances"):
        table, name, value = crf.importances(), "feature", "gain"
    else:
        raise TypeError(
            f"crf is of type {type(crf).__name__}; expected a fitted TreeCRF or LinearCRF (the "
            "last step of a pipeline: pipeline[-1])"
        )
    sums: dict[str, float] = {}
    for attribute, number in zip(list(table[name]), np.abs(table[value]).tolist(), strict=True):
        sums[attribute] = sums.get(attribute, 0.0) + number
    return sums
