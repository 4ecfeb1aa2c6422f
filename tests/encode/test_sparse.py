"""Sparse matrices: any format, canonical inside."""

import re

import numpy as np
import pytest
import scipy.sparse

from hedgerow.encode import encode

ARRAY = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.0, 1.0]])
FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]


def refuses(error, message, X):
    with pytest.raises(error, match=re.escape(message)):
        encode(X)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_format(name, kind):
    X = getattr(scipy.sparse, f"{name}_{kind}")(ARRAY)
    rows = encode([X, X]).sparse
    assert rows.n_columns == 3
    assert encode(X).flat
    assert (rows.indptr.dtype, rows.indices.dtype) == (np.int64, np.int32)
    assert rows.values.dtype == np.float64
    assert rows.indptr.tolist() == [0, 1, 1, 3, 4, 4, 6]
    stored = rows.values != 0
    assert rows.indices[stored].tolist() == [1, 0, 2, 1, 0, 2]
    assert rows.values[stored].tolist() == [2, 3, 1, 2, 3, 1]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
def test_values_that_are_all_one_are_not_stored(dtype):
    rows = encode(scipy.sparse.csr_array(ARRAY != 0).astype(dtype)).sparse
    assert rows.values is None
    assert rows.indices.tolist() == [1, 0, 2]


def test_duplicates_are_summed_and_the_input_is_left_alone():
    X = scipy.sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])))
    rows = encode(X).sparse
    assert rows.indices.tolist() == [0, 2]
    assert rows.values.tolist() == [2, 4]
    assert X.nnz == 3


def test_what_is_refused():
    refuses(ValueError, "X[0] is 1-D with shape (3,)", [scipy.sparse.coo_array(ARRAY[0])])
    refuses(ValueError, "X has no rows (shape (0, 3))", scipy.sparse.csr_array((0, 3)))
    refuses(ValueError, "X has 0 feature(s) (shape=(3, 0))", scipy.sparse.csr_array((3, 0)))
    first, second = scipy.sparse.csr_array((1, 3)), scipy.sparse.csr_array((1, 2))
    refuses(ValueError, "X[1] has 2 columns but X[0] has 3; every sequence", [first, second])
    refuses(ValueError, "X[1] is empty", [first, scipy.sparse.csr_array((0, 3))])
    refuses(ValueError, "X has 2147483648 columns; at most", scipy.sparse.csr_array((1, 2**31)))
    refuses(ValueError, "Complex data not supported: X has dtype", first.astype(complex))
