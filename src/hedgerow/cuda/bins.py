"""Bins of the columns of some sequences on a device, and walking trees with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.cuda.device import Device, DeviceArray
from hedgerow.cuda.layout import Layout
from hedgerow.sequences import Sequences
from hedgerow.trees.columns import Binned, Columns
from hedgerow.trees.forest import Forest

__all__ = ["NODE", "DeviceBins", "DeviceTrees", "fill_absent", "pack_nodes"]

# A node of a tree, as in kernels/tree_nodes.cuh.
NODE = np.dtype(
    [
        ("column", "<i4"),
        ("offset", "<i4"),
        ("ways", "<u4"),
        ("left", "<i4"),
        ("gain", "<f8"),
        ("value", "<f4"),
        ("weight", "<f4"),
        ("set", "<u4", 8),
    ]
)
MISSING_LEFT, OUTSIDE_LEFT, BY_SET = 0x100, 0x200, 0x400
THREADS = 256
BLOCKS, SHARED = 8, 176 << 10  # blocks of a multiprocessor, and memory that they share


# Number of nodes that a block keeps in shared memory, unless a single tree has more; bytes of each
# there; most bytes for the trees of one round, see `add_round`.
FEW_NODES, STEP_BYTES, ROUND_BYTES = 1024, 8, 56 << 10


@dataclass(frozen=True, eq=False)
class DeviceTrees:
    """Trees on a device, ordered by output.

    Attributes
    ----------
    nodes : (..., 64) uint8
        See `NODE`.
    first : (T,) int64
        The first node of each tree.
    sizes : (T,) int32
        Number of nodes of each tree.
    weights : (T,) float64
        Factor of the values of its leaves.
    starts : (K + 1,) int32
        Output k has the trees ``starts[k]`` to ``starts[k + 1] - 1``.
    groups : (n + 1,) int32
        Group i of thread blocks has the outputs ``groups[i]`` to ``groups[i + 1] - 1``.
    capacity : int
        Number of nodes that a block keeps in shared memory; 0: none, since a tree is too large.
    """

    nodes: DeviceArray
    first: DeviceArray
    sizes: DeviceArray
    weights: DeviceArray
    starts: DeviceArray
    groups: DeviceArray
    capacity: int

    @classmethod
    def put(
        cls,
        device: Device,
        nodes: DeviceArray,
        first: NDArray[np.int64],
        sizes: NDArray[np.int32],
        weights: NDArray[np.float64],
        starts: NDArray[np.int32],
    ) -> DeviceTrees:
        """Copy everything but the nodes, which are on the device already."""
        capacity = max(FEW_NODES, int(sizes.max(initial=0)))
        if capacity * STEP_BYTES > device.shared_bytes:
            capacity = 0
        ends = np.concatenate([[0], np.cumsum(sizes)])[starts]
        groups = [0]
        for output in range(1, len(starts)):
            if ends[output] - ends[groups[-1]] > capacity > 0 and output - 1 > groups[-1]:
                groups.append(output - 1)
        groups.append(len(starts) - 1)
        upload = device.upload
        return cls(
            nodes,
            upload(first),
            upload(sizes),
            upload(weights),
            upload(starts),
            upload(np.array(groups, np.int32)),
            capacity,
        )


class DeviceBins:
    """Bins of C columns, by row of a layout.

    Attributes
    ----------
    by_row : (n_rows, 4 n_words) uint8
        Bins; a word consists of four columns.
    n_words : int
        Number of words.
    may_miss : (C,) bool
        Which columns have missing values, or may have some.
    neighbours : arrays
        Position of each row, -1 for padding; row of each position; how many positions of its
        sequence come before and after it, up to 255, by row.
    """

    def __init__(
        self,
        device: Device,
        layout: Layout,
        columns: Columns,
        sequences: Sequences,
        n_labels: int,
        n_threads: int,
    ) -> None:
        self.device, self.layout = device, layout
        self.kernels = device.kernels("trees", n_labels)
        dense = fill_absent(columns, columns.bin(sequences, n_threads))
        n_rows, (n_positions, n_columns) = layout.n_rows, dense.shape
        self.n_columns, self.n_words = n_columns, max(1, -(-n_columns // 4))
        self.by_row = device.zeros((n_rows, 4 * self.n_words), np.uint8)
        position = device.empty(n_rows, np.int32)
        device.clear(position, 0xFF)
        before, after = (device.zeros(n_rows, np.uint8) for _ in range(2))
        rows, misses = device.upload(layout.rows), device.zeros(n_columns, np.uint8)
        self.neighbours = position, rows, before, after
        self.kernels.launch(
            "lay_out", self.n_blocks, THREADS, device.upload(dense), n_columns, n_positions,
            device.upload(layout.offsets), layout.n_sequences, 4 * self.n_words, *self.neighbours,
            self.by_row, misses,
        )  # fmt: skip
        self.may_miss = device.download(misses) > 0
        self.may_miss[columns.n_dense :] |= columns.default_bins == 0

    @property
    def n_blocks(self) -> int:
        """Number of blocks of a kernel over all rows."""
        return max(
            1, min(-(-self.layout.n_rows // THREADS), BLOCKS * self.device.n_multiprocessors)
        )

    def put(self, by_position: NDArray[Any], out: DeviceArray | None = None) -> DeviceArray:
        """A copy of an array (N, ...) on the device, by row; 0 where rows are padding.

        ``out``: where it is written to; None: to a new array.
        """
        by_row = np.zeros((self.layout.n_rows, *by_position.shape[1:]), by_position.dtype)
        by_row[self.layout.rows] = by_position
        if out is None:
            return self.device.upload(by_row)
        self.device.write(by_row, out)
        return out

    def by_column(self) -> DeviceArray:
        """The same bins, (C, n_rows)."""
        columns = self.device.empty((self.n_columns, self.layout.n_rows), np.uint8)
        self.kernels.launch(
            "transpose_bins", self.n_blocks, THREADS, self.by_row, 4 * self.n_words,
            self.n_columns, self.layout.n_rows, columns,
        )  # fmt: skip
        return columns

    def add_forest(self, forest: Forest, scores: DeviceArray, out: DeviceArray) -> None:
        """Fill ``out`` (n_rows, K), which may be ``scores``, with scores plus values of trees."""
        device = self.device
        order = np.argsort(forest.outputs, kind="stable")
        counts = np.bincount(forest.outputs, minlength=forest.n_outputs)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        sizes = np.diff(forest.tree_offsets).astype(np.int32)[order]
        first, weights = forest.tree_offsets[:-1][order], forest.tree_weights[order]
        nodes = device.upload(pack_nodes(forest))
        self.add_trees(DeviceTrees.put(device, nodes, first, sizes, weights, starts), scores, out)

    def add_trees(self, trees: DeviceTrees, scores: DeviceArray, out: DeviceArray) -> None:
        """Like `add_forest`, for trees that are on the device."""
        n_rows, n_groups = self.layout.n_rows, len(trees.groups) - 1
        most = max(1, BLOCKS * self.device.n_multiprocessors // n_groups)
        n_blocks = max(1, min(-(-n_rows // THREADS), most))
        self.kernels.launch(
            "add_trees", (n_blocks, n_groups), THREADS, trees.nodes, trees.first, trees.sizes,
            trees.weights, trees.starts, trees.groups, trees.capacity, self.by_row,
            4 * self.n_words, *self.neighbours, n_rows, scores, out,
            shared_bytes=STEP_BYTES * trees.capacity,
        )  # fmt: skip

    def add_round(self, trees: DeviceTrees, scores: DeviceArray, out: DeviceArray) -> bool:
        """Like `add_trees`, for one tree per output, (K, n) nodes; False if they are too large.

        It is faster with many outputs: neighbouring threads read the same row.
        """
        n_outputs, n_nodes = trees.nodes.shape[:2]
        together = min(
            n_outputs, min(ROUND_BYTES, self.device.shared_bytes) // n_nodes // STEP_BYTES
        )
        if together == 0:
            return False
        n_groups, n_rows = -(-n_outputs // together), self.layout.n_rows
        # No more than can be resident at a time, since each copies its trees.
        n_blocks = min(BLOCKS, SHARED // (STEP_BYTES * n_nodes * together))
        most = max(1, n_blocks * self.device.n_multiprocessors // n_groups)
        n_blocks = max(1, min(-(-n_rows * together // THREADS), most))
        self.kernels.launch(
            "add_round", (n_blocks, n_groups), THREADS, trees.nodes, n_nodes, trees.weights,
            together, self.by_row, 4 * self.n_words, *self.neighbours, n_rows, scores, out,
            shared_bytes=STEP_BYTES * n_nodes * together,
        )  # fmt: skip
        return True


def pack_nodes(forest: Forest) -> NDArray[np.uint8]:
    """All nodes of a forest, (number of nodes, 64), see `NODE`."""
    nodes = np.zeros(len(forest.columns), NODE)
    for name, array in (
        ("column", forest.columns),
        ("offset", forest.offsets),
        ("left", forest.lefts),
        ("gain", forest.gains),
        ("value", forest.values),
        ("weight", forest.weights),
    ):
        nodes[name] = array
    has_set = forest.sets >= 0
    ways = forest.cuts.astype(np.uint32)
    ways[forest.missing_left != 0] |= MISSING_LEFT
    ways[forest.outside_left != 0] |= OUTSIDE_LEFT
    ways[has_set] |= BY_SET
    nodes["ways"] = ways
    nodes["set"][has_set] = forest.left_sets.view("<u4").reshape(-1, 8)[forest.sets[has_set]]
    return nodes.view(np.uint8).reshape(-1, NODE.itemsize)


def fill_absent(columns: Columns, binned: Binned) -> NDArray[np.uint8]:
    """Bins of all columns, (N, C): attributes that are absent have their default bin."""
    if not columns.n_attributes:
        return binned.dense
    assert binned.indptr is not None
    assert binned.attributes is not None
    assert binned.attribute_bins is not None
    bins = np.empty((len(binned.dense), columns.n_columns), np.uint8)
    bins[:, : columns.n_dense] = binned.dense
    bins[:, columns.n_dense :] = columns.default_bins
    owners = np.repeat(np.arange(len(bins)), np.diff(binned.indptr))
    bins[owners, columns.n_dense + binned.attributes] = binned.attribute_bins
    return bins
