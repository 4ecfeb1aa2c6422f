"""Trees that split on previous labels: grown and walked as with explicit copies."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import _core
from reference.contexts import grow_contexts, naive_tree, pair_contexts
from reference.growing import assert_equal_arrays, rules, splits
from reference.tables import make_table, tables, windows
from reference.tree_walks import read_trees
from reference.trees import MISSING, OUTSIDE, Rules

# Two labels, and what is known of two labels before: arcs 0 and 1 are taken at the beginning only.
LONGER = (
    np.array([-1, -1, 0, 1, 0, 1, 0, 1], np.int32),
    np.array([[0, 0], [0, 0], [1, 0], [1, 0], [2, 0], [2, 0], [1, 2], [1, 2]], np.uint8),
)
CONTEXTS = {"one label": pair_contexts(1), "pairs": pair_contexts(3), "longer": LONGER}


def make_derivatives(table, contexts, rng, steps=None, zeros=0.0):
    """Gradients, probabilities and curvatures of all positions and edges.

    Gradients have few different values with `steps`; a share of them is 0.
    """
    shape = table.n_positions, len(contexts[0])
    gradients, curvatures = rng.normal(size=shape), rng.random(shape[0])
    probabilities = rng.dirichlet(np.ones(shape[1]), shape[0]) if shape[1] else np.empty(shape)
    if steps:
        gradients = 2.0 * rng.integers(-steps, steps + 1, shape) + 1.0
        curvatures = rng.integers(0, 3, shape[0])
    gradients[rng.random(shape) < zeros] = 0.0
    return gradients, probabilities.astype(np.float32), curvatures.astype(np.float32)


def core_contexts(contexts):
    labels, before = contexts
    return _core.Contexts(int(labels.max()) + 1, labels, before)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    tables(),
    windows,
    st.sampled_from(list(CONTEXTS)),
    rules,
    st.integers(0, 2**32),
    st.sampled_from([(None, 0.0), (2, 4.0)]),
    st.booleans(),
    st.booleans(),
)
def test_trees_are_those_of_the_naive_learner(
    table, window, name, rules, seed, kind, newton, fractional
):
    if fractional:
        rules = replace(rules, missing="fractional", max_leaves=min(rules.max_leaves, 8))
    contexts, (steps, trim) = CONTEXTS[name], kind
    rng = np.random.default_rng(seed)
    derivatives = make_derivatives(table, contexts, rng, steps, 0.0 if newton else 0.2)
    if not newton:
        derivatives = (derivatives[0], None, derivatives[2])
    options = {"trim": trim, "label_lambda": 3.0 * (seed % 2)}
    forest = grow_contexts(table, window, core_contexts(contexts), *derivatives, rules, **options)
    found = read_trees(forest.arrays())
    for label, tree in enumerate(found):
        naive = naive_tree(table, window, label, contexts, *derivatives, rules, **options)
        assert [row[:4] for row in splits(tree)] == [row[:4] for row in splits(naive)]
        for ours, theirs in zip(splits(tree), splits(naive), strict=True):
            np.testing.assert_allclose(ours[4:6], theirs[4:6], rtol=1e-6, atol=1e-9)
            assert ours[6] == theirs[6] or ours[0] not in range(table.bins.shape[1])
    check_scores(forest, table, contexts, found)


def check_scores(forest, table, contexts, trees):
    """Every edge has the value of the leaf that its position and its labels before come to."""
    labels, before = contexts
    n_columns, n_labels = table.bins.shape[1], forest.n_outputs
    ready = _core.ContextForest(forest, core_contexts(contexts), n_columns)
    nodes = np.zeros((table.n_positions, n_labels))
    edges = np.zeros((table.n_positions, len(labels)), np.float32)
    sums, more = np.empty_like(nodes), np.zeros_like(edges)
    ready.add_scores(table.to_kernel(), nodes, edges, sums, more, 1)
    firsts = set(table.offsets[:-1][np.diff(table.offsets) > 0].tolist())
    for t in range(table.n_positions):
        for k in range(n_labels):
            if t in firsts:
                value = leaf_value(trees[k], table, t, np.zeros(before.shape[1], int))
                assert sums[t, k] == pytest.approx(value, abs=1e-6)
        for e in np.flatnonzero(labels >= 0) if t not in firsts else ():
            value = leaf_value(trees[labels[e]], table, t, before[e])
            assert sums[t, labels[e]] + more[t, e] == pytest.approx(value, abs=1e-6)


def test_scores_do_not_depend_on_the_number_of_threads():
    """Threads score different runs of sequences if there are enough, otherwise parts of a run."""
    rng, contexts = np.random.default_rng(3), pair_contexts(3)
    table = make_table(["few"], ["there or not"], [0, 700, 1, 2500] + [700] * 6 + [0], rng)
    core, derivatives = core_contexts(contexts), make_derivatives(table, contexts, rng)
    forest = grow_contexts(table, (1, 1), core, *derivatives, Rules(max_leaves=8))
    ready = _core.ContextForest(forest, core, table.bins.shape[1])

    def score(part, n_threads):
        nodes, edges = np.zeros((part.n_positions, 3)), np.zeros((part.n_positions, 9), np.float32)
        ready.add_scores(part.to_kernel(), nodes, edges, nodes, edges, n_threads)
        return np.hstack([nodes, edges])

    bounds = zip(table.offsets[:-1], table.offsets[1:], strict=True)
    one_by_one = [
        score(replace(table, bins=table.bins[begin:end], offsets=np.array([0, end - begin])), 1)
        for begin, end in bounds
    ]
    assert np.any([rows[:, 3:].any() for rows in one_by_one])
    for n_threads in (1, 2, 3, 16):
        np.testing.assert_array_equal(score(table, n_threads), np.vstack(one_by_one))


def leaf_value(nodes, table, position, before, at=0):
    """The value of the leaf, or the mean of several, that a position comes to from a node."""
    node, n_columns = nodes[at], table.bins.shape[1]
    if node.column < 0:
        return float(node.value)
    if node.column >= n_columns:
        seen = before[node.column - n_columns]
    else:
        seen = look(table, position, node.column, node.offset)
    share = float(int(seen) in node.left_bins)
    if seen == MISSING and node.column < n_columns and node.fraction >= 0:
        share = float(node.fraction)
    return sum(
        part * leaf_value(nodes, table, position, before, child)
        for child, part in ((node.left, share), (node.left + 1, 1.0 - share))
        if part > 0.0
    )


def look(table, position, column, offset):
    sequence = np.searchsorted(table.offsets, position, side="right") - 1
    begin, end = table.offsets[sequence], table.offsets[sequence + 1]
    there = begin <= position + offset < end
    return table.bins[position + offset, column] if there else OUTSIDE


@pytest.mark.parametrize("missing", ["learned", "fractional"])
def test_the_same_trees_with_any_number_of_threads_and_in_any_parts(missing):
    rng = np.random.default_rng(0)
    table = make_table(["few", "categories"], ["there or not"], [700] * 30, rng)
    contexts, rules = pair_contexts(2), Rules(max_leaves=12, missing=missing)
    derivatives = make_derivatives(table, contexts, rng)
    core = core_contexts(contexts)
    arrays = grow_contexts(table, (1, 0), core, *derivatives, rules).arrays()
    assert (arrays["columns"] >= table.bins.shape[1]).any()
    cuts = [slice(0, 7), slice(7, 8), slice(8, 30)]
    for n_threads in (2, 3, 7):
        again = grow_contexts(
            table, (1, 0), core, *derivatives, rules, n_threads=n_threads, cuts=cuts
        )
        assert_equal_arrays(again.arrays(), arrays)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_pairs_by_label_give_the_same_trees(n_threads):
    rng, n_labels = np.random.default_rng(2), 9
    table = make_table(["few", "categories"], [], [40] * 9 + [1, 0], rng)
    n, offsets, rules = table.n_positions, table.offsets, Rules(max_leaves=8)
    pairs = rng.dirichlet(np.full(n_labels**2, 0.1), n)
    firsts = offsets[:-1][np.diff(offsets) > 0]
    totals = pairs.reshape(n, n_labels, n_labels).sum(axis=1)
    observed = rng.integers(0, n_labels**2, n).astype(np.int32)
    observed[firsts] %= n_labels
    curvatures = rng.random(n).astype(np.float32)
    by_label = np.zeros((n_labels, n, n_labels + 1), np.float32)
    by_label[:, :, :n_labels] = pairs.reshape(n, n_labels, n_labels).transpose(2, 0, 1)
    by_label[:, firsts] = np.append(np.zeros(n_labels), 1) * totals[firsts].T[:, :, None]
    of_observed = pairs[np.arange(n), observed]
    of_observed[firsts] = np.nan
    pairs[firsts, :n_labels] = totals[firsts]
    contexts = core_contexts(pair_contexts(n_labels))
    found = []
    for by_edge in (True, False):
        examples = _core.ContextExamples(contexts, n)
        options = {"trim": 0.05, "n_threads": n_threads}
        if by_edge:
            examples.add(
                0, offsets, pairs, pairs, curvatures, observed=observed, totals=totals, **options
            )
        else:
            added = (by_label, of_observed, observed, totals, curvatures)
            examples.add_pairs(0, offsets, *added, **options)
        data = _core.TreeData(table.to_kernel(), 1, 0)
        forest = _core.grow_trees(data, examples, rules.to_kernel(), 0, n_threads)
        found.append(forest.arrays())
    assert 0 < examples.n_rows(3) < n
    assert (found[0]["columns"] >= table.bins.shape[1]).any()
    for name, numbers in found[0].items():  # units of gradients and curvatures may differ
        np.testing.assert_allclose(found[1][name], numbers, rtol=1e-5)


def test_rows_of_labels_that_were_not_observed_are_drawn():
    rng, contexts = np.random.default_rng(1), pair_contexts(2)
    table = make_table(["few"], [], [50] * 20, rng)
    gradients, probabilities, curvatures = make_derivatives(table, contexts, rng)
    examples = _core.ContextExamples(core_contexts(contexts), 1000)
    added = (gradients, probabilities.astype(np.float64), curvatures)
    examples.add(0, table.offsets, *added, trim=0.0, n_threads=1)
    assert examples.n_rows(0) == examples.n_rows(1) == 1000
    codes = (rng.random(1000) < 0.1).astype(np.int32)
    examples.draw(negative_ratio=1.0, codes=codes, key=5, n_threads=2)
    assert abs(examples.n_rows(1) - 2 * codes.sum()) < 40
    assert examples.n_rows(0) == 1000
    examples.clear()
    assert examples.n_rows(0) == 0


def sum_gradients(table, contexts, derivatives, **draws):
    """Sum of the gradients of each output's rows, (K,), which a single leaf shows."""
    examples = _core.ContextExamples(core_contexts(contexts), table.n_positions)
    gradients, probabilities, curvatures = derivatives
    added = (gradients, probabilities.astype(np.float64), curvatures)
    examples.add(0, table.offsets, *added, trim=0.0, n_threads=1)
    if draws:
        examples.draw(**draws, n_threads=2)
    data, scale = _core.TreeData(table.to_kernel(), 0, 0), 2.0**30
    rules = _core.GrowthRules(**vars(Rules(max_leaves=1, reg_lambda=scale, learning_rate=1.0)))
    forest = _core.grow_trees(data, examples, rules, 0, 1)
    return np.array([-float(tree[0].value) * scale for tree in read_trees(forest.arrays())])


