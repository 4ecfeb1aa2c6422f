"""Sparse attributes: of items and of sparse matrices, there or not, or with values."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hedgerow import _core
from hedgerow.encode import encode
from hedgerow.sequences import Schema, Sequences, SparseRows
from hedgerow.trees.columns import Columns
from reference.columns import column_cuts, learn, search, to_dense_bins

values = st.one_of(st.sampled_from([0.0, 0.0, 1.0, -2.0, np.nan]), st.floats(-9, 9))
matrices = hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(1, 4)), elements=values)


@given(matrices, st.integers(2, 6), st.integers(1, 3))
def test_bins_are_those_of_the_dense_matrix(X, max_bins, n_threads):
    columns, sequences = learn(scipy.sparse.csr_array(X), max_bins)
    binned = columns.bin(sequences, n_threads)
    assert (columns.n_dense, binned.dense.shape) == (0, (len(X), 0))
    table = to_dense_bins(columns, binned)
    assert (binned.attribute_bins != columns.default_bins[binned.attributes]).all()
    for t in range(len(X)):
        assert (np.diff(binned.attributes[binned.indptr[t] : binned.indptr[t + 1]]) > 0).all()
    for a in range(X.shape[1]):
        cuts = column_cuts(columns, a)
        known = np.unique(np.append(X[~np.isnan(X[:, a]), a], 0.0))
        np.testing.assert_array_equal(table[:, a], search(X[:, a], cuts))
        assert columns.default_bins[a] == search(np.zeros(1), cuts)[0]
        if set(known) <= {0.0, 1.0}:
            assert cuts.tolist() == [0.5]
        else:
            assert len(cuts) + 1 == min(len(known), max_bins)
            if len(known) <= max_bins:
                np.testing.assert_array_equal(search(known, cuts), 1 + np.arange(len(known)))


@given(matrices)
def test_dense_and_sparse_forms_of_new_data_are_equal(X):
    for form, other in ((np.asarray, scipy.sparse.csr_array), (scipy.sparse.csr_array, np.asarray)):
        columns, sequences = learn(form(X), 4)
        as_trained, otherwise = columns.bin(sequences, 1), columns.bin(encode(other(X)), 1)
        np.testing.assert_array_equal(as_trained.dense, otherwise.dense)
        if columns.n_attributes:
            np.testing.assert_array_equal(as_trained.indptr, otherwise.indptr)
            np.testing.assert_array_equal(as_trained.attributes, otherwise.attributes)
            np.testing.assert_array_equal(as_trained.attribute_bins, otherwise.attribute_bins)


def test_a_worked_example():
    X = [[{"speed": -3.0, "word": "a"}, {"word": "a"}], [{"speed": 2.0}, {"speed": 1, "up": True}]]
    columns, sequences = learn(X, index=_core.StringIndex())
    assert columns.column_names() == ["speed", "word:a", "up"]
    assert columns.cuts.tolist() == [-1.5, 0.5, 1.5, 0.5, 0.5]
    assert columns.n_bins.tolist() == [4, 2, 2]
    assert columns.default_bins.tolist() == [2, 1, 1]
    binned = columns.bin(sequences, 1)
    assert binned.indptr.tolist() == [0, 2, 3, 4, 6]
    assert binned.attributes.tolist() == [0, 1, 1, 0, 0, 2]
    assert binned.attribute_bins.tolist() == [1, 2, 2, 4, 3, 2]
    assert binned.offsets.tolist() == [0, 2, 4]
    dtypes = (binned.indptr.dtype, binned.attributes.dtype, binned.attribute_bins.dtype)
    assert dtypes == (np.int64, np.int32, np.uint8)


def test_absent_has_a_bin_of_its_own_among_many_values():
    X = np.zeros((20_000, 1))
    X[:1000, 0] = np.linspace(-2, -1, 1000)
    X[1000:2000, 0] = np.linspace(1, 2, 1000)
    columns, sequences = learn(scipy.sparse.csr_array(X), 11)
    binned = columns.bin(sequences, 1)
    assert (columns.n_bins.tolist(), columns.default_bins.tolist()) == ([11], [6])
    assert np.bincount(binned.attribute_bins).tolist() == [0, *[200] * 5, 0, *[200] * 5]


def test_unseen_attributes_are_absent_also_if_the_index_grew():
    index = _core.StringIndex()
    columns, _ = learn([[{"a": 1, "b": 2.5}]], index=index)
    still = columns.bin(encode([[{"z": 1, "b": 9.0}]], index=index, grow=False), 1)
    assert still.attributes.tolist() == [1]
    grown = columns.bin(encode([[{"z": 1, "b": 9.0}, ["z"], ["a"]]], index=index), 1)
    assert grown.indptr.tolist() == [0, 1, 1, 2]
    assert grown.attributes.tolist() == [1, 0]
    assert columns.column_names() == ["a", "b"]


def test_repeated_attributes():
    columns, sequences = learn([[["b", "a", "b"], ["a"], [], ["b"]]], index=_core.StringIndex())
    binned = columns.bin(sequences, 1)
    assert binned.indptr.tolist() == [0, 2, 3, 3, 4]
    assert binned.attributes.tolist() == [0, 1, 1, 0]
    assert columns.cuts.tolist() == [0.5, 0.5]
    assert sequences.sparse.indices.tolist() == [0, 1, 0, 1, 0]  # what was read is left alone


@pytest.mark.parametrize(
    ("repeated", "total"),
    [([1, 1], 1), ([1, 1, 2.5], 3.5), ([2, 3], 5), ([2, -2], 0), ([0.5, 0.5, 0.5], 1.5)],
)
def test_ones_count_once_and_other_values_are_added_up(repeated, total):
    n = len(repeated)
    rows = SparseRows(
        np.array([0, n, n + 1]), np.zeros(n + 1, np.int32), np.array([*repeated, 8.0]), 1
    )
    schema = Schema("columns", 1, None, (True,))
    sequences = Sequences(np.array([0, 2]), schema, None, rows, (), True)
    columns = Columns.learn(sequences, None, 255, 1)
    known = np.unique([0.0, total, 8.0])
    assert columns.cuts.tolist() == ((known[:-1] + known[1:]) / 2).tolist()
    table = to_dense_bins(columns, columns.bin(sequences, 1))
    assert table[0, 0] == search(np.array([float(total)]), columns.cuts)[0]


def test_explicit_zeros_are_absent_and_nan_is_missing():
    entries = (np.array([0.0, 3.0, np.nan]), np.array([0, 0, 0]), np.array([0, 1, 2, 3]))
    columns, sequences = learn(scipy.sparse.csr_array(entries, shape=(3, 2)))
    binned = columns.bin(sequences, 1)
    assert columns.cuts.tolist() == [1.5, 0.5]
    assert binned.indptr.tolist() == [0, 0, 1, 2]
    assert binned.attribute_bins.tolist() == [2, 0]


def test_very_many_attributes():
    n = 300_000
    X = scipy.sparse.csr_array((np.ones(n), (np.arange(n) % 1000, np.arange(n))), shape=(1000, n))
    columns, sequences = learn(X)
    binned = columns.bin(sequences, 2)
    assert (columns.n_attributes, len(binned.attributes)) == (n, n)
    assert (columns.cuts == 0.5).all()
    assert (binned.attribute_bins == 2).all()


def test_threads_change_nothing():
    X = np.maximum(0, np.random.default_rng(0).normal(size=(5000, 30)))
    columns, sequences = learn(scipy.sparse.csr_array(X), 40)
    first = columns.bin(sequences, 1)
    for n_threads in (2, 3):
        again = columns.bin(sequences, n_threads)
        np.testing.assert_array_equal(again.attribute_bins, first.attribute_bins)


def test_positions_without_any_attribute():
    columns, sequences = learn([[[], []]], index=_core.StringIndex())
    binned = columns.bin(sequences, 1)
    assert (columns.n_columns, columns.column_names()) == (0, [])
    assert (binned.dense.shape, binned.indptr) == ((2, 0), None)
