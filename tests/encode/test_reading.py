"""Encoding: all formats of the same columns give the same result; others are refused."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from hedgerow.encode import encode

PARTS = [
    np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]),
    np.array([[0.0, 5.0]]),
    np.array([[6.0, 7.0], [8.0, 0.0]]),
]
FLAT = np.concatenate(PARTS)
GROUPS = ["a", "a", "a", "b", "c", "c"]
NAMES = ["left", "right"]


def refuses(error, message, X, **options):
    with pytest.raises(error, match=re.escape(message)):
        encode(X, **options)


class Holder:
    """A container of an array that does not support NumPy's functions."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __array_function__(self, function, types, args, options):
        raise TypeError(f"no {function.__name__}")


def to_dense(sequences):
    if sequences.sparse is None:
        return sequences.dense
    sparse = sequences.sparse
    values = np.ones(len(sparse.indices)) if sparse.values is None else sparse.values
    shape = (sequences.n_positions, sparse.n_columns)
    return scipy.sparse.csr_array((values, sparse.indices, sparse.indptr), shape).toarray()


LISTS = {
    "arrays": PARTS,
    "tuple": tuple(PARTS),
    "nested lists": [part.tolist() for part in PARTS],
    "nested tuples": [tuple(map(tuple, part)) for part in PARTS],
    "rows": [list(part) for part in PARTS],
    "mixed arrays and lists": [PARTS[0], PARTS[1].tolist(), PARTS[2]],
    "F order": [np.asfortranarray(part) for part in PARTS],
    "holders": [Holder(part) for part in PARTS],
    "pandas": [pd.DataFrame(part, columns=NAMES) for part in PARTS],
    "polars": [pl.DataFrame(part, schema=NAMES) for part in PARTS],
    "csr arrays": [scipy.sparse.csr_array(part) for part in PARTS],
    "coo matrices": [scipy.sparse.coo_matrix(part) for part in PARTS],
}


@pytest.mark.parametrize("name", LISTS)
def test_all_lists_of_columns_are_equal_inside(name):
    for X in (LISTS[name], iter(LISTS[name])):
        sequences = encode(X)
        np.testing.assert_array_equal(to_dense(sequences), FLAT)
        assert sequences.offsets.tolist() == [0, 3, 4, 6]
        assert sequences.schema.n_features == 2
        assert sequences.schema.numeric == (True, True)
        assert not sequences.flat


BLOCKS = {
    "array": FLAT,
    "lists": FLAT.tolist(),
    "F order": np.asfortranarray(FLAT),
    "holder": Holder(FLAT),
    "pandas": pd.DataFrame(FLAT, columns=NAMES, index=[5, 5, 4, 3, 2, 1]),
    "polars": pl.DataFrame(FLAT, schema=NAMES),
    "csc array": scipy.sparse.csc_array(FLAT),
    "lil matrix": scipy.sparse.lil_matrix(FLAT),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_all_flat_blocks_of_columns_are_equal_inside(name):
    grouped, single = encode(BLOCKS[name], groups=iter(GROUPS)), encode(BLOCKS[name])
    for sequences in (grouped, single):
        np.testing.assert_array_equal(to_dense(sequences), FLAT)
        assert sequences.flat
    assert grouped.offsets.tolist() == [0, 3, 4, 6]
    assert single.offsets.tolist() == [0, 6]


@pytest.mark.parametrize("X", [None, "text", b"text", 3, 2.5, {"a": [1]}, {1, 2}, object()])
def test_what_is_no_input_at_all(X):
    refuses(TypeError, f"X is of type {type(X).__name__}; expected a list of 2-D arrays", X)


def test_a_flat_list_of_dicts_or_strings():
    advice = "Wrap a single sequence in a list"
    refuses(TypeError, "X is a flat list: X[0] is a dict, one position;", [{"a": 1}, {"b": 1}])
    refuses(TypeError, advice, [{"a": 1}, {"b": 1}])
    refuses(TypeError, advice, [{"a", "b"}])
    refuses(TypeError, "X is a flat list of strings: X[0] is 'the'", ["the", "cat"])
    refuses(TypeError, advice, pd.Series(["the", "cat"]))


def test_a_list_of_lists_of_strings():
    message = "X[0] is a list of strings such as 'the'; expected a list of dicts"
    refuses(TypeError, message, [["the", "cat"], ["a", "dog"]])


@pytest.mark.parametrize(
    ("sequence", "form"),
    [
        (LISTS["pandas"][1], "a DataFrame"),
        (LISTS["csr arrays"][1], "a sparse matrix"),
        ([{"a": 1}], "a list of dicts or attribute strings"),
        ([["a", "b"]], "a list of dicts or attribute strings"),
        ([[], []], "a list of dicts or attribute strings"),
    ],
)
def test_mixed_forms(sequence, form):
    message = f"X mixes forms: X[0] is an array of numbers and X[2] is {form}; give all"
    refuses(TypeError, message, [PARTS[0], PARTS[1], sequence])


@pytest.mark.parametrize("sequence", [{"a": 1}, "text", 3, {1}, object()])
def test_a_sequence_that_is_none(sequence):
    message = rf"X\[1\] is an? {type(sequence).__name__}, not a sequence; expected a list of 2-D"
    with pytest.raises(TypeError, match=message):
        encode([PARTS[0], sequence])


def test_a_sequence_of_none():
    refuses(TypeError, "X[1] is None, not a sequence", [PARTS[0], None])


def test_a_position_that_is_none():
    refuses(TypeError, "X[0] holds an object as a position; expected a row", [[object()]])


@pytest.mark.parametrize("X", [PARTS, np.stack([FLAT, FLAT]), [[{"a": 1}]]])
def test_groups_with_a_list(X):
    refuses(ValueError, "groups is for one flat X, but X is a list", X, groups=GROUPS)


def test_items_without_an_index():
    refuses(ValueError, "X holds dicts or attribute strings, but this model works", [[{"a": 1}]])
