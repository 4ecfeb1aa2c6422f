"""Trees, slowly and plainly: every feature copied out, every split tried, every example walked."""

from dataclasses import dataclass, field, replace

import numpy as np

from hedgerow import _core

SMALLEST_GAIN = 1e-6


@dataclass(frozen=True)
class Rules:
    """What a tree may be; the defaults bind nothing."""

    max_leaves: int = 1000
    max_depth: int = 1000
    min_child_weight: float = 0.0
    min_split_gain: float = 0.0
    reg_lambda: float = 1.0
    max_step: float = 1e9
    learning_rate: float = 1.0


@dataclass(frozen=True)
class ColumnRules:
    """What columns may do in one tree; the defaults bind nothing."""

    directions: tuple = ()  # by column: the value never falls (1), never rises (-1); 2: unused
    groups: tuple = ()  # sets of columns that may meet in a branch
    max_columns: int = 0  # in a branch; 0: any number

    def direction(self, column):
        return self.directions[column] if self.directions else 0

    def allow(self, column, branch):
        """Whether to split on a column below splits on the columns of `branch`."""
        together = branch | {column}
        fits = not self.groups or any(together <= set(group) for group in self.groups)
        few = not self.max_columns or len(together) <= self.max_columns
        return self.direction(column) != 2 and (not branch or (fits and few))


@dataclass(frozen=True, eq=False)
class Table:
    """Bins of all columns at N positions, as a full table and as the kernels want them.

    The last columns are sparse attributes, with a default bin each.
    """

    bins: np.ndarray  # (N, C)
    n_bins: np.ndarray  # (C,)
    categorical: np.ndarray  # (C,)
    defaults: np.ndarray  # (A,)
    offsets: np.ndarray  # (S + 1,) of sequences

    @property
    def n_positions(self):
        return len(self.bins)

    @property
    def n_dense(self):
        return self.bins.shape[1] - len(self.defaults)

    def to_kernel(self):
        dense = np.ascontiguousarray(self.bins[:, : self.n_dense], np.uint8)
        entries = self.bins[:, self.n_dense :] != self.defaults
        rows, attributes = np.nonzero(entries)
        sparse = (None, None, None)
        if len(self.defaults):
            sparse = (
                np.concatenate([[0], np.cumsum(entries.sum(axis=1), dtype=np.int64)]),
                attributes.astype(np.int32),
                self.bins[rows, self.n_dense + attributes].astype(np.uint8),
            )
        return _core.Bins(
            dense,
            *sparse,
            self.n_bins.astype(np.int32),
            self.defaults.astype(np.uint8),
            self.categorical.astype(np.uint8),
            self.offsets,
        )

    def look(self, column, offset):
        """Bins of a column at an offset: missing where the sequence ends before that, (N,)."""
        seen = np.zeros(self.n_positions, np.int64)
        for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            for t in range(begin, end):
                if begin <= t + offset < end:
                    seen[t] = self.bins[t + offset, column]
        return seen

    def unfold(self, before, after):
        """The table of all columns at all offsets, by column and then by offset; all dense."""
        reach = range(-before, after + 1)
        columns = [self.look(c, o) for c in range(self.bins.shape[1]) for o in reach]
        shape = (self.n_positions, len(columns))
        return replace(
            self,
            bins=np.array(columns, np.int64).reshape(shape[::-1]).T,
            n_bins=np.repeat(self.n_bins, len(reach)),
            categorical=np.repeat(self.categorical, len(reach)),
            defaults=np.empty(0, np.int64),
        )


@dataclass
class Node:
    value: np.float32
    weight: np.float32
    examples: list  # numbers of the examples that are here
    depth: int
    column: int = -1
    offset: int = 0
    left_bins: frozenset = frozenset()
    left: int = -1
    gain: float = 0.0  # float32 as well, where there is one
    bounds: tuple = (-np.inf, np.inf)  # of the steps below it
    branch: frozenset = frozenset()  # columns split on above it


@dataclass
class Candidate:
    node: int
    gain: float
    column: int
    offset: int
    left_bins: frozenset


