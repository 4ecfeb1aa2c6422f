"""Observed counts, against the same in NumPy."""

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
