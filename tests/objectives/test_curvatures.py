"""Curvatures of the likelihood: scale * gamma p (1 - p), and never quite 0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import _core
from hedgerow.boosting.curvature import MODEST, temper


def fill_curvatures(p, gammas, scales, n_threads=1, rate=1.0):
    out = np.full(p.shape, np.nan, np.float32)
    _core.fill_curvatures(p, gammas, scales, min(rate, 1.0), MODEST, out, n_threads)
    return out


rates = st.sampled_from([0.1, 0.3, 1.0, 2.0])


@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.integers(1, 3), rates)
def test_curvatures_are_those_of_numpy(seed, by_label, scaled, n_threads, rate):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 9, (rng.integers(0, 30), rng.integers(1, 5))) / 8  # exact products
    gammas = (rng.integers(1, 99, p.shape if by_label else len(p)) / 4).astype(np.float32)
    tempered = temper(gammas, rate)
    scales = 2.0 ** rng.integers(-2, 3, len(p)) if scaled else None
    expected = np.maximum((tempered if by_label else tempered[:, None]) * p * (1 - p), 1e-16)
    expected = expected if scales is None else scales[:, None] * expected
    found = fill_curvatures(p, gammas, scales, n_threads, rate)
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_a_worked_example():
    p = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    gammas = np.array([1.0, 2.0, 1.0], np.float32)
    found = fill_curvatures(p, gammas, np.array([1.0, 2.0, 0.0]))
    assert found.tolist() == [[0.1875, 0.1875], [1.0, 1.0], [0.0, 0.0]]
    certain = fill_curvatures(p[2:], gammas[2:], None)
    assert certain.tolist() == [[np.float32(1e-16)] * 2]


def test_many_tasks_and_threads():
    rng = np.random.default_rng(0)
    p, gammas = rng.random((20_000, 3)), rng.random(20_000).astype(np.float32)
    one = fill_curvatures(p, gammas, None)
    np.testing.assert_allclose(one, gammas[:, None] * p * (1 - p), rtol=1e-6)
    for n_threads in (2, 3):
        np.testing.assert_array_equal(fill_curvatures(p, gammas, None, n_threads), one)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"gammas": np.ones(2, np.float32)},
            "gammas must have an entry for each position, or one for",
        ),
        (
            {"gammas": np.ones((3, 1), np.float32)},
            "gammas must have an entry for each position, or",
        ),
        (
            {"gammas": np.ones((3, 2, 1), np.float32)},
            "gammas must have an entry for each position, or",
        ),
        ({"scales": np.ones(4)}, "scales must have an entry for each position"),
        ({"out": np.ones((3, 1), np.float32)}, "out must have the shape of probabilities"),
    ],
)
def test_calls_that_make_no_sense(changes, message):
    good = {
        "probabilities": np.full((3, 2), 0.5),
        "gammas": np.ones((3, 2), np.float32),
        "scales": np.ones(3),
        "rate": 1.0,
        "modest": 4.0,
        "out": np.empty((3, 2), np.float32),
        "n_threads": 1,
    }
    _core.fill_curvatures(**good)
    with pytest.raises(ValueError, match=message):
        _core.fill_curvatures(**(good | changes))