@dataclass
class Grower:
    """Grows one tree, best split first."""

    table: Table
    before: int
    after: int
    positions: np.ndarray
    gradients: np.ndarray  # float32
    curvatures: np.ndarray  # float32
    rules: Rules
    column_rules: ColumnRules = ColumnRules()
    nodes: list = field(default_factory=list)

    def grow(self):
        self.g, self.g_unit = to_whole_units(self.gradients, 30)
        self.h, self.h_unit = to_whole_units(self.curvatures, 31)
        self.h = [max(h, 1) for h in self.h]
        self.features = [
            (column, offset, self.table.look(column, offset)[self.positions].tolist())
            for column in range(self.table.bins.shape[1])
            for offset in range(-self.before, self.after + 1)
        ]
        self.add_node(list(range(len(self.positions))), 0)
        candidates = [self.consider(0)]
        for _ in range(self.rules.max_leaves - 1):
            candidates = [candidate for candidate in candidates if candidate is not None]
            if not candidates:
                break
            best = max(candidates, key=lambda c: (c.gain, -c.node))
            candidates.remove(best)
            candidates += self.expand(best)
        return self.nodes

    def add_node(self, examples, depth, **above):
        node = Node(0.0, np.float32(self.total(examples)[1]), examples, depth, **above)
        limited = clip(self.step(examples, node.bounds), -self.rules.max_step, self.rules.max_step)
        node.value = np.float32(limited * self.rules.learning_rate)
        self.nodes.append(node)

    def step(self, examples, bounds):
        gradient, weight = self.total(examples)
        divisor = weight + self.rules.reg_lambda
        return clip(-gradient / divisor if divisor > 0 else 0.0, *bounds)

    def total(self, examples):
        gradient, curvature = sum(self.g[i] for i in examples), sum(self.h[i] for i in examples)
        return float(gradient) * self.g_unit, float(curvature) * self.h_unit

    def expand(self, split):
        parent = self.nodes[split.node]
        (bins,) = [b for c, o, b in self.features if (c, o) == (split.column, split.offset)]
        left = [i for i in parent.examples if bins[i] in split.left_bins]
        right = [i for i in parent.examples if bins[i] not in split.left_bins]
        parent.column, parent.offset, parent.left_bins = split.column, split.offset, split.left_bins
        parent.gain, parent.left = np.float32(split.gain), len(self.nodes)
        branch = parent.branch | {split.column}
        for examples, bounds in zip((left, right), self.narrow(parent, left, right), strict=True):
            self.add_node(examples, parent.depth + 1, bounds=bounds, branch=branch)
        return [self.consider(parent.left), self.consider(parent.left + 1)]

    def narrow(self, parent, left, right):
        """Bounds of the children: no step goes beyond the middle of theirs."""
        lower, upper = parent.bounds
        most = self.rules.max_step
        steps = [clip(self.step(side, parent.bounds), -most, most) for side in (left, right)]
        sides = [(lower, sum(steps) / 2), (sum(steps) / 2, upper)]
        direction = self.column_rules.direction(parent.column)
        return {0: [parent.bounds] * 2, 1: sides, -1: sides[::-1]}[direction]

    def in_order(self, column, left, right, bounds):
        direction = self.column_rules.direction(column)
        return direction * self.step(left, bounds) <= direction * self.step(right, bounds)

    def consider(self, number):
        node, best = self.nodes[number], None
        least = max(self.rules.min_split_gain, SMALLEST_GAIN)
        if node.depth >= self.rules.max_depth:
            return None
        whole = self.score(node.examples, node.bounds)
        for column, offset, bins in self.features:
            if not self.column_rules.allow(column, node.branch):
                continue
            for left_bins in self.ways_to_cut(column, node.examples, bins):
                left = [i for i in node.examples if bins[i] in left_bins]
                right = [i for i in node.examples if bins[i] not in left_bins]
                if not left or not right:
                    continue
                lighter = min(self.total(left)[1], self.total(right)[1])
                if lighter < self.rules.min_child_weight:
                    continue
                gain = self.score(left, node.bounds) + self.score(right, node.bounds) - whole
                # The first of equals stays.
                if gain > least and self.in_order(column, left, right, node.bounds):
                    least = gain
                    best = Candidate(number, gain, column, offset, left_bins)
        return best

    def score(self, examples, bounds):
        if not examples:
            return 0.0
        gradient, weight = self.total(examples)
        divisor, step = weight + self.rules.reg_lambda, self.step(examples, bounds)
        if step != -gradient / divisor:
            return -step * (2 * gradient + divisor * step)
        return gradient * gradient / divisor

    def ways_to_cut(self, column, examples, bins):
        """Sets of bins to go left, in the order in which they are tried."""
        n_bins = int(self.table.n_bins[column])
        by_bin = {b: [i for i in examples if bins[i] == b] for b in {bins[i] for i in examples}}
        seen = sorted(by_bin.keys() - {0})
        if self.table.categorical[column]:
            seen.sort(key=lambda b: (self.ratio(by_bin[b]), b))
        for n in range(1, len(seen) + 1):
            if self.table.categorical[column]:
                left = frozenset(seen[:n])
                unseen = frozenset(range(1, n_bins + 1)) - by_bin.keys()
            else:
                left = frozenset(range(1, seen[n - 1] + 1))
                unseen = frozenset()
            with_missing = left | unseen | {0}
            if 0 in by_bin:
                yield left
                yield with_missing
                continue
            there = [i for b in seen[:n] for i in by_bin[b]]
            heavier = 2 * sum(self.h[i] for i in there) > sum(self.h[i] for i in examples)
            yield with_missing if heavier else left

    def ratio(self, examples):
        gradient, weight = self.total(examples)
        return gradient / (weight + self.rules.reg_lambda)


