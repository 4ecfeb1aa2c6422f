"""Cuts: the same bits as NumPy's, for any number of threads."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import _core
from hedgerow.encode import encode
from hedgerow.trees import cuts
from hedgerow.trees.columns import Columns
from reference.columns import learn
from reference.cuts import cut_entries, cut_values

seeds = st.integers(0, 2**32)
bin_numbers = st.integers(2, 255)


def draw_values(rng, n):
    """Values of which some are equal, some close to each other, and some are not finite."""
    values = rng.normal(size=n) * 10.0 ** rng.integers(-300, 300)
    draw = rng.choice(["any", "few", "heavy", "close", "missing"])
    if draw == "few":
        values = rng.integers(-9, 9, n) * rng.choice([1.0, -0.0, 0.1], n)
    elif draw == "heavy":
        values = np.where(rng.random(n) < 0.7, rng.choice(values[:5], n), values)
    elif draw == "close":
        values = 1 + rng.integers(0, n, n) * np.finfo(np.float64).eps
    elif draw == "missing":
        values[rng.random(n) < rng.random()] = rng.choice([np.nan, -np.nan, np.inf, -np.inf])
    return values


def assert_same_cuts(found, expected):
    counts, values = found
    assert counts.tolist() == [len(column) for column in expected]
    assert values.tobytes() == np.concatenate(expected).tobytes()


@given(seeds, st.sampled_from(["f4", "f8", "u1"]), bin_numbers)
def test_cuts_of_columns_are_those_of_numpy(seed, dtype, max_bins):
    rng = np.random.default_rng(seed)
    n_rows, n_columns = rng.choice([1, 30, 1200]), rng.integers(1, 9)
    values = np.stack([draw_values(rng, n_rows) for _ in range(n_columns)], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        values = values.astype(dtype)
    some = np.sort(rng.choice(n_rows, rng.integers(1, n_rows + 1), replace=False))
    for rows in (None, some):
        chosen = values if rows is None else values[rows]
        expected = [cut_values(column.astype(np.float64), max_bins) for column in chosen.T]
        for n_threads in (1, 2, 3, 7):
            assert_same_cuts(_core.cut_columns(values, rows, max_bins, n_threads), expected)


@given(seeds, bin_numbers)
def test_cuts_of_attributes_are_those_of_numpy(seed, max_bins):
    rng = np.random.default_rng(seed)
    n_positions, n_attributes = rng.choice([1, 30, 1200]), rng.integers(1, 9)
    table = np.stack([draw_values(rng, n_positions) for _ in range(n_attributes)], axis=1)
    table[:, rng.random(n_attributes) < 0.2] = rng.choice([0.0, 1.0, np.nan])
    positions, attributes = np.nonzero(rng.random(table.shape) < rng.choice([0.1, 0.9, 1.0]))
    values = table[positions, attributes]
    expected = [
        cut_entries(values[attributes == a], n_positions, max_bins) for a in range(n_attributes)
    ]
    entries = attributes.astype(np.int32), values, n_positions, n_attributes
    for n_threads in (1, 2, 3, 7):
        assert_same_cuts(_core.cut_attributes(*entries, max_bins, n_threads), expected)


@given(
    st.lists(st.one_of(st.integers(1, 3), st.integers(1, 300)), max_size=60),
    st.lists(st.integers(1, 50), min_size=1, max_size=60),
    st.integers(2, 20),
)
def test_there_are_as_many_bins_as_there_may_be(below, above, max_bins):
    distinct = np.concatenate([-1.0 - np.arange(len(below)), 2.0 + np.arange(len(above))])
    values = np.repeat(distinct, below + above)
    n = len(values)  # the attribute is absent nowhere
    counts, _ = _core.cut_attributes(np.zeros(n, np.int32), values, n, 1, max_bins, 1)
    assert counts[0] + 1 == min(len(distinct) + 1, max_bins)


def test_attributes_with_and_without_values_stand_side_by_side():
    X = scipy.sparse.csr_array([[1.0, 0, 2, 0, 1, 0.5], [0, 0, 4, 0, 1, 0], [1, 0, 0, 0, 1, 0]])
    columns, _ = learn(X)
    assert np.diff(columns.cut_offsets).tolist() == [1, 1, 2, 1, 1, 1]
    assert columns.cuts.tolist() == [0.5, 0.5, 1.0, 3.0, 0.5, 0.5, 0.25]


def test_many_rows_are_sampled_alike_every_time(monkeypatch):
    monkeypatch.setattr(cuts, "MAX_ROWS", 1000)
    X = np.random.default_rng(0).normal(size=(5000, 2))
    sequences = encode(X)
    first, again = (Columns.learn(sequences, None, 16, 1) for _ in range(2))
    np.testing.assert_array_equal(first.cuts, again.cuts)
    monkeypatch.setattr(cuts, "MAX_ROWS", 5000)
    assert (first.cuts != Columns.learn(sequences, None, 16, 1).cuts).any()
    counts = np.bincount(first.bin(sequences, 1).dense[:, 0])[1:]
    assert counts.min() > 200
    assert counts.max() < 450


def test_blocks_of_columns_change_nothing(monkeypatch):
    X = np.random.default_rng(0).integers(-500, 500, size=(3000, 5))
    expected = learn(X, 100)[0].cuts
    monkeypatch.setattr(cuts, "BLOCK", 1)
    np.testing.assert_array_equal(learn(X, 100, n_threads=3)[0].cuts, expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_bins": 1}, "max_bins must be from 2 to 255"),
        ({"max_bins": 256}, "max_bins must be from 2 to 255"),
        ({"rows": np.array([0, 2])}, "a row is out of range"),
        ({"rows": np.array([-1])}, "a row is out of range"),
        ({"values": np.zeros((2, 2), np.int16)}, "values must be of dtype float32, float64 or u"),
        ({"values": np.zeros((2, 2)).T[::2]}, "values must be a C-contiguous array"),
        ({"values": np.zeros((2**32, 0))}, r"at most 2\^32 - 1 rows are supported"),
    ],
)
def test_columns_that_cannot_be_cut_are_refused(changes, message):
    good = {"values": np.zeros((2, 2)), "rows": None, "max_bins": 5, "n_threads": 1}
    with pytest.raises(ValueError, match=message):
        _core.cut_columns(**{**good, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_bins": 1}, "max_bins must be from 2 to 255"),
        ({"values": np.ones(1)}, "values must have an entry for each attribute"),
        ({"n_attributes": 1}, "a column is out of range"),
        ({"attributes": np.array([-1, 0], np.int32)}, "a column is out of range"),
        ({"n_positions": 0}, "an attribute has more entries than there are positions"),
    ],
)
def test_attributes_that_cannot_be_cut_are_refused(changes, message):
    good = {"attributes": np.array([0, 1], np.int32), "values": np.array([2.0, 3.0])}
    good |= {"n_positions": 2, "n_attributes": 2, "max_bins": 5, "n_threads": 1}
    with pytest.raises(ValueError, match=message):
        _core.cut_attributes(**{**good, **changes})
