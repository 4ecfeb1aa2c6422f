"""Arrays and nested lists: equal results, no needless copies, errors that name the place."""

import re

import numpy as np
import pytest

from hedgerow.encode import encode


def refuses(error, message, X, **options):
    with pytest.raises(error, match=re.escape(message)):
        encode(X, **options)


def test_a_flat_array_that_fits_is_not_copied():
    array = np.arange(6.0).reshape(3, 2)
    sequences = encode(array)
    assert np.shares_memory(sequences.dense, array)
    assert sequences.flat
    assert sequences.offsets.tolist() == [0, 3]
    assert sequences.offsets.dtype == np.int64
    assert sequences.schema.numeric == (True, True)


def test_a_stack_is_not_copied():
    stack = np.arange(12.0).reshape(2, 3, 2)
    sequences = encode(stack)
    assert np.shares_memory(sequences.dense, stack)
    assert not sequences.flat
    assert sequences.offsets.tolist() == [0, 3, 6]
    np.testing.assert_array_equal(sequences.dense, np.concatenate(list(stack)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_dense_is_contiguous_and_native(order, byteorder):
    array = np.asarray(np.arange(6).reshape(3, 2), f"{byteorder}f4", order=order)
    for X in (array, [array, array], array[::-1]):
        dense = encode(X).dense
        assert dense.flags.c_contiguous
        assert dense.dtype.isnative
        assert dense.dtype == np.float32


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["f4", "f4"], "f4"),
        (["i8"], "i8"),
        (["?"], "u1"),
        (["?", "?"], "u1"),
        (["f4", "f8"], "f8"),
        (["i4", "f8"], "f8"),
        (["?", "f4"], "f4"),
    ],
)
def test_dtypes(dtypes, expected):
    assert encode([np.ones((2, 2), dtype) for dtype in dtypes]).dense.dtype == expected


def test_nested_lists_of_two_levels_are_one_flat_table():
    sequences = encode([[1, 2], [3, 4], [5, 6]], groups=[7, 7, 8])
    assert sequences.flat
    assert sequences.dense.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_none_and_objects_that_are_numbers():
    assert np.isnan(encode([[[1, None]]]).dense[0, 1])
    assert encode(np.array([[1, 2.5]], object)).dense.tolist() == [[1, 2.5]]


def test_an_object_array_of_sequences_is_a_list():
    X = np.empty(2, object)
    X[:] = [np.ones((2, 1)), np.ones((1, 1))]
    sequences = encode(X)
    assert not sequences.flat
    assert sequences.lengths.tolist() == [2, 1]


@pytest.mark.parametrize("X", [[], (), np.empty((0, 3, 2)), iter([])])
def test_no_sequences(X):
    refuses(ValueError, "X is empty; expected at least one sequence", X)


def test_no_rows():
    refuses(ValueError, "X has no rows (shape (0, 3)); expected at least one", np.empty((0, 3)))


@pytest.mark.parametrize("empty", [np.empty((0, 2)), []])
def test_empty_sequence(empty):
    refuses(ValueError, "X[1] is empty; a sequence needs at least one", [np.ones((1, 2)), empty])


def test_no_columns():
    message = "0 feature(s) (shape=(3, 0)) while a minimum of 1 is required."
    refuses(ValueError, f"X has {message}", np.empty((3, 0)))
    refuses(ValueError, f"X[0] has {message}", [np.empty((3, 0))])


def test_ragged_rows():
    message = "X[1] is ragged: position 2 has 1 columns but position 0 has 2"
    refuses(ValueError, message, [[[1, 2]], [[1, 2], [3, 4], [5]]])
    refuses(ValueError, "If X is a list of 1-D sequences: Reshape your data", [[1, 2], [3]])


def test_ragged_cells():
    refuses(ValueError, "X[0] is not a 2-D block of numbers: ", [[[1, [2, 3]], [4, 5]]])


@pytest.mark.parametrize(
    ("row", "name"), [({"a": 1}, "dict"), (3, "int"), (np.array(3), "ndarray")]
)
def test_rows_of_several_forms(row, name):
    message = f"X[0] mixes forms: position 1 is of type {name}, where a row of numbers is expected"
    refuses(TypeError, message, [[[1, 2], row]])


def test_a_number_that_is_an_array_is_no_row():
    message = "X[0] mixes forms: position 0 is of type ndarray, where a row of numbers is expected"
    refuses(TypeError, message, [[np.array(1), [2, 3]]])


def test_different_numbers_of_columns():
    message = "X[2] has 3 columns but X[0] has 2; every sequence needs the same columns"
    refuses(ValueError, message, [np.ones((1, 2)), np.ones((4, 2)), np.ones((1, 3))])


def test_wrong_number_of_dimensions():
    advice = "expected 2-D, (positions, features). Reshape your data"
    refuses(ValueError, f"X is 1-D with shape (3,); {advice}", np.ones(3))
    refuses(ValueError, f"X is 4-D with shape (1, 1, 1, 1); {advice}", np.ones((1, 1, 1, 1)))
    refuses(ValueError, f"X[0] is 1-D with shape (3,); {advice}", [np.ones(3)])
    refuses(ValueError, f"X[1] is 3-D with shape (1, 1, 2); {advice}", [[[1, 2]], [[[1, 2]]]])
    refuses(ValueError, f"X[1] is a 1-D list of numbers; {advice}", [[[1]], [1, 2]])
    refuses(ValueError, f"X is a 1-D list of numbers; {advice}", [1, 2])


@pytest.mark.parametrize(
    ("sequence", "place"),
    [
        (np.array([["a", "b"]]), "X[1] has 'a' at position 0, column 0"),
        ([[1, 2], [3, "b"]], "X[1] has 'b' at position 1, column 1"),
        (np.array([[1, 2], [3, "4"]], object), "X[1] has '4' at position 1, column 1"),
    ],
)
def test_strings_among_numbers(sequence, place):
    advice = (
        "where a number is expected (text); for words and categories pass a list of lists of dicts"
    )
    refuses(ValueError, f"{place}, {advice}", [[[1, 2]], sequence])


def test_objects_among_numbers():
    X = np.ones((2, 2), object)
    X[1, 0] = {"a": 1}
    message = r"X has {'a': 1} at position 1, column 0.*argument must be .* string.* number.*dicts"
    with pytest.raises(TypeError, match=message):
        encode(X)


def test_integers_beyond_all_floats():
    message = "at position 0, column 1, where a number is expected (int too large to convert"
    refuses(TypeError, message, [[[1, 10**400]]])


def test_structured_arrays():
    X = np.zeros((2, 2), [("a", "f8"), ("b", "f8")])
    refuses(TypeError, "X has dtype [('a', '<f8'), ('b', '<f8')]; expected numbers", X)


def test_complex_and_dates():
    refuses(
        ValueError, "Complex data not supported: X has dtype complex128", np.ones((1, 1), "c16")
    )
    refuses(TypeError, "X[0] has dtype datetime64[D]; expected numbers", [np.ones((1, 1), "M8[D]")])
