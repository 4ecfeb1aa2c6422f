"""Observed counts, against the same in NumPy."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import _core


@given(st.integers(0, 2**32), st.integers(1, 3), st.booleans(), st.sampled_from([0, 50, 9000]))
def test_subtract_observed(seed, n_threads, weighted, n_positions):
    rng = np.random.default_rng(seed)
    expected = rng.normal(size=(n_positions, rng.integers(1, 5)))
    codes = rng.integers(-1, expected.shape[1], n_positions).astype(np.int32)
    weights = rng.random(n_positions) if weighted else None
    known = np.flatnonzero(codes >= 0)
    right = expected.copy()
    right[known, codes[known]] -= weights[known] if weighted else 1.0
    _core.subtract_observed(expected, codes, weights, n_threads)
    np.testing.assert_array_equal(expected, right)


@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([0, 50, 20_000]))
def test_count_right(seed, n_threads, n_positions):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 4, (n_positions, rng.integers(1, 5))) / 4
    codes = rng.integers(-1, p.shape[1], n_positions).astype(np.int32)
    known = codes >= 0
    expected = (p[known].argmax(axis=1) == codes[known]).sum()  # the first of equals
    assert _core.count_right(p, codes, n_threads) == expected


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([0, 0], "codes must have an entry for each position"),
        ([0, 0, 2], "a label code is out of range"),
    ],
)
def test_codes_that_do_not_fit(codes, message):
    table, codes = np.full((3, 2), 0.5), np.array(codes, np.int32)
    with pytest.raises(ValueError, match=message):
        _core.count_right(table, codes, 1)
    with pytest.raises(ValueError, match=message):
        _core.subtract_observed(table, codes, None, 1)
    with pytest.raises(ValueError, match="weights must have an entry for each position"):
        _core.subtract_observed(table, np.zeros(3, np.int32), np.ones(2), 1)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 7])
def test_most_probable(n_labels, n_threads):
    p = np.random.default_rng(0).integers(0, 4, (9_000, n_labels)).astype(np.float64)
    found = _core.find_most_probable(p, n_threads)
    np.testing.assert_array_equal(found, p.argmax(axis=1))
    assert found.dtype == np.int32


def test_count_pairs():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, 50).astype(np.int32)
    offsets = np.array([0, 1, 1, 20, 50])
    expected = np.zeros((3, 3), np.int64)
    for begin, end in pairwise(offsets):
        for before, after in pairwise(codes[begin:end]):
            if before >= 0 and after >= 0:
                expected[before, after] += 1
    assert _core.count_pairs(codes, offsets, 3).tolist() == expected.ravel().tolist()
    with pytest.raises(ValueError, match="a label code is out of range"):
        _core.count_pairs(codes, offsets, 2)
