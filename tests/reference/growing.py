"""Trees grown by the kernel: their examples, and what must be equal."""

import numpy as np
from hypothesis import strategies as st

from hedgerow import _core
from reference.tables import tables
from reference.tree_walks import from_the_root
from reference.trees import Rules, Table

rules = st.builds(
    Rules,
    max_leaves=st.sampled_from([1, 2, 3, 8, 1000]),
    max_depth=st.sampled_from([0, 1, 2, 5]),
    min_child_weight=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    min_split_gain=st.sampled_from([0.0, 0.1, 1.0]),
    reg_lambda=st.sampled_from([0.0, 0.5, 1.0]),
    max_step=st.sampled_from([0.125, 1.0, 1e9]),
    learning_rate=st.sampled_from([0.1, 1.0]),
)


def make_examples(table, rng, share=0.8, steps=None):
    """Positions, gradients and curvatures of one label; with few different values if `steps`."""
    positions = np.flatnonzero(rng.random(table.n_positions) < share).astype(np.int32)
    n = len(positions)
    gradients, curvatures = rng.normal(size=n), rng.random(n)
    if steps:
        gradients, curvatures = rng.integers(-steps, steps + 1, n), rng.integers(0, 3, n) / 4
    return positions, gradients.astype(np.float32), curvatures.astype(np.float32)


@st.composite
def learned(draw, tables=tables()):  # noqa: B008
    """A table, and the examples of some labels."""
    table = draw(tables)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shares = draw(st.lists(st.sampled_from([0.0, 0.1, 0.6, 1.0]), min_size=1, max_size=3))
    steps = draw(st.sampled_from([1, 3, None]))
    return table, [make_examples(table, rng, share, steps) for share in shares]


def list_examples(labels, unit_bits=(30, 31)):
    sizes = [len(positions) for positions, _, _ in labels]
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    arrays = map(np.concatenate, zip(*labels, strict=True))
    return _core.Examples.of_lists(offsets, *arrays, unit_bits)


def grow(
    table,
    window,
    labels,
    rules,
    n_threads=1,
    key=0,
    bytree=1.0,
    bynode=1.0,
    column_rules=None,
    unit_bits=(30, 31),
):
    """Arrays of a tree for each label."""
    data = _core.TreeData(table.to_kernel(), *window)
    rules = rules.to_kernel(colsample_bytree=bytree, colsample_bynode=bynode)
    examples = list_examples(labels, unit_bits)
    return _core.grow_trees(data, examples, rules, key, n_threads, column_rules).arrays()


def splits(nodes):
    """What must be equal, of each node."""
    ordered = [nodes[at] for at in from_the_root(nodes)]
    assert len(ordered) == len(nodes)
    return [
        (n.column, n.offset, sorted(n.left_bins), n.gain, n.value, n.weight, n.fraction)
        for n in ordered
    ]


def assert_equal_arrays(first, second, but=()):
    assert first.keys() == second.keys()
    for name in first.keys() - set(but):
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        assert first[name].dtype == second[name].dtype


def small_table(bins, n_bins=None, lengths=None, categorical=False):
    """A table of dense columns, one for each list of `bins`."""
    bins = np.array(bins, np.int64).reshape(len(bins), -1).T
    n_bins = np.maximum(1, bins.max(axis=0)) if n_bins is None else np.full(bins.shape[1], n_bins)
    lengths = [len(bins)] if lengths is None else lengths
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    flags = np.full(bins.shape[1], categorical)
    return Table(bins, n_bins, flags, np.empty(0, np.int64), offsets)


def all_of(gradients, curvatures=None):
    """Examples of a label at positions 0, 1, ..."""
    gradients = np.array(gradients, np.float32)
    curvatures = np.ones(len(gradients)) if curvatures is None else curvatures
    return np.arange(len(gradients), dtype=np.int32), gradients, np.array(curvatures, np.float32)
