"""Tree learner on a device: from marginals, or slopes, and gammas to the trees of a round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.cuda.bins import NODE, DeviceBins, DeviceTrees
from hedgerow.cuda.device import Device, DeviceArray
from hedgerow.cuda.feature_choice import choose_features, count_features_of_node
from hedgerow.cuda.layout import FEW_LABELS
from hedgerow.identity import identify_positions
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest
from hedgerow.trees.learner import GrowthRules
from hedgerow.trees.sampling import Purpose, Sampling, draw_key, select_positions
from hedgerow.trees.units import count_bits

__all__ = ["DeviceLearner", "TreeInputs", "count_nodes"]

THREADS = 256
ROWS_OF_BLOCK = 2048  # rows that a block processes at a time
OPEN_NODE, CUT, SLOT = 64, 32, 8  # bytes, see the kernels
FEW_BINS = 8  # up to this many bins, a single thread searches a column
NEGATIVE_WEIGHTS = {"unbiased": 0, "none": 1, "balanced": 2}
# Blocks per multiprocessor among which the examples of all nodes are divided; bytes of shared
# memory of a multiprocessor, where fewer blocks run if they do not fit; maximum number of blocks
# for the features of one node.
WORKERS, SHARED, PARTS = 4, 176 << 10, 32
DIVIDERS = 5  # blocks per multiprocessor that partition the examples of all nodes
# Memory of a block's histogram, so that several blocks fit on a multiprocessor.
TILE_BYTES = 56 << 10


@dataclass(frozen=True, eq=False)
class TreeInputs:
    """Input of the tree learner, by row."""

    marginals: DeviceArray
    """(n_rows, K)"""
    gammas: DeviceArray
    """(n_rows,)"""
    labels: DeviceArray
    """(n_rows,) -1 where a row is padding"""
    slopes: DeviceArray | None = None
    """(n_rows, K); None: those of the likelihood"""


@dataclass(frozen=True, eq=False)
class Tiles:
    """Slots of histograms, divided into tiles that fit into shared memory.

    Attributes
    ----------
    slots, n_bins : (4 n_words,) int32
        First slot of each column at the first offset, -1 for padding; number of its bins.
    tiles : (n, 5) int32
        Offset, first word, number of words, first slot, number of slots.
    slots_of_offset : int
        How many slots the columns have at each offset.
    """

    slots: NDArray[np.int32]
    n_bins: NDArray[np.int32]
    tiles: NDArray[np.int32]
    slots_of_offset: int

    @classmethod
    def plan(cls, n_bins: NDArray[np.int32], n_words: int, offsets: range, max_slots: int) -> Tiles:
        """The tiles for columns with these numbers of bins, at some offsets."""
        padded = np.full(4 * n_words, -2, np.int32)
        padded[: len(n_bins)] = n_bins
        ends = np.cumsum(padded + 2)  # plus a slot for missing values, and one for outside
        slots = np.where(padded < 0, -1, ends - padded - 2).astype(np.int32)
        bounds = np.concatenate([[0], ends[3::4]])  # of words
        for n_tiles in range(-(-n_words // THREADS), n_words + 1):
            firsts = n_words * np.arange(n_tiles + 1) // n_tiles
            if np.diff(bounds[firsts]).max() <= max_slots:
                break
        tiles = [
            (first, end - first, bounds[first], bounds[end] - bounds[first])
            for first, end in pairwise(firsts.tolist())
        ]
        n_slots = int(ends[-1])
        of_offsets = [
            (offset, word, n, slot + o * n_slots, size)
            for o, offset in enumerate(offsets)
            for word, n, slot, size in tiles
        ]
        return cls(slots, padded.clip(min=0), np.array(of_offsets, np.int32), n_slots)


class DeviceLearner:
    """Grows a tree for each of K outputs in every round, from the same rows.

    Parameters
    ----------
    device, bins
        The bins of the columns, and the device that stores them.
    columns
        The columns.
    offsets
        Offsets in the window at which trees can split on columns.
    rules, sampling
        As in `hedgerow.trees.learner.TreeLearner`.
    scales : (N,), optional
        Weight of each position.
    identities : (S,) uint64, optional
        Identities of sequences, which draws depend on; None: their numbers.
    rate, modest : float
        Gammas above `modest` are multiplied by `rate`, but remain at least `modest`.
    newton
        Whether to use curvatures.
    opposite
        Whether there are two outputs with opposite gradients.
    """

    def __init__(
        self,
        device: Device,
        bins: DeviceBins,
        columns: Columns,
        offsets: range,
        rules: GrowthRules,
        sampling: Sampling,
        *,
        n_outputs: int,
        scales: NDArray[np.float64] | None = None,
        identities: NDArray[np.uint64] | None = None,
        rate: float = 1.0,
        modest: float = 4.0,
        newton: bool = True,
        opposite: bool = False,
    ) -> None:
        self.device, self.bins, self.layout = device, bins, bins.layout
        self.rules, self.sampling, self.n_outputs = rules, sampling, n_outputs
        self.identities = identities
        self.rate, self.modest, self.newton = np.float32(rate), np.float32(modest), newton
        self.opposite = opposite and not sampling.negative_ratio > 0
        self.offsets, self.n_columns = offsets, columns.n_columns
        self.kernels = device.kernels("trees", n_outputs)
        self._bits = count_bits(len(self.layout.rows))
        self._describe(columns)
        self._allocate()
        self._scales = None
        if scales is not None:
            self._scales = device.upload(self._by_row(scales))
        self._features = None
        if rules.colsample_bytree < 1:
            self._features = device.empty((n_outputs, self.n_columns * len(offsets)), np.uint8)
        self._n_of_node = count_features_of_node(rules, self.n_columns * len(offsets))
        self._column_key = device.zeros(1, np.uint64)
        self._selected = None
        if sampling.subsample < 1:
            self._selected = device.empty(self.layout.n_rows, np.uint8)
        self._row_identities = None
        if sampling.negative_ratio > 0:
            self._row_identities = device.upload(self._by_row(self._identify_positions()))
        self._recordings: dict[tuple[int, int], tuple[TreeInputs, Callable[[], None]]] = {}

    @property
    def best_first(self) -> bool:
        """Whether the order in which nodes are split matters."""
        return is_best_first(self.rules)

    def _describe(self, columns: Columns) -> None:
        """Columns in the format of the kernels."""
        device, n_words = self.device, self.bins.n_words
        max_slots = min(TILE_BYTES, device.shared_bytes) // SLOT * 16 // 17
        self.tiles = Tiles.plan(columns.n_bins, n_words, self.offsets, max_slots)
        largest = int(self.tiles.tiles[:, 4].max(initial=1))
        self._tile_bytes = SLOT * (largest + (largest - 1) // 16)
        most_bins = FEW_BINS + 1 if columns.categorical.any() else columns.n_bins.max()
        self._few_bins = most_bins <= FEW_BINS
        self._pairs_of_bins = most_bins <= 2 and not self.bins.may_miss.any()
        by_column = (self.tiles.slots, self.tiles.n_bins, self.tiles.tiles)
        self._slots, self._n_bins, self._tiles = map(device.upload, by_column)
        self._may_miss = device.upload(self.bins.may_miss.astype(np.uint8))
        self._categorical = device.upload(columns.categorical.astype(np.uint8))
        self.n_slots = self.tiles.slots_of_offset * len(self.offsets)
        self._columns = self.bins.by_column()

    def _allocate(self) -> None:
        """Examples, nodes and histograms."""
        device, n_rows, n_outputs = self.device, self.layout.n_rows, self.n_outputs
        self.max_nodes, self.max_chosen, self.n_steps = count_nodes(self.rules)
        n_nodes, n_chosen = n_outputs * self.max_nodes, n_outputs * self.max_chosen
        self.n_histograms = 1 + self.max_nodes // 2
        empty = device.empty
        self._derivatives = empty((n_outputs, n_rows, 2), np.float32)
        self._rows = [empty(n_outputs * n_rows, np.int32) for _ in range(2)]
        self._examples = [empty((n_outputs * n_rows, 2), np.int32) for _ in range(2)]
        n_derivers = self.bins.n_blocks
        if n_outputs > FEW_LABELS:  # each output has blocks of its own
            n_derivers = max(1, min(-(-n_rows // ROWS_OF_BLOCK), n_derivers))
        self._partial = empty((4 * n_outputs, n_derivers), np.float64)
        self._units = empty((n_outputs, 2), np.float64)
        self._n_safe = empty(n_outputs, np.int32)
        self._totals = empty((n_outputs, 2), np.int64)
        self._counts = empty((n_outputs, 2), np.uint64)
        self._key = empty(1, np.uint64)
        self._n_examples, self._n_nodes, self._n_chosen = (
            empty(n_outputs, np.int32) for _ in range(3)
        )
        self.nodes = device.zeros((n_outputs, self.max_nodes, NODE.itemsize), np.uint8)
        self._open = device.zeros((n_nodes, OPEN_NODE), np.uint8)
        self._numbers = empty(n_nodes, np.int32)
        self._chosen = device.zeros(n_chosen, np.int32)
        self._counted = empty(max(n_chosen, n_outputs), np.int32)
        self._cursors = empty((n_chosen, 2), np.int32)
        self._starts = empty(max(n_chosen, n_outputs) + 1, np.int64)
        n_slots = n_outputs * self.n_histograms * self.n_slots
        self._histograms = empty((n_slots, 2), np.int64)
        rules = self.rules
        numbers = (
            rules.reg_lambda,
            rules.min_child_weight,
            rules.min_split_gain,
            rules.max_step,
            rules.learning_rate,
        )
        self._rules = device.upload(np.array(numbers, np.float64))
        self._trees = DeviceTrees.put(
            device,
            self.nodes,
            np.arange(n_outputs, dtype=np.int64) * self.max_nodes,
            np.full(n_outputs, self.max_nodes, np.int32),
            np.ones(n_outputs),
            np.arange(n_outputs + 1, dtype=np.int32),
        )
        self._whole_trees = replace(self._trees, weights=device.upload(np.ones(n_outputs)))
        n_features = self.n_columns * len(self.offsets)
        self._max_parts = max(1, min(PARTS, n_features // (THREADS if self._few_bins else 8)))
        self._cuts = empty((2 * n_chosen * self._max_parts, CUT), np.uint8)
        self._n_found = device.zeros(max(2 * n_chosen, n_outputs), np.int32)
        # A function that waits for the trees that were launched last, and these trees once
        # available.
        self._launched: Callable[[], NDArray[np.uint8]] | None = None
        self._grown: Forest | None = None

    def _by_row(self, by_position: NDArray[np.generic]) -> NDArray[np.generic]:
        found = np.zeros(self.layout.n_rows, by_position.dtype)
        found[self.layout.rows] = by_position
        return found

    def _identify_positions(self) -> NDArray[np.uint64]:
        """What the draws of examples depend on, (N,)."""
        offsets = self.layout.offsets
        if self.identities is None:
            return np.arange(offsets[-1], dtype=np.uint64)
        return identify_positions(self.identities, offsets)

    def grow(self, inputs: TreeInputs, round_number: int) -> Forest:
        """The trees of one round; tree k adds to output k."""
        return self.launch(inputs, round_number)()

    def launch(self, inputs: TreeInputs, round_number: int) -> Callable[[], Forest]:
        """Launch the trees of a round; returns a function that waits for them."""
        self._grown = None
        self._draw(round_number)
        key = id(inputs.marginals), id(inputs.slopes)
        if key not in self._recordings:
            self._recordings[key] = inputs, self.device.record(partial(self._launch, inputs))
        self._recordings[key][1]()
        self._launched = self.device.fetch(self.nodes)
        return partial(self._collect, self._launched)

    def _launch(self, inputs: TreeInputs) -> None:
        """From marginals to trees: the same launches each time for the same arrays."""
        self._derive(inputs)
        self._grow()

    def _derive(self, inputs: TreeInputs) -> None:
        """Compute derivatives, and their largest values."""
        launch, n_rows, labels = self.kernels.launch, self.layout.n_rows, inputs.labels
        n_blocks = self._partial.shape[1]
        launch(
            "derive", (n_blocks, 1 if self.n_outputs <= FEW_LABELS else self.n_outputs), THREADS,
            inputs.marginals, inputs.slopes, inputs.gammas, labels, self._scales, self._selected,
            n_rows, int(self.opposite), float(self.sampling.trim), self.rate, self.modest,
            int(self.newton), self._derivatives, self._partial,
        )  # fmt: skip
        ratio = self.sampling.negative_ratio
        if ratio > 0:
            self.device.clear(self._counts)
            grid = n_blocks, self.n_outputs
            launch("count_observed", grid, THREADS, self._derivatives, labels, n_rows, self._counts)
            weighting = NEGATIVE_WEIGHTS[self.sampling.negative_weight]
            launch(
                "draw_others", grid, THREADS, self._derivatives, labels, self._row_identities,
                n_rows, self._counts, self._key, float(ratio), weighting, self._partial,
            )  # fmt: skip

    def _collect(self, fetched: Callable[[], NDArray[np.uint8]]) -> Forest:
        """Wait for the copy of the trees; later ones may already replace them on the device."""
        forest = _core.read_device_forest(fetched(), self.best_first)
        if fetched is self._launched:
            self._grown = forest
        return forest

    def add_next(self, scores: DeviceArray, out: DeviceArray) -> None:
        """Launch kernels that add the trees launched last to scores; always the same kernels."""
        self._add(self._whole_trees, scores, out)

    def add(self, forest: Forest, scores: DeviceArray, out: DeviceArray) -> None:
        """Add the values of trees to scores; trees launched last are not copied again."""
        grown = self._grown
        if grown is None or forest.values.ctypes.data != grown.values.ctypes.data:
            self.bins.add_forest(forest, scores, out)
        else:
            self.device.write(forest.tree_weights, self._trees.weights)
            self._add(self._trees, scores, out)

    def _add(self, trees: DeviceTrees, scores: DeviceArray, out: DeviceArray) -> None:
        if self.n_outputs <= FEW_LABELS or not self.bins.add_round(trees, scores, out):
            self.bins.add_trees(trees, scores, out)

    def _draw(self, round_number: int) -> None:
        """Draw the random numbers of a round."""
        sampling, device = self.sampling, self.device
        if self._selected is not None:
            key = draw_key(sampling.seed, round_number, Purpose.SEQUENCES)
            share, offsets = sampling.subsample, self.layout.offsets
            selected = select_positions(offsets, share, key, self.identities)
            assert selected is not None
            device.write(self._by_row(selected), self._selected)
        if sampling.negative_ratio > 0:
            key = draw_key(sampling.seed, round_number, Purpose.EXAMPLES)
            device.write(np.array([key], np.uint64), self._key)
        if not self._n_of_node and self._features is None:
            return
        key = draw_key(sampling.seed, round_number, Purpose.COLUMNS)
        if self._n_of_node:
            device.write(np.array([key], np.uint64), self._column_key)
        if self._features is not None:
            n_features = self.n_columns * len(self.offsets)
            share = self.rules.colsample_bytree
            device.write(choose_features(key, self.n_outputs, n_features, share), self._features)

    def _grow(self) -> None:
        """From derivatives to trees."""
        device, launch = self.device, self.kernels.launch
        n_rows, n_outputs = self.layout.n_rows, self.n_outputs
        launch(
            "choose_units", n_outputs, 32, self._partial, self._partial.shape[1], *self._bits,
            self._units, self._n_safe, self._n_examples, self._totals, self._n_nodes,
        )  # fmt: skip
        launch(
            "collect_examples", (max(1, -(-n_rows // ROWS_OF_BLOCK)), n_outputs), THREADS,
            self._derivatives, n_rows, self._units, self._n_examples, self._totals,
            self._rows[0], self._examples[0],
        )  # fmt: skip
        device.clear(self._histograms)
        launch(
            "plant", 1, 128, self._n_examples, self._totals, self._units, self._rules, self._open,
            self.nodes, self.max_nodes, self._counted, self._starts,
        )  # fmt: skip
        if self.n_steps:
            self._count(n_outputs)
            self._find_splits(1, is_root=True)
        for step in range(self.n_steps):
            self._choose(is_last=False)
            if step + 1 < self.n_steps:
                self._divide()
                self._find_splits(2 * min(self.max_chosen, 1 << step), is_root=False)
        self._choose(is_last=True)
        if self.opposite:
            launch("mirror", 1, THREADS, self.nodes, self.max_nodes, self._n_nodes)

    def _choose(self, *, is_last: bool) -> None:
        """Choose the nodes to split next, or, at the end, the splits of the final trees."""
        self.kernels.launch(
            "choose_nodes", 1, self._n_planners, int(self.best_first), int(is_last),
            self.rules.max_leaves, self._units, self._rules, self._open, self.nodes,
            self.max_nodes, self._n_nodes, self._numbers, self._chosen, self._n_chosen,
            self.max_chosen, self._cursors, self._starts,
        )  # fmt: skip

    @property
    def _n_planners(self) -> int:
        """Threads of the block that plans a step: enough for trees, and for their nodes."""
        n_warps = max(self.n_outputs, -(-self.n_outputs * self.max_chosen // 32))
        return 32 * min(n_warps, 32)

    def _divide(self) -> None:
        """Partition the examples of split nodes; one child of each is counted."""
        launch, n_segments = self.kernels.launch, self.n_outputs * self.max_chosen
        chosen = self._chosen, self._n_chosen, self.max_chosen
        launch(
            "partition", DIVIDERS * self.device.n_multiprocessors, THREADS, self._columns,
            *self.bins.neighbours,
            self._open, self.nodes, self.max_nodes, self._chosen, self.max_chosen, self._starts,
            n_segments, self.layout.n_rows, self._rows[0], self._examples[0], self._rows[1],
            self._examples[1], self._cursors,
        )  # fmt: skip
        launch(
            "plan_counts", 1, self._n_planners, self._open, self.max_nodes, *chosen, self._cursors,
            self._units, self._rules, self.rules.max_depth, self._counted, self._starts,
        )  # fmt: skip
        self._count(n_segments)

    def _count(self, n_segments: int) -> None:
        """Compute the histograms of nodes to be counted."""
        bins = self.bins
        columns = bins.by_row, bins.n_words, self._slots, self._n_bins
        others = (
            self.tiles.slots_of_offset, self.offsets[0], *bins.neighbours, self._rows[0],
            self._examples[0], self._rows[1], self._examples[1], self.layout.n_rows, self._n_safe,
            self._open, self.max_nodes, self._counted, self._starts, n_segments,
            self.n_histograms, self.n_slots, self._histograms,
        )  # fmt: skip
        if self._pairs_of_bins:
            n_tiles = len(self.offsets) * -(-bins.n_words // 32)
            grid = self._share_out(n_tiles, 0), n_tiles
            self.kernels.launch("count_pairs_of_bins", grid, THREADS, *columns, *others)
            return
        n_tiles, n_bytes = len(self.tiles.tiles), self._tile_bytes
        grid = self._share_out(n_tiles, n_bytes), n_tiles
        self.kernels.launch(
            "count_examples", grid, THREADS, *columns, self._tiles, *others, shared_bytes=n_bytes
        )

    def _share_out(self, n_tiles: int, n_bytes: int) -> int:
        """Number of blocks that share the examples, given the memory of each and the tiles."""
        n_workers = min(WORKERS, SHARED // max(1, n_bytes))
        return -(-n_workers * self.device.n_multiprocessors // n_tiles)

    def _find_splits(self, n_nodes: int, *, is_root: bool) -> None:
        """Find the best splits of up to ``n_nodes`` nodes of each tree."""
        n_parts = 4 * self.device.n_multiprocessors // (n_nodes * self.n_outputs)
        n_parts = max(1, min(n_parts, self._max_parts))
        self.kernels.launch(
            "find_splits", (n_nodes, self.n_outputs * n_parts), THREADS, int(is_root), self._chosen,
            self._n_chosen, self.max_chosen, self._slots, self._n_bins, self._categorical,
            self._may_miss, self._features, self._column_key, self._n_of_node, self.n_columns,
            len(self.offsets), self.offsets[0], self.tiles.slots_of_offset, self.n_histograms,
            self.n_slots, self._histograms, self._units, self._rules, self.rules.max_depth,
            int(self._few_bins), n_parts, self._cuts, self._n_found, self._open, self.nodes,
            self.max_nodes,
        )  # fmt: skip


def is_best_first(rules: GrowthRules) -> bool:
    """Whether `max_leaves` is below the number of leaves that `max_depth` allows."""
    return rules.max_depth >= 31 or rules.max_leaves < 1 << rules.max_depth


def count_nodes(rules: GrowthRules) -> tuple[int, int, int]:
    """Maximum numbers of nodes of a tree, of splits per step, and of steps."""
    n_splits = rules.max_leaves - 1
    n_steps = min(rules.max_depth, n_splits)
    by_step = [min(n_splits, 1 << min(step, 30)) for step in range(n_steps)]
    return 1 + 2 * sum(by_step), max(by_step, default=1), n_steps
