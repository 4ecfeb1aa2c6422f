from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.stats import McNemar, mcnemar


def outcomes(n_only_a, n_only_b, n_both=0, n_neither=0):
    """Whether a and b are right, with these numbers of places."""
    kinds = [(True, False), (False, True), (True, True), (False, False)]
    pairs = np.repeat(kinds, [n_only_a, n_only_b, n_both, n_neither], axis=0)
    return pairs[:, 0], pairs[:, 1]


def sum_of_tails(n_only_a, n_only_b):
    """Probability of all splits that are as uneven, in exact fractions."""
    n, apart = n_only_a + n_only_b, abs(n_only_a - n_only_b)
    n_cases = sum(comb(n, k) for k in range(n + 1) if abs(n - 2 * k) >= apart)
    return float(Fraction(n_cases, 2**n))


counts = st.integers(0, 60)


@given(counts, counts, counts, counts)
def test_p_values_are_sums_of_binomial_tails(n_only_a, n_only_b, n_both, n_neither):
    found = mcnemar(*outcomes(n_only_a, n_only_b, n_both, n_neither))
    assert (found.n_only_a, found.n_only_b) == (n_only_a, n_only_b)
    assert found.p_value == pytest.approx(sum_of_tails(n_only_a, n_only_b), rel=1e-12, abs=0)


def test_thousands_of_places():
    found = mcnemar(*outcomes(1050, 950))
    assert found.p_value == pytest.approx(sum_of_tails(1050, 950), rel=1e-13, abs=0)


def test_many_places():
    # Half a million each: the normal distribution, corrected for continuity, is right.
    n, apart = 1_000_000, 2000
    found = mcnemar(*outcomes((n + apart) // 2, (n - apart) // 2))
    assert found.p_value == pytest.approx(0.045614, rel=1e-3)


def test_models_that_never_differ():
    assert mcnemar([True, False], [True, False]) == McNemar(0, 0, 1.0)
    assert mcnemar([], []) == McNemar(0, 0, 1.0)


def test_wrong_arrays():
    with pytest.raises(ValueError, match="right_a has 2 entries but right_b has 1; compare the"):
        mcnemar([True, False], [True])
    message = r"right_b must be a 1-D array of bools, .*; got shape \(2,\) and dtype int64"
    with pytest.raises(ValueError, match=message):
        mcnemar([True, False], np.array([1, 0], dtype=np.int64))
    with pytest.raises(ValueError, match=r"right_a must be .*; got lists of different lengths"):
        mcnemar([["A", "B"], ["A"]], [["A", "B"], ["B"]])
    with pytest.raises(ValueError, match=r"right_a must be .*; got shape \(1, 2\) and dtype bool"):
        mcnemar([[True, False]], [True, False])
