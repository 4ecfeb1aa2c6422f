"""Trees that split on previous labels, slowly: positions are copied for each context."""

from dataclasses import dataclass, field, replace

import numpy as np

from hedgerow import _core
from reference.trees import Grower


def pair_contexts(n_labels):
    """Edge j * K + k leads from label j to label k."""
    before, labels = np.divmod(np.arange(n_labels**2), n_labels)
    return labels.astype(np.int32), (1 + before[:, None]).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Copies:
    """The examples of one label: a position, an edge, and bins of previous labels, (n, n_lags)."""

    positions: np.ndarray
    edges: np.ndarray
    before: np.ndarray

    @classmethod
    def of(cls, label, labels, before, offsets):
        """All positions in all contexts; first positions have no previous label."""
        firsts = set(offsets[:-1][np.diff(offsets) > 0].tolist())
        edges, nothing = np.flatnonzero(labels == label).tolist(), np.zeros(before.shape[1])
        rows = [
            (t, e, before[e] if t not in firsts else nothing)
            for t in range(offsets[-1])
            for e in (edges if t not in firsts else [label])
        ]
        columns = list(zip(*rows, strict=True)) if rows else [[], [], np.empty((0, 1))]
        return cls(
            np.array(columns[0], np.int64),
            np.array(columns[1], np.int64),
            np.array(columns[2], np.int64).reshape(len(rows), -1),
        )

    def part(self, chosen):
        return Copies(self.positions[chosen], self.edges[chosen], self.before[chosen])


@dataclass
class ContextGrower(Grower):
    """Previous labels are categories, after all columns of the table."""

    before_labels: np.ndarray = None  # (n, n_lags)
    n_labels: int = 0
    label_lambda: float = 0.0
    probabilities: np.ndarray = None  # (n,) float32; None: curvatures are summed
    scales: np.ndarray = None  # (n,) float32, of the positions
    nodes: list = field(default_factory=list)

    def grow(self):
        n_lags, table = self.before_labels.shape[1], self.table
        self.lags = [
            (table.bins.shape[1] + lag, 0, self.before_labels[:, lag].tolist())
            for lag in range(n_lags)
        ]
        self.table = replace(
            table,
            n_bins=np.append(table.n_bins, np.full(n_lags, self.n_labels)),
            categorical=np.append(table.categorical, np.ones(n_lags, np.bool_)),
        )
        return super().grow()

    def largest(self, sizes):
        return np.bincount(self.positions, sizes).max(initial=0.0)

    def consider(self, number):
        """The better of the best split on a column and the best split on a previous label."""
        columns = [feature for feature in self.features if feature[0] < self.table.bins.shape[1]]
        self.features, rules = columns, self.rules
        found = super().consider(number)
        self.features = self.lags
        self.rules = replace(rules, reg_lambda=rules.reg_lambda + self.label_lambda)
        other = super().consider(number)
        self.features, self.rules = columns + self.lags, rules
        return max((each for each in (found, other) if each), key=lambda c: c.gain, default=None)

    def add_node(self, examples, depth, **above):
        super().add_node(examples, depth, **above)
        node = self.nodes[-1]
        if self.probabilities is not None:
            weight = self.joint_curvature(examples)
            divisor = weight + self.rules.reg_lambda
            step = -self.total(examples)[0] / divisor if divisor > 0 else 0.0
            step = min(max(step, -self.rules.max_step), self.rules.max_step)
            node.value = np.float32(step * self.rules.learning_rate)
            node.weight = np.float32(weight)

    def add_example(self, i, g, h):
        self.positions = np.append(self.positions, self.positions[i])
        if self.probabilities is not None:
            self.probabilities = np.append(self.probabilities, self.probabilities[i])
            self.scales = np.append(self.scales, self.scales[i])
        return super().add_example(i, g, h)

    def joint_curvature(self, examples):
        """Of each position: its own, times p (1 - p) of all its contexts here together.

        Where a part of it is here: times the share of the curvature that it had at the root.
        """
        total, one = 0.0, np.float32(1.0)
        positions = self.positions[examples]
        for t in np.unique(positions):
            own = np.array(examples)[positions == t]
            p = np.float32(0.0)
            for i in own:
                p = p + self.probabilities[i]
            p = min(p, one)
            share = sum(self.h[i] for i in own) / sum(self.h_at_root[i] for i in own)
            total += float(self.scales[own[0]] * (p * (one - p))) * share
        return total


def grow_contexts(table, window, contexts, gradients, probabilities, curvatures, rules, **options):
    """The forest of the kernel; gradients and probabilities (N, E), curvatures (N,)."""
    n_threads, trim = options.pop("n_threads", 1), options.pop("trim", 0.0)
    label_lambda = options.pop("label_lambda", 0.0)
    data = _core.TreeData(table.to_kernel(), *window)
    unit_bits = options.pop("unit_bits", (30, 31))
    examples = _core.ContextExamples(contexts, table.n_positions, unit_bits)
    for cut in options.pop("cuts", [slice(0, len(table.offsets) - 1)]):
        offsets = table.offsets[cut.start : cut.stop + 1]
        part = slice(int(offsets[0]), int(offsets[-1]))
        examples.add(
            part.start,
            offsets - offsets[0],
            gradients[part],
            None if probabilities is None else probabilities[part].astype(np.float64),
            curvatures[part],
            trim=trim,
            n_threads=n_threads,
        )
    return _core.grow_trees(
        data,
        examples,
        rules.to_kernel(label_lambda=label_lambda),
        0,
        n_threads,
        **options,
    )


def naive_tree(
    table,
    window,
    label,
    contexts,
    gradients,
    probabilities,
    curvatures,
    rules,
    trim,
    label_lambda=0.0,
    unit_bits=(30, 31),
):
    """Nodes of the tree of one label, by the naive learner."""
    labels, before = contexts
    copies = Copies.of(label, labels, before, table.offsets)
    slopes = gradients[copies.positions, copies.edges]
    sizes = np.bincount(copies.positions, np.abs(slopes), table.n_positions)
    kept = (sizes[copies.positions] > trim) & (slopes.astype(np.float32) != 0)
    copies, slopes = copies.part(kept), slopes[kept].astype(np.float32)
    scales = curvatures[copies.positions]
    p, bounds = None, scales
    if probabilities is not None:
        p = probabilities[copies.positions, copies.edges]
        bounds = scales * (p * (np.float32(1.0) - p))
    grower = ContextGrower(
        table,
        *window,
        copies.positions,
        slopes,
        bounds,
        rules,
        unit_bits=unit_bits,
        before_labels=copies.before,
        n_labels=int(labels.max()) + 1,
        label_lambda=label_lambda,
        probabilities=p,
        scales=scales,
    )
    return grower.grow()
