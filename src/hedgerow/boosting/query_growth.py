"""Query growth: queries are extended until trees split on none that can be extended further.

If a tree splits on a query, and below it on the same query with one more literal, the second split
is like one of a relational tree, where variables are bound along the path (Blockeel and De Raedt
1998). So trees are grown from all known queries, the queries that they split on are extended, and
trees are grown again, until all queries on their paths have been extended. Later rounds use what
earlier ones found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hedgerow import _core
from hedgerow.boosting.running_scores import Binned, TreeScoring
from hedgerow.boosting.settings import Settings
from hedgerow.data_warning import warn_user
from hedgerow.relational.features import RelationalFeatures
from hedgerow.relational.refiner import Refined, Refiner
from hedgerow.trees.forest import Forest, node_depths

__all__ = ["QueryGrowth"]


class QueryGrowth:
    """Extends queries, and adds them to the columns of training.

    Parameters
    ----------
    refiner
        What extends queries.
    scoring
        How trees score sequences, with the known columns.
    binned
        The training sequences.
    lay_out
        Converts bins to the data that trees are grown from.
    settings
        Which nodes may be split.
    """

    def __init__(
        self,
        refiner: Refiner,
        scoring: TreeScoring,
        binned: Binned,
        lay_out: Callable[[_core.Bins], _core.TreeData],
        settings: Settings,
    ) -> None:
        self._refiner, self._scoring, self._binned = refiner, scoring, binned
        self._lay_out, self._settings = lay_out, settings
        self._was_full = False

    def features(self) -> RelationalFeatures:
        """All queries so far."""
        return self._refiner.features()

    def extend(self, trees: Forest) -> _core.TreeData | None:
        """Extend the queries that trees split on; returns new data to grow from, or None."""
        rows, scoring = self._binned.rows, self._scoring
        assert rows is not None
        chosen = self._choose(trees)
        found: list[Refined] = []
        for name, positions in zip(chosen, rows.holding(list(chosen.values())), strict=True):
            if self._is_full():
                break
            found += self._refiner.refine(name, positions)
        if not found:
            return None
        first = scoring.columns.n_columns
        scoring.add_queries([new.name for new in found])
        rows.add((first + number, new.positions) for number, new in enumerate(found))
        self._binned.bins = rows.to_core(scoring.columns, scoring.n_threads)
        self._binned.laid_out = self._lay_out(self._binned.bins)
        return self._binned.laid_out

    def _choose(self, trees: Forest) -> dict[str, int]:
        """Queries that trees split on and that can be extended, with their columns, ascending."""
        columns = self._scoring.columns
        assert columns.index is not None
        names = columns.index.names()
        depths = node_depths(trees)
        firsts = np.repeat(trees.tree_offsets[:-1], np.diff(trees.tree_offsets))
        splits = np.flatnonzero(trees.columns >= 0)
        # Absent attributes are in the lowest bin and go left; the query holds on the right.
        below = firsts[splits] + trees.lefts[splits] + 1
        may_split = depths[below] < self._settings.max_depth
        may_split &= trees.weights[below] >= 2 * self._settings.min_child_weight
        return {
            names[column]: column
            for column in np.unique(trees.columns[splits[may_split]]).tolist()
            if self._refiner.can_refine(names[column])
        }

    def _is_full(self) -> bool:
        if self._refiner.is_full and not self._was_full:
            self._was_full = True
            warn_user(
                f"there are {len(self._refiner.queries):,} queries, and max_queries is "
                f"{self._refiner.max_queries:,}: no more queries are added; increase max_queries "
                "or min_count, decrease max_literals or depth, or remove modes"
            )
        return self._was_full