def clip(value, lower, upper):
    return min(max(value, lower), upper)


def to_whole_units(values, n_bits):
    """Whole numbers, and the power of two that they are multiples of."""
    values = np.asarray(values, np.float32).astype(np.float64)
    total = sum(np.abs(values).tolist())
    exponent = np.frexp(total)[1] if total > 0 else 0
    unit = float(np.ldexp(1.0, exponent - n_bits))
    return [int(v) for v in np.rint(values / unit)], unit


def grow_tree(
    table,
    window,
    positions,
    gradients,
    curvatures,
    rules,
    column_rules=ColumnRules(),  # noqa: B008
):
    """Nodes of one tree."""
    return Grower(table, *window, positions, gradients, curvatures, rules, column_rules).grow()


def from_the_root(nodes, at=0):
    """All nodes, each before those below it, left before right; nodes are numbered in any order."""
    if nodes[at].column < 0:
        return [at]
    left = nodes[at].left
    return [at, *from_the_root(nodes, left), *from_the_root(nodes, left + 1)]


def walk(table, nodes, position):
    """Number of the leaf that a position comes to."""
    at = 0
    while nodes[at].column >= 0:
        seen = table.look(nodes[at].column, nodes[at].offset)[position]
        at = nodes[at].left + (int(seen) not in nodes[at].left_bins)
    return at


def read_trees(arrays):
    """Nodes of all trees of a dict of arrays, without their examples."""
    return [
        [read_node(arrays, n) for n in range(begin, end)]
        for begin, end in zip(arrays["tree_offsets"][:-1], arrays["tree_offsets"][1:], strict=True)
    ]


def read_node(arrays, n):
    node = Node(arrays["values"][n], arrays["weights"][n], [], -1)
    node.column, node.offset = int(arrays["columns"][n]), int(arrays["offsets"][n])
    node.left, node.gain = int(arrays["lefts"][n]), arrays["gains"][n]
    if node.column >= 0 and arrays["sets"][n] >= 0:
        bits = np.unpackbits(arrays["left_sets"].reshape(-1, 32), axis=1, bitorder="little")
        node.left_bins = frozenset(np.flatnonzero(bits[arrays["sets"][n]]).tolist())
    elif node.column >= 0:
        first = 0 if arrays["missing_left"][n] else 1
        node.left_bins = frozenset(range(first, int(arrays["cuts"][n]) + 1))
    return node
