"""Growth of trees, slow and simple: every feature is copied, every split is tried."""

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from hedgerow import _core

SMALLEST_GAIN = 1e-6
MISSING, OUTSIDE = 0, -1  # bins of missing values and of positions outside


@dataclass(frozen=True)
class Rules:
    """Limits of a tree; the defaults set none."""

    max_leaves: int = 1000
    max_depth: int = 1000
    min_child_weight: float = 0.0
    min_split_gain: float = 0.0
    reg_lambda: float = 1.0
    max_step: float = 1e9
    learning_rate: float = 1.0
    missing: str = "learned"
    fills: tuple | None = None  # by column, with "impute" and "indicator"

    @property
    def by_known(self):
        """Whether splits are chosen by known values only."""
        return self.missing in ("fractional", "surrogate")

    def to_kernel(self, **more):
        fills = None if self.fills is None else np.array(self.fills, np.uint8)
        return _core.GrowthRules(**{**vars(self), "fills": fills}, **more)


@dataclass(frozen=True)
class ColumnRules:
    """Constraints of columns in one tree; the defaults set none."""

    directions: tuple = ()  # by column: the value never falls (1), never rises (-1); 2: unused
    groups: tuple = ()  # sets of columns that may interact
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
    """Bins of all columns at N positions, as a full table and in the format of the kernels.

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

    @lru_cache(maxsize=256)  # noqa: B019 -- a walk looks at one position after another
    def look(self, column, offset):
        """Bins of a column at an offset, OUTSIDE beyond the ends of a sequence, (N,)."""
        seen = np.full(self.n_positions, OUTSIDE)
        for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            for t in range(begin, end):
                if begin <= t + offset < end:
                    seen[t] = self.bins[t + offset, column]
        return seen

    def unfold(self, before, after):
        """The table of all columns at all offsets, by column and then by offset; all dense.

        Beyond the ends of a sequence values are missing.
        """
        reach = range(-before, after + 1)
        looks = [self.look(c, o) for c in range(self.bins.shape[1]) for o in reach]
        columns = [np.maximum(look, MISSING) for look in looks]
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
    examples: list  # numbers of the examples in the node
    depth: int
    column: int = -1
    offset: int = 0
    left_bins: frozenset = frozenset()
    left: int = -1
    gain: float = 0.0  # float32 as well, where there is one
    bounds: tuple = (-np.inf, np.inf)  # of the steps below it
    branch: frozenset = frozenset()  # columns split on above it
    fraction: float = -1.0  # share of missing values that goes left, if they go both ways
    surrogates: list = field(default_factory=list)  # (column, offset, bins that go left)


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
    unit_bits: tuple = (30, 31)  # all gradients have up to 2^30 units, and all curvatures 2^31
    nodes: list = field(default_factory=list)

    def grow(self):
        of_gradients, of_curvatures = self.unit_bits
        self.g, self.g_unit = self.to_units(self.gradients, of_gradients, 30)
        self.h, self.h_unit = self.to_units(self.curvatures, of_curvatures, 31)
        self.h = [max(h, 1) for h in self.h]
        self.h_at_root = list(self.h)
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

    def to_units(self, values, n_bits, bits_of_each):
        """Whole numbers, and the power of two that they are multiples of."""
        values = np.asarray(values, np.float32).astype(np.float64)
        sizes = np.abs(values)
        unit, largest = unit_for(sum(sizes.tolist()), n_bits), self.largest(sizes)
        if largest > 0:
            unit = max(unit, unit_for(largest, bits_of_each))
        return [int(v) for v in np.rint(values / unit)], unit

    def largest(self, sizes):
        """What no unit is too small for."""
        return sizes.max(initial=0.0)

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
        parent.column, parent.offset, parent.left_bins = split.column, split.offset, split.left_bins
        parent.gain, parent.left = np.float32(split.gain), len(self.nodes)
        left = [i for i in parent.examples if bins[i] in split.left_bins]
        right = [i for i in parent.examples if bins[i] not in split.left_bins]
        if self.rules.by_known and split.column < self.table.bins.shape[1]:
            left, right = self.divide(parent, bins, left, right)
        branch = parent.branch | {split.column}
        for examples, bounds in zip((left, right), self.narrow(parent, left, right), strict=True):
            self.add_node(examples, parent.depth + 1, bounds=bounds, branch=branch)
        return [self.consider(parent.left), self.consider(parent.left + 1)]

    def divide(self, parent, bins, left, right):
        """The sides of a split; missing values go both ways, or by surrogates."""
        missing = [i for i in parent.examples if bins[i] == MISSING]
        left = [i for i in left if bins[i] != MISSING]
        right = [i for i in right if bins[i] != MISSING]
        weight = sum(self.h[i] for i in left)
        if self.rules.missing == "fractional":
            parent.fraction = np.float32(weight / (weight + sum(self.h[i] for i in right)))
            parts = [self.part(i, float(parent.fraction)) for i in missing]
            left += [one for one, _ in parts if one is not None]
            right += [other for _, other in parts if other is not None]
        else:
            parent.surrogates = self.find_surrogates(parent, left, right)
            looks = {(c, o): b for c, o, b in self.features}
            for i in missing:
                answers = (
                    looks[c, o][i] in left_bins
                    for c, o, left_bins in parent.surrogates
                    if looks[c, o][i] > 0
                )
                (left if next(answers, MISSING in parent.left_bins) else right).append(i)
        return sorted(left), sorted(right)

    def part(self, i, share):
        """Numbers of the two parts of an example; None for one that is too small."""
        h_left = round(share * self.h[i])
        smaller = min(h_left, self.h[i] - h_left)
        if smaller == 0 or 64 * smaller < self.h_at_root[i]:
            return (i, None) if 2 * h_left > self.h[i] else (None, i)
        g_left = round(share * self.g[i])
        left = self.add_example(i, g_left, h_left)
        return left, self.add_example(i, self.g[i] - g_left, self.h[i] - h_left)

    def add_example(self, i, g, h):
        for values, value in (
            (self.g, g),
            (self.h, h),
            (self.h_at_root, self.h_at_root[i]),
            *((bins, bins[i]) for _, _, bins in self.features),
        ):
            values.append(value)
        return len(self.g) - 1

    def find_surrogates(self, parent, left, right):
        """The five features that predict best which side a split sends an example to."""
        left, found = set(left), []
        heavier = sum(self.h[i] for i in left) > sum(self.h[i] for i in right)
        for column, offset, bins in self.features:
            is_free = self.column_rules.direction(column) == 0
            is_allowed = self.column_rules.allow(column, parent.branch | {parent.column})
            if (column, offset) == (parent.column, parent.offset) or not (is_free and is_allowed):
                continue
            both = [i for i in [*left, *right] if bins[i] > 0]
            n_bins = int(self.table.n_bins[column])
            by_bin = np.zeros((n_bins + 1, 2), np.int64)
            for i in both:
                by_bin[bins[i], int(i in left)] += self.h[i]
            smaller = by_bin.sum(axis=0).min()
            best, left_bins = max(
                self.ways_to_predict(column, by_bin, heavier), key=lambda way: way[0]
            )
            excess = smaller - (by_bin.sum() - best)
            if smaller > 0 and excess > 0:
                found.append((-float(excess) / float(smaller), column, offset, left_bins))
        found.sort(key=lambda each: each[:3])
        return [each[1:] for each in found[:5]]

    def ways_to_predict(self, column, by_bin, heavier):
        """Weights that agree, and the bins that go left, in the order in which they are tried."""
        n_bins = len(by_bin) - 1
        if self.table.categorical[column]:
            sides = [(a < b) if a != b else heavier for a, b in by_bin[1:].tolist()]
            chosen = frozenset(b for b, side in enumerate(sides, 1) if side)
            return [(by_bin.max(axis=1).sum(), chosen)]
        ways = [(0, frozenset())]
        for cut in range(1, n_bins):
            low, high = frozenset(range(1, cut + 1)), frozenset(range(cut + 1, n_bins + 1))
            below, above = by_bin[: cut + 1].sum(axis=0), by_bin[cut + 1 :].sum(axis=0)
            ways += [(below[1] + above[0], low), (below[0] + above[1], high)]
        return ways

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
        for column, offset, bins in self.features:
            if not self.column_rules.allow(column, node.branch):
                continue
            known, least_weight = node.examples, self.rules.min_child_weight
            if self.rules.by_known and column < self.table.bins.shape[1]:
                known = [i for i in node.examples if bins[i] != MISSING]
                if self.rules.missing == "fractional" and known:
                    weights = [sum(self.h[i] for i in each) for each in (known, node.examples)]
                    least_weight *= weights[0] / weights[1]
            whole = self.score(known, node.bounds)
            for left_bins in self.all_ways_to_cut(column, offset, known, bins):
                left = [i for i in known if bins[i] in left_bins]
                right = [i for i in known if bins[i] not in left_bins]
                if not left or not right:
                    continue
                lighter = min(self.total(left)[1], self.total(right)[1])
                if lighter < least_weight:
                    continue
                gain = self.score(left, node.bounds) + self.score(right, node.bounds) - whole
                # Of equal splits, the first is kept.
                if gain > least and self.in_order(column, left, right, node.bounds):
                    least = gain
                    best = Candidate(number, gain, column, offset, left_bins)
        return best

    def all_ways_to_cut(self, column, offset, examples, bins):
        """The same, with directions of missing values."""
        if column >= self.table.bins.shape[1] or self.rules.missing == "learned":
            yield from self.ways_to_cut(column, offset, examples, bins)
        elif self.rules.by_known:
            for left_bins in self.ways_to_cut(column, offset, examples, bins):
                weight = sum(self.h[i] for i in examples if bins[i] in left_bins)
                heavier = 2 * weight > sum(self.h[i] for i in examples)
                yield (left_bins | {MISSING}) if heavier else (left_bins - {MISSING})
        else:
            fill = self.rules.fills[column]
            filled = [fill if b == MISSING else b for b in bins]
            for left_bins in self.ways_to_cut(column, offset, examples, filled):
                yield (left_bins | {MISSING}) if fill in left_bins else (left_bins - {MISSING})
            if self.rules.missing == "indicator" and any(bins[i] == MISSING for i in examples):
                there = frozenset(range(1, int(self.table.n_bins[column]) + 1))
                yield there | {OUTSIDE} if offset else there

    def score(self, examples, bounds):
        if not examples:
            return 0.0
        gradient, weight = self.total(examples)
        divisor, step = weight + self.rules.reg_lambda, self.step(examples, bounds)
        if step != -gradient / divisor:
            return -step * (2 * gradient + divisor * step)
        return gradient * gradient / divisor

    def ways_to_cut(self, column, offset, examples, bins):
        """Sets of bins that go left, in the order in which they are tried."""
        n_bins = int(self.table.n_bins[column])
        by_bin = {b: [i for i in examples if bins[i] == b] for b in {bins[i] for i in examples}}
        seen = sorted(by_bin.keys() - {MISSING, OUTSIDE})
        if self.table.categorical[column]:
            seen.sort(key=lambda b: (self.ratio(by_bin[b]), b))
        for n in range(1, len(seen) + 1):
            if self.table.categorical[column]:
                left = frozenset(seen[:n])
                unseen = frozenset(range(1, n_bins + 1)) - by_bin.keys()
            else:
                left = frozenset(range(1, seen[n - 1] + 1))
                unseen = frozenset()
            for outside in (False, True) if OUTSIDE in by_bin else (None,):
                for missing in (False, True) if MISSING in by_bin else (None,):
                    there = [b for b in seen[:n] if b in left]
                    there += [MISSING] * bool(missing) + [OUTSIDE] * bool(outside)
                    weight = sum(self.h[i] for b in there for i in by_bin[b])
                    heavier = 2 * weight > sum(self.h[i] for i in examples)
                    ways = self.ways_of_unseen(column, offset, missing, outside, heavier)
                    with_missing = unseen | {MISSING} if ways[0] else frozenset()
                    yield left | with_missing | ({OUTSIDE} if ways[1] else frozenset())

    def ways_of_unseen(self, column, offset, missing, outside, heavier):
        """Whether missing values and positions outside go left; None: they do not occur here."""
        is_label = column >= self.table.bins.shape[1]
        never_missing = not is_label and self.table.bins[:, column].all()
        if missing is None:
            missing = outside if outside is not None and never_missing else heavier
        if outside is None:
            outside = offset != 0 and heavier
        return missing, outside

    def ratio(self, examples):
        gradient, weight = self.total(examples)
        return gradient / (weight + self.rules.reg_lambda)


def clip(value, lower, upper):
    return min(max(value, lower), upper)


def unit_for(size, n_bits):
    """The power of two of which a size has up to 2^n_bits."""
    return float(np.ldexp(1.0, (np.frexp(size)[1] if size > 0 else 0) - n_bits))


def grow_tree(
    table,
    window,
    positions,
    gradients,
    curvatures,
    rules,
    column_rules=ColumnRules(),  # noqa: B008
    unit_bits=(30, 31),
):
    """Nodes of one tree."""
    examples = positions, gradients, curvatures
    return Grower(table, *window, *examples, rules, column_rules, unit_bits).grow()
