"""Arrays and nested lists: equal results, no needless copies, errors that name the place."""

import re

import numpy as np
import pytest

from hedgerow import _core
from hedgerow.encode import encode


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


def test_pieces_of_an_array_are_not_copied():
    array = np.arange(24.0).reshape(6, 4)
    sequences = encode(np.split(array, [1, 4]))
    assert np.shares_memory(sequences.dense, array)
    assert not sequences.flat
    assert sequences.offsets.tolist() == [0, 1, 4, 6]
    assert sequences.dense.flags.c_contiguous
    np.testing.assert_array_equal(sequences.dense, array)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, ">f4", np.bool_])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_arrays_that_are_copied(dtype, n_threads):
    rng = np.random.default_rng(0)
    blocks = [rng.integers(0, 2, (n, 7)).astype(dtype) for n in rng.integers(1, 500, 300)]
    sequences = encode(blocks, n_threads=n_threads)
    np.testing.assert_array_equal(sequences.dense, np.concatenate(blocks))
    assert sequences.offsets.tolist() == np.cumsum([0, *map(len, blocks)]).tolist()
    assert sequences.dense.dtype.isnative
    assert not np.shares_memory(sequences.dense, blocks[0])


def test_rows_of_an_array_are_adjacent_pieces():
    array = np.arange(12.0).reshape(4, 3)
    sequences = encode([row[None] for row in array])
    np.testing.assert_array_equal(sequences.dense, array)


def test_blocks_are_copied_only_if_they_fill_the_output():
    with pytest.raises(ValueError, match="out must have the bytes of all blocks"):
        _core.join_blocks([np.zeros(2)], np.zeros(15, np.uint8), 1)
    with pytest.raises(ValueError, match="a block is not C-contiguous"):
        _core.join_blocks([np.zeros((2, 2)).T], np.zeros(32, np.uint8), 1)


def lists_that_are_no_pieces():
    array = np.arange(24.0).reshape(6, 4)
    first, middle, last = np.split(array, [1, 4])
    yield [last, first]
    yield [first, last]
    yield [first, first]
    yield [array, first]
    yield [first, middle.astype(np.float32), last]
    yield [first, middle.copy(), last]
    yield [array[:3, :2], array[3:, :2]]
    yield [array[:3, :2].copy(), array[3:, 2:].T.copy().T]
    yield [array[:1] > 2, array[1:] > 2]
    yield np.split(array > 2, [1])
    yield np.split(array.astype(">f4"), [2, 3])
    yield [first, middle.tolist(), last]


@pytest.mark.parametrize("X", list(lists_that_are_no_pieces()))
def test_rows_stand_in_the_order_of_the_list(X):
    sequences = encode(X)
    assert not any(np.shares_memory(sequences.dense, x) for x in X if isinstance(x, np.ndarray))
    np.testing.assert_array_equal(sequences.dense, np.concatenate(X))
    assert sequences.dense.dtype.isnative
    assert sequences.dense.flags.c_contiguous
    assert sequences.offsets.tolist() == [0, *np.cumsum([len(x) for x in X])]


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


SHAPE = "expected 2-D, (positions, features). Reshape your data"
NO_COLUMNS = "has 0 feature(s) (shape=(3, 0)) while a minimum of 1 is required."
RAGGED = "X[1] is ragged: position 2 has 1 column but position 0 has 2"
A_ROW = ", where a row of numbers is expected"
TEXT = "expected a number, not text; for words and categories pass a list of lists of dicts"
ROW = [[1, 2]]
RECORDS = np.zeros((2, 2), [("a", "f8"), ("b", "f8")])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        *(
            (X, "X is empty; expected at least one sequence")
            for X in ([], (), np.empty((0, 3, 2)), iter([]))
        ),
        (np.empty((0, 3)), "X has no rows (shape (0, 3)); expected at least one"),
        ([np.ones((1, 2)), np.empty((0, 2))], "X[1] is empty; a sequence needs at least one"),
        ([np.ones((1, 2)), []], "X[1] is empty; a sequence needs at least one"),
        (np.empty((3, 0)), f"X {NO_COLUMNS}"),
        ([np.empty((3, 0))], f"X[0] {NO_COLUMNS}"),
        ([ROW, [[1, 2], [3, 4], [5]]], RAGGED),
        ([[1, 2], [3]], "If X is a list of 1-D sequences: Reshape your data"),
        ([[[1, [2, 3]], [4, 5]]], "X[0] is not a 2-D block of numbers: "),
        (
            [np.ones((1, 2)), np.ones((4, 2)), np.ones((1, 3))],
            "X[2] has 3 columns but X[0] has 2; every sequence needs the same columns",
        ),
        (np.ones(3), f"X is 1-D with shape (3,); {SHAPE}"),
        (np.ones((1, 1, 1, 1)), f"X is 4-D with shape (1, 1, 1, 1); {SHAPE}"),
        ([np.ones(3)], f"X[0] is 1-D with shape (3,); {SHAPE}"),
        ([ROW, [[[1, 2]]]], f"X[1] is 3-D with shape (1, 1, 2); {SHAPE}"),
        ([[[1]], [1, 2]], f"X[1] is a 1-D list of numbers; {SHAPE}"),
        ([1, 2], f"X is a 1-D list of numbers; {SHAPE}"),
        ([ROW, np.array([["a", "b"]])], f"X[1] has 'a' at position 0, column 0; {TEXT}"),
        ([ROW, [[1, 2], [3, "b"]]], f"X[1] has 'b' at position 1, column 1; {TEXT}"),
        (
            [ROW, np.array([[1, 2], [3, "4"]], object)],
            f"X[1] has '4' at position 1, column 1; {TEXT}",
        ),
        (np.ones((1, 1), "c16"), "Complex data not supported: X has dtype complex128"),
    ],
)
def test_what_is_no_table_of_numbers(X, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        encode(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[[1, 2], {"a": 1}]], f"X[0] mixes forms: position 1 is of type dict{A_ROW}"),
        ([[[1, 2], 3]], f"X[0] mixes forms: position 1 is of type int{A_ROW}"),
        ([[[1, 2], np.array(3)]], f"X[0] mixes forms: position 1 is of type ndarray{A_ROW}"),
        ([[np.array(1), [2, 3]]], f"X[0] mixes forms: position 0 is of type ndarray{A_ROW}"),
        (
            [[[1, 10**400]]],
            "at position 0, column 1; expected a number (int too large to convert",
        ),
        (RECORDS, "X has dtype [('a', '<f8'), ('b', '<f8')]; expected numbers"),
        ([np.ones((1, 1), "M8[D]")], "X[0] has dtype datetime64[D]; expected numbers"),
    ],
)
def test_what_holds_no_numbers(X, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        encode(X)


def test_objects_among_numbers():
    X = np.ones((2, 2), object)
    X[1, 0] = {"a": 1}
    message = r"X has {'a': 1} at position 1, column 0.*argument must be .* string.* number.*dicts"
    with pytest.raises(TypeError, match=message):
        encode(X)
