"""Forest: all trees of a model, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.trees.columns import Columns

__all__ = ["Forest"]


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees in rounds of one for each label; tree i adds to the score of label i % K.

    Arrays over nodes hold all trees one after the other. Children come after their parent, side by
    side. Once made, a forest does not change.

    Attributes
    ----------
    n_labels : int
        Number of labels, K.
    tree_offsets : (T + 1,) int64
        Nodes ``tree_offsets[i]`` to ``tree_offsets[i + 1]`` are tree i.
    columns : int32, by node
        Column that a split asks about, -1 for a leaf.
    offsets : int32, by node
        At which position it is looked at, relative to the one that is scored.
    cuts : uint8, by node
        Bins 1 to this one go left; 0 where `sets` tell.
    missing_left : uint8, by node
        Whether missing values go left.
    sets : int32, by node
        Row of `left_sets` for a split by categories, else -1.
    lefts : int32, by node
        Left child, counted from the tree's first node; the right one follows it. -1 for a leaf.
    values : float32, by node
        What a leaf adds to the score; of other nodes what they would add as leaves.
    gains : float32, by node
        By how much a split lowers the bound on the loss, twice over.
    weights : float32, by node
        Sum of the curvatures of a node's examples.
    left_sets : (32 * number of sets,) uint8
        A bit for each bin that goes left.
    """

    n_labels: int
    tree_offsets: NDArray[np.int64]
    columns: NDArray[np.int32]
    offsets: NDArray[np.int32]
    cuts: NDArray[np.uint8]
    missing_left: NDArray[np.uint8]
    sets: NDArray[np.int32]
    lefts: NDArray[np.int32]
    values: NDArray[np.float32]
    gains: NDArray[np.float32]
    weights: NDArray[np.float32]
    left_sets: NDArray[np.uint8]

    @classmethod
    def join(cls, n_labels: int, parts: list[Forest]) -> Forest:
        """One forest of the rounds of several; of none if there are none."""
        n_nodes = np.cumsum([0, *(len(part.columns) for part in parts)])
        n_sets = np.cumsum([0, *(len(part.left_sets) // 32 for part in parts)])
        arrays = {
            name: np.concatenate([np.empty(0, dtype), *(getattr(part, name) for part in parts)])
            for name, dtype in NODE_ARRAYS.items()
        }
        starts = [
            part.tree_offsets[:-1] + first for part, first in zip(parts, n_nodes, strict=False)
        ]
        shifts = np.repeat(n_sets[:-1], np.diff(n_nodes))
        sets = arrays["sets"]
        return cls(
            n_labels,
            np.concatenate([*starts, n_nodes[-1:]]).astype(np.int64),
            **arrays
            | {
                "sets": np.where(sets >= 0, sets + shifts, sets).astype(np.int32),
                "left_sets": np.concatenate(
                    [np.empty(0, np.uint8), *(part.left_sets for part in parts)]
                ),
            },
        )

    @property
    def n_trees(self) -> int:
        """Number of trees, T."""
        return len(self.tree_offsets) - 1

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return self.n_trees // self.n_labels

    def scale(self, factor: float) -> Forest:
        """The same trees with all values multiplied."""
        return replace(self, values=self.values * np.float32(factor))

    def walker(self, columns: Columns) -> _core.Forest:
        """The trees as the kernel that evaluates them wants them; raises ValueError if unsound."""
        return _core.Forest(
            self.tree_offsets,
            np.arange(self.n_trees, dtype=np.int32) % np.int32(self.n_labels),
            self.columns,
            self.offsets,
            self.cuts,
            self.missing_left,
            self.sets,
            self.lefts,
            self.values,
            self.left_sets,
            columns.n_dense,
            columns.n_attributes,
            self.n_labels,
        )

    def goes_left(self, nodes: NDArray[np.int64], bins: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Whether a position goes to the left child of each of n splits, by its n bins."""
        by_cut = np.where(bins == 0, self.missing_left[nodes] != 0, bins <= self.cuts[nodes])
        rows = self.sets[nodes].astype(np.int64)
        has_set = rows >= 0
        if has_set.any():
            bits = self.left_sets[32 * rows[has_set] + (bins[has_set] >> 3)] >> (bins[has_set] & 7)
            by_cut[has_set] = (bits & 1) != 0
        return by_cut

    def importances(self, n_columns: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Gain of the splits at each offset and column: offsets (W,), gains (W, n_columns)."""
        splits = self.columns >= 0
        offsets = np.unique(np.append(self.offsets[splits], np.int32(0)))
        rows = np.searchsorted(offsets, self.offsets[splits])
        gains = np.zeros((len(offsets), n_columns))
        np.add.at(gains, (rows, self.columns[splits]), self.gains[splits])
        return offsets, gains


NODE_ARRAYS: dict[str, type[np.generic]] = {
    "columns": np.int32,
    "offsets": np.int32,
    "cuts": np.uint8,
    "missing_left": np.uint8,
    "sets": np.int32,
    "lefts": np.int32,
    "values": np.float32,
    "gains": np.float32,
    "weights": np.float32,
}
