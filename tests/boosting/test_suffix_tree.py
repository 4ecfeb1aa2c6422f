"""Steps of the weights of label patterns that are suffixes of each other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.boosting.suffix_tree import SuffixTree
from hedgerow.labels import Patterns

PATTERNS = st.lists(
    st.lists(st.integers(0, 1), min_size=2, max_size=5).map(tuple), max_size=12, unique=True
)


def ends_with(pattern, other):
    return pattern[-len(other) :] == other


@settings(max_examples=40)
@given(PATTERNS)
def test_a_parent_is_the_longest_pattern_at_the_end(patterns):
    for pattern, parent in zip(patterns, SuffixTree(Patterns.of(patterns)).parents, strict=True):
        others = [o for o in patterns if o != pattern and ends_with(pattern, o)]
        assert (patterns[parent] if parent >= 0 else ()) == max(others, key=len, default=())


@settings(max_examples=40)
@given(PATTERNS, st.integers(0, 100))
def test_moves_are_the_lowest_point_of_the_parabola(patterns, seed):
    rng = np.random.default_rng(seed)
    n = len(patterns)
    slopes = rng.normal(size=n)
    curvatures, resistances = rng.exponential(size=(2, n)) * (rng.random((2, n)) < 0.8) + 0.01
    tree = SuffixTree(Patterns.of(patterns))
    moves = tree.solve(slopes, curvatures, resistances)
    # By the definition: the score of a pattern moves with the weights of all that it ends with.
    sums = np.array([[ends_with(p, q) for q in patterns] for p in patterns], float).reshape(n, n)
    matrix = sums.T @ np.diag(curvatures) @ sums + np.diag(resistances)
    steps = -np.linalg.solve(matrix, slopes)
    np.testing.assert_allclose(tree.increments(moves), steps, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moves, sums @ steps, rtol=1e-9, atol=1e-9)


@settings(max_examples=40)
@given(PATTERNS, st.lists(st.integers(0, 1), max_size=20))
def test_own_counts_are_those_of_the_longest_pattern(patterns, labels):
    labels = tuple(labels)
    found = [[p for p in patterns if ends_with(labels[:end], p)] for end in range(len(labels) + 1)]
    totals = np.array([sum(p in some for some in found) for p in patterns], float)
    own = [sum(bool(some) and max(some, key=len) == p for some in found) for p in patterns]
    assert SuffixTree(Patterns.of(patterns)).own(totals).tolist() == own