def test_draws_of_rows_are_right_in_the_mean():
    rng, contexts = np.random.default_rng(1), pair_contexts(2)
    table = make_table(["few"], [], [10] * 20, rng)
    derivatives = make_derivatives(table, contexts, rng)
    codes = (rng.random(200) < 0.2).astype(np.int32)
    expected = sum_gradients(table, contexts, derivatives)
    for draws in (
        {"share": 0.3},
        {"negative_ratio": 0.15, "codes": codes},
        {"share": 0.6, "negative_ratio": 0.15, "codes": codes},
    ):
        sums = np.array(
            [sum_gradients(table, contexts, derivatives, key=key, **draws) for key in range(200)]
        )
        errors = sums.std(axis=0, ddof=1) / np.sqrt(len(sums))
        assert (errors > 0).all()
        assert (np.abs(sums.mean(axis=0) - expected) <= 4 * errors).all()
        assert len(np.unique(sums[:, 0])) > 100


def test_rows_without_weights_and_with_a_large_ratio_are_all_there():
    rng, contexts = np.random.default_rng(1), pair_contexts(2)
    table = make_table(["few"], [], [10] * 20, rng)
    derivatives = make_derivatives(table, contexts, rng)
    codes = (rng.random(200) < 0.2).astype(np.int32)
    given = {"codes": codes, "key": 1, "negative_ratio": 1e6}
    none, balanced = (
        sum_gradients(table, contexts, derivatives, negative_weight=weight, **given)
        for weight in (_core.NegativeWeight.NONE, _core.NegativeWeight.BALANCED)
    )
    expected = sum_gradients(table, contexts, derivatives)
    np.testing.assert_array_equal(none, expected)
    # All rows are there, those of the others by the ratio of their number.
    gradients = derivatives[0].copy()
    for k in range(2):
        others = codes != k
        ratio = (codes == k).sum() / others.sum()
        weights = np.where(others, ratio, 1.0)
        by_output = [gradients[:, edge] for edge in np.flatnonzero(contexts[0] == k)]
        first = np.isin(np.arange(200), table.offsets)  # only the first K edges count there
        sums = np.where(first, gradients[:, k], sum(by_output))
        assert balanced[k] == pytest.approx((weights * sums).sum(), rel=1e-4)


