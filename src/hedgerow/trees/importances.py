"""Importances: the gain of the splits on each column, as a table and as shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.tables import Table
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest
from hedgerow.trees.places import name_places

__all__ = ["importance_shares", "importance_table", "importances"]


def importances(forest: Forest, n_columns: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Gain of the splits at each offset and column: offsets (W,), gains (W, n_columns)."""
    splits = forest.columns >= 0
    offsets = np.unique(np.append(forest.offsets[splits], np.int32(0)))
    rows = np.searchsorted(offsets, forest.offsets[splits])
    gains = np.zeros((len(offsets), n_columns))
    np.add.at(gains, (rows, forest.columns[splits]), forest.gains[splits])
    return offsets, gains


def importance_table(forest: Forest, columns: Columns) -> Table:
    """Gain of each feature and offset that splits use, the largest first.

    See `hedgerow.TreeCRF.importances` for the columns.
    """
    offsets, gains = importances(forest, columns.n_asked)
    rows, asked = np.nonzero(gains)
    order = np.argsort(-gains[rows, asked], kind="stable")
    names = np.array(columns.asked_names(), dtype=np.object_)
    features, shown = name_places(names[asked[order]], offsets[rows[order]])
    return Table({"feature": features, "offset": shown, "gain": gains[rows, asked][order]})


def importance_shares(forest: Forest, columns: Columns, n_features: int) -> NDArray[np.float64]:
    """Share of each column of X in the total gain, (n_features,); 0 if there is no gain at all."""
    origins = columns.of_schema()
    gains = importances(forest, columns.n_asked)[1].sum(axis=0)[: len(origins)]
    sums = np.zeros(n_features)
    np.add.at(sums, origins, gains)
    shares: NDArray[np.float64] = sums / max(sums.sum(), np.finfo(np.float64).tiny)
    return shares
