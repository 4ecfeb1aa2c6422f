"""Exact sums: the same in any order, and from any number of workers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hedgerow.comm import ALONE, ThreadComm
from hedgerow.exact_sums import ExactTotal, SumGrid, exact_sum

numbers = arrays(np.float64, st.integers(1, 50), elements=st.floats(-1e6, 1e6))


@given(numbers, st.randoms(use_true_random=False))
def test_any_order(values, random):
    bound = float(np.abs(values).sum())
    order = random.sample(range(len(values)), len(values))
    rounded = SumGrid(bound).round(values)
    assert rounded.sum() == rounded[order].sum()
    assert rounded.sum() == pytest.approx(values.sum(), abs=len(values) * bound * 2.0**-50)
    assert exact_sum(values, ALONE) == exact_sum(values[order], ALONE)
    total = ExactTotal.of(values, 1.0 + len(values))
    assert total == ExactTotal.of(values[order], 1.0 + len(values))
    assert total.value == pytest.approx(values.sum(), rel=1e-12, abs=1e-9)


@given(numbers, st.integers(2, 4))
def test_any_number_of_workers(values, size):
    bound = float(np.abs(values).sum())
    parts = np.array_split(values, size)

    def add_up(comm):
        own = parts[comm.rank]
        grid = SumGrid(bound)
        total = ExactTotal.of(own, 50.0).share(50.0, comm)
        shared = grid.share(np.array(grid.round(own).sum()), comm)
        return float(shared), exact_sum(own, comm), total

    alone = float(SumGrid(bound).round(values).sum())
    expected = alone, exact_sum(values, ALONE), ExactTotal.of(values, 50.0)
    assert ThreadComm.run(size, add_up) == [expected] * size


def test_by_hand():
    grid = SumGrid(3.0)  # below 4 = 2^2
    assert grid.unit == 2.0**-49
    assert grid.round(np.array([1.0 + 2.0**-51]))[0] == 1.0
    assert SumGrid(0.0).round(np.array([0.1]))[0] == 0.1
    assert exact_sum(np.array([np.inf, 1.0]), ALONE) == np.inf
    assert ExactTotal.of(np.array([1.0]), np.inf).value == 1.0
    assert ExactTotal(1.0, 2.0).plus(ExactTotal(3.0, 4.0)) == (4.0, 6.0, 0.0)
