"""Units: sums of more than 32 bits, for data of many positions, give the trees of exact sums."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow.trees.learner as learners
from hedgerow import TreeCRF, _core
from hedgerow.trees.units import UNIT_BITS, count_bits
from reference.contexts import grow_contexts, naive_tree, pair_contexts
from reference.growing import (
    all_of,
    assert_equal_arrays,
    grow,
    learned,
    list_examples,
    make_examples,
    rules,
    small_table,
    splits,
)
from reference.tables import make_table, tables, windows
from reference.trainings import make_data, saved
from reference.tree_walks import read_trees
from reference.trees import Rules, grow_tree

WIDE = 36, 37
KINDS = ["few, some missing", "many", "categories"], ["there or not", "there or not"]


@pytest.mark.parametrize(
    ("n_positions", "bits"),
    [
        (0, (30, 31)),
        (10_000_000, (30, 31)),
        (10_000_001, (34, 35)),
        (2**24, (34, 35)),
        (2**24 + 1, (35, 36)),
        (100_000_000, (37, 38)),
    ],
)
def test_a_position_of_many_has_as_many_units_as_one_of_a_million(n_positions, bits):
    assert count_bits(n_positions) == bits


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    learned(),
    windows,
    rules,
    st.sampled_from([(31, 32), WIDE, (41, 42)]),
    st.sampled_from(["learned", "fractional", "surrogate"]),
)
def test_trees_are_those_of_the_naive_learner(learned, window, rules, unit_bits, missing):
    table, labels = learned
    rules = replace(rules, missing=missing)
    arrays = grow(table, window, labels, rules, unit_bits=unit_bits)
    for tree, label in zip(read_trees(arrays), labels, strict=True):
        assert splits(tree) == splits(grow_tree(table, window, *label, rules, unit_bits=unit_bits))
    assert_equal_arrays(arrays, grow(table, window, labels, rules, 3, unit_bits=unit_bits))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(tables(), windows, rules, st.integers(0, 2**32), st.sampled_from([(31, 32), WIDE]))
def test_so_are_trees_that_ask_about_labels(table, window, rules, seed, unit_bits):
    rng = np.random.default_rng(seed)
    labels, before = pair_contexts(2)
    n = table.n_positions
    derivatives = rng.normal(size=(n, 4)), rng.dirichlet(np.ones(4), n).astype(np.float32)
    derivatives += (rng.random(n).astype(np.float32),)
    contexts = _core.Contexts(2, labels, before)
    options = {"trim": 0.0, "unit_bits": unit_bits}
    forest = grow_contexts(table, window, contexts, *derivatives, rules, **options)
    for label, tree in enumerate(read_trees(forest.arrays())):
        naive = naive_tree(table, window, label, (labels, before), *derivatives, rules, **options)
        assert [row[:4] for row in splits(tree)] == [row[:4] for row in splits(naive)]
        for ours, theirs in zip(splits(tree), splits(naive), strict=True):
            np.testing.assert_allclose(ours[4:], theirs[4:], rtol=1e-6, atol=1e-9)


def make_examples_with_a_large_one(table, rng):
    """One has more than half of all: there are no finer units that still hold it."""
    label = make_examples(table, rng)
    for numbers in label[1:]:
        numbers[7] = 2.0 ** np.ceil(np.log2(np.abs(numbers).sum()))
    return label


@pytest.mark.parametrize("window", [(0, 0), (2, 1)])
@pytest.mark.parametrize("n_attributes", [0, 2])
@pytest.mark.parametrize("missing", ["learned", "fractional", "surrogate"])
def test_in_the_same_units_both_kinds_of_sums_grow_the_same_trees(window, n_attributes, missing):
    rng = np.random.default_rng(0)
    dense, sparse = KINDS
    table = make_table(dense, sparse[:n_attributes], [300] * 20, rng)
    label = make_examples_with_a_large_one(table, rng)
    trees = [
        grow(table, window, [label], Rules(max_depth=6, missing=missing), n, unit_bits=bits)
        for bits in (UNIT_BITS, WIDE)
        for n in (1, 3)
    ]
    assert len(trees[0]["columns"]) > 20
    for other in trees[1:]:
        assert_equal_arrays(trees[0], other)


def test_binary_attributes_of_one_position():
    rng = np.random.default_rng(1)
    table = make_table([], ["there or not"] * 70, [500] * 4, rng)
    label = make_examples_with_a_large_one(table, rng)
    narrow, wide = (
        grow(table, (0, 0), [label], Rules(max_depth=5), unit_bits=bits)
        for bits in (UNIT_BITS, WIDE)
    )
    assert_equal_arrays(narrow, wide)


def test_sums_far_beyond_32_bits():
    # 2^28 units for a gradient of 1: 5,000 of them are 2^40.
    n = 5000
    table = small_table([[1 + (i % 5 == 0) for i in range(n)]])
    gradients = np.where(np.arange(n) % 5 == 0, -1.0, 1.0)
    arrays = grow(table, (0, 0), [all_of(gradients)], Rules(reg_lambda=0.0), unit_bits=(41, 42))
    (root, left, right) = read_trees(arrays)[0]
    assert (root.value, left.value, right.value) == (np.float32(-0.6), -1.0, 1.0)
    assert (root.weight, left.weight, right.weight) == (5000, 4000, 1000)
    assert root.gain == np.float32(4000 + 1000 - 3000**2 / 5000)


def test_finer_units_are_closer_to_the_derivatives():
    # A gradient of 1 beside 2^21 others: at 30 bits a unit is 2^-9 of it.
    n = 1 << 12
    gradients = np.concatenate([[1.0], np.full(n, 2.0**18)])
    table = small_table([[1, *[2] * n]])
    narrow, wide = (
        read_trees(grow(table, (0, 0), [all_of(gradients)], Rules(reg_lambda=0.0), unit_bits=bits))
        for bits in (UNIT_BITS, (45, 46))
    )
    assert narrow[0][1].value == 0.0
    assert wide[0][1].value == -1.0


def test_bits_that_make_no_sense():
    for bits in ((29, 31), (30, 30), (49, 50)):
        with pytest.raises(ValueError, match="units must have 30 to 48 bits"):
            list_examples([all_of([1.0])], bits)


@pytest.mark.parametrize("parameters", [{}, {"transitions": "trees"}, {"subsample": 0.5}])
def test_whole_trainings_with_any_number_of_threads(monkeypatch, tmp_path, parameters):
    X, y = make_data(n_sequences=60)

    def train(n_jobs):
        crf = TreeCRF(n_rounds=4, max_depth=3, random_state=0, n_jobs=n_jobs, **parameters)
        return saved(crf.fit(X, y).set_params(n_jobs=None), tmp_path)

    narrow = train(1)
    counted = []

    def count_more(n_positions):
        counted.append(n_positions)
        return WIDE

    monkeypatch.setattr(learners, "count_bits", count_more)
    wide = train(1)
    assert narrow != wide
    assert train(3) == wide
    assert set(counted) == {sum(map(len, y))}