def test_draws_that_make_no_sense_are_refused():
    examples = _core.ContextExamples(core_contexts(pair_contexts(2)), 2)
    with pytest.raises(ValueError, match="sampling by label needs a code for each position"):
        examples.draw(negative_ratio=1.0, key=0, n_threads=1)
    with pytest.raises(ValueError, match="a share of the examples must be above 0"):
        examples.draw(share=0.0, key=0, n_threads=1)


@pytest.mark.parametrize("name", CONTEXTS)
@pytest.mark.parametrize("newton", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("draws", [True, False])
def test_gradients_may_be_expected_and_observed_counts(name, newton, weighted, draws):
    rng, contexts = np.random.default_rng(2), CONTEXTS[name]
    table = make_table(["few", "categories"], [], [3, 1, 0, 40] * 20, rng)
    _, expected, curvatures = make_derivatives(table, contexts, rng)
    expected, weights = expected.astype(np.float64), np.ones(table.n_positions)
    if weighted:
        weights = rng.integers(1, 4, table.n_positions) / 2
    core, n_labels = core_contexts(contexts), int(contexts[0].max()) + 1
    taken = np.flatnonzero(contexts[0] >= 0).astype(np.int32)
    observed = rng.choice(np.append(taken, np.int32(-1)), table.n_positions)
    firsts = table.offsets[:-1][np.diff(table.offsets) > 0]
    observed[firsts] = rng.integers(0, n_labels, len(firsts))
    seen = np.flatnonzero(observed >= 0)
    gradients = expected.copy()
    gradients[seen, observed[seen]] -= 1.0
    probabilities = expected if newton else None
    counts = {"observed": observed, "weights": weights if weighted else None}
    totals = np.stack([expected[:, contexts[0] == k].sum(axis=1) for k in range(n_labels)], axis=1)
    totals[firsts] = expected[firsts, :n_labels]
    ways = [(gradients * weights[:, None], {}), (expected, counts)]
    forests = []
    for added, more in [*ways, (expected, counts | {"totals": totals})]:
        examples = _core.ContextExamples(core, table.n_positions)
        options = {"trim": 0.4, "n_threads": 2} | more
        examples.add(0, table.offsets, added, probabilities, curvatures, **options)
        if draws:
            examples.draw(share=0.7, key=3, n_threads=2)
        rules = _core.GrowthRules(**vars(Rules(max_leaves=12)))
        data = _core.TreeData(table.to_kernel(), 0, 0)
        forests.append(_core.grow_trees(data, examples, rules, 0, 1).arrays())
    for forest in forests[1:]:
        assert_equal_arrays(forests[0], forest)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_edges_are_those_of_trees_plus_given_ones(n_threads):
    rng = np.random.default_rng(0)
    edges, others = rng.normal(size=(3000, 9)).astype(np.float32), rng.normal(size=(3000, 9))
    out = np.empty_like(others)
    _core.fill_edges(edges, None, out, n_threads)
    np.testing.assert_array_equal(out, edges)
    _core.fill_edges(edges, others, out, n_threads)
    np.testing.assert_array_equal(out, edges + others)
    with pytest.raises(ValueError, match="edges and out must have the same shape"):
        _core.fill_edges(edges, others[1:], out, n_threads)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"gradients": np.zeros((2, 3))},
            "gradients must have an entry for each position and edge",
        ),
        ({"probabilities": np.zeros((2, 3))}, "probabilities must have an entry for each"),
        (
            {"curvatures": np.zeros(3, np.float32)},
            "curvatures must have an entry for each position",
        ),
        ({"offsets": np.array([0, 3])}, "offsets must run from 0"),
        ({"first_position": -1}, "positions must come in order"),
        ({"scales": np.ones(1)}, "scales must have an entry for each position"),
        ({"selected": np.ones(1, np.uint8)}, "selected must have an entry for each position"),
        ({"observed": np.zeros(1, np.int32)}, "observed must have an edge for each position"),
        ({"observed": np.full(2, 4, np.int32)}, "an observed edge is out of range"),
        ({"weights": np.ones(1)}, "weights must have an entry for each position"),
        (
            {"totals": np.ones((2, 3))},
            "totals must have an entry for each position and output",
        ),
        ({"totals": np.ones((2, 2))}, "totals are for gradients that are expected counts"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    arguments = {
        "first_position": 0,
        "offsets": np.array([0, 2]),
        "gradients": np.zeros((2, 4)),
        "probabilities": np.zeros((2, 4)),
        "curvatures": np.zeros(2, np.float32),
        "trim": 0.0,
        "n_threads": 1,
    }
    examples = _core.ContextExamples(core_contexts(pair_contexts(2)), 2)
    with pytest.raises(ValueError, match=message):
        examples.add(**arguments | change)


def test_parts_whose_gradients_differ_in_kind_are_refused():
    examples = _core.ContextExamples(core_contexts(pair_contexts(2)), 4)
    expected, curvatures = np.full((2, 4), 0.25), np.ones(2, np.float32)
    options = {"offsets": np.array([0, 2]), "curvatures": curvatures, "trim": 0.0, "n_threads": 1}
    observed = np.zeros(2, np.int32)
    examples.add(0, gradients=expected, probabilities=expected, observed=observed, **options)
    with pytest.raises(ValueError, match="gradients of the same kind"):
        examples.add(2, gradients=expected, probabilities=expected.copy(), **options)


@pytest.mark.parametrize(
    ("labels", "before", "message"),
    [
        ([0], [[1]], "fewer edges than labels"),
        ([0, 2], [[1], [1]], "leads to no label"),
        ([0, 1], [[1], [3]], "label of a context is out of range"),
        ([0, 1], [[1]], "every edge needs a label"),
    ],
)
def test_contexts_that_make_no_sense_are_refused(labels, before, message):
    with pytest.raises(ValueError, match=message):
        _core.Contexts(2, np.array(labels, np.int32), np.array(before, np.uint8))
