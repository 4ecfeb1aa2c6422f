"""The container of sequences: shapes are preserved, and errors name invalid numbers."""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st

from hedgerow import _core
from hedgerow.encode import encode
from hedgerow.fingerprint import fingerprint
from hedgerow.sequences import Schema, Sequences, check_finite, check_not_infinite, cut_runs

lengths_of_sequences = st.lists(st.integers(1, 5), min_size=1, max_size=8)


@given(lengths_of_sequences)
@example([3, 3])
def test_mirror_is_the_inverse_of_concatenation(lengths):
    parts = [np.random.default_rng(length).normal(size=(length, 2)) for length in lengths]
    sequences = encode(parts)
    mirrored = sequences.mirror(np.concatenate(parts))
    assert isinstance(mirrored, list)
    assert len(mirrored) == len(parts) == sequences.n_sequences
    for got, part in zip(mirrored, parts, strict=True):
        np.testing.assert_array_equal(got, part)
    empty = sequences.mirror(np.zeros((sequences.n_positions, 0)))
    assert [one.shape for one in empty] == [(length, 0) for length in lengths]


@given(lengths_of_sequences)
def test_locate_counts_positions_sequence_by_sequence(lengths):
    sequences = encode([np.zeros((length, 1)) for length in lengths])
    expected = [(s, t) for s, length in enumerate(lengths) for t in range(length)]
    assert [sequences.locate(p) for p in range(sequences.n_positions)] == expected
    assert sequences.lengths.tolist() == lengths


def test_mirror_of_flat_input_is_the_array_itself():
    sequences = encode(np.zeros((4, 1)), groups=[0, 0, 1, 1])
    array = np.arange(4)
    assert sequences.mirror(array) is array


@pytest.mark.parametrize("position", [-1, 3])
def test_locate_refuses_positions_outside(position):
    with pytest.raises(IndexError, match=f"position {position} is outside the 3 positions"):
        encode([np.zeros((3, 1))]).locate(position)


@pytest.mark.parametrize(
    "schema",
    [
        Schema("items", 0, None, ()),
        Schema("columns", 2, None, (True, True)),
        Schema("columns", 3, ("a", "b", "c"), (True, False, True)),
    ],
)
def test_schema_survives_json(schema):
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


def test_more_positions_than_32_bits_can_number():
    """Nothing is allocated: the positions have no columns."""

    def sequences(*lengths):
        offsets = np.cumsum([0, *lengths], dtype=np.int64)
        return Sequences(offsets, Schema("items", 0, None, ()), None, None, (), flat=False)

    assert sequences(2**30, 2**30 - 1).n_positions == 2**31 - 1
    message = "X has 2,147,483,648 positions; expected at most 2,147,483,647 in one process: pass"
    with pytest.raises(ValueError, match=message):
        sequences(2**30, 2**30)


def test_check_finite_accepts_finite_numbers_of_every_dtype():
    for dtype in (np.float16, np.float32, np.float64, np.int8, np.uint64, bool):
        check_finite(encode(np.ones((3, 2), dtype)))
    check_finite(encode(scipy.sparse.csr_array([[0.5, 0.0]])))


@pytest.mark.parametrize(
    ("check", "value", "shown", "needs"),
    [
        (check_finite, np.nan, "NaN", ": impute or drop it"),
        (check_not_infinite, np.inf, "inf", ", or NaN for missing ones: clip or drop it"),
    ],
)
def test_bad_numbers_are_named(check, value, shown, needs):
    frames = [pd.DataFrame({"word": ["a"] * 20, "speed": [1.0] * 20}) for _ in range(4)]
    frames[3].loc[17, "speed"] = value
    message = f"X[3] has {shown} at position 17, column 'speed'; CRF needs finite numbers{needs}"
    with pytest.raises(ValueError, match=re.escape(message)):
        check(encode(frames), "CRF")


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_check_finite_finds_the_last_cell_of_a_big_flat_array(value):
    array = np.zeros((70_000, 9), np.float32)
    array[-1, -1] = value
    with pytest.raises(ValueError, match=f"X has {value} at row 69999, column 8; the model"):
        check_finite(encode(array))


def test_numbers_of_unusual_types_are_checked_too():
    for dtype in (np.float16, np.longdouble):
        array = np.ones((5, 2), dtype)
        array[2:, 1] = -np.inf
        check_not_infinite(encode(array[:2]))
        with pytest.raises(ValueError, match="X has -inf at row 2, column 1; the model"):
            check_not_infinite(encode(array), n_threads=2)


def test_check_finite_looks_at_sparse_values():
    rows = scipy.sparse.csr_array([[0.0, 1.0], [0.0, 0.0], [np.nan, 2.0]])
    with pytest.raises(ValueError, match=r"X\[1\] has NaN at position 2, column 0; "):
        check_finite(encode([rows[:2], rows]))


def test_numbers_too_large_to_add_up_are_named():
    sequences = encode([np.zeros((3, 2)), np.array([[1.0, -1e200]])])
    message = re.escape(
        "X[1] has -1e+200 at position 0, column 1; LinearCRF takes numbers between -1e+100 and "
        "1e+100: scale the column"
    )
    with pytest.raises(ValueError, match=message):
        check_finite(sequences, "LinearCRF")
    check_finite(encode([np.full((2, 2), 3e38, dtype=np.float32)]), "LinearCRF")


def test_check_not_infinite_takes_nan_and_numbers_of_any_size():
    check_not_infinite(encode([np.array([[np.nan, -1e200], [1e308, 0.0]])]))
    check_not_infinite(encode(scipy.sparse.csr_array([[np.nan, 1e200]])))
    check_not_infinite(encode(np.ones((3, 2), np.int8)))


def test_check_not_infinite_looks_at_sparse_values():
    rows = scipy.sparse.csr_array([[0.0, np.nan], [-np.inf, 2.0]])
    with pytest.raises(ValueError, match="X has -inf at row 1, column 0; the model needs"):
        check_not_infinite(encode(rows))


def assert_equal_sequences(got, expected):
    assert got.schema == expected.schema
    assert got.flat == expected.flat
    assert got.offsets.tolist() == expected.offsets.tolist()
    assert got.offsets.dtype == np.int64
    assert (got.dense is None, got.sparse is None) == (
        expected.dense is None,
        expected.sparse is None,
    )
    if got.dense is not None:
        np.testing.assert_array_equal(got.dense, expected.dense)
    if got.sparse is not None:
        assert got.sparse.n_columns == expected.sparse.n_columns
        for name in ("indptr", "indices", "values"):
            np.testing.assert_array_equal(getattr(got.sparse, name), getattr(expected.sparse, name))


def parts_of_every_kind(lengths, rng):
    """The same sequences as arrays, as sparse matrices and as items with and without values."""
    dense = [rng.integers(0, 3, (length, 2)).astype(float) for length in lengths]
    yield encode, dense
    yield encode, [scipy.sparse.csr_array(part) for part in dense]
    for value in (1.0, 2.5):
        index = _core.StringIndex()
        items = [[{f"a{x:g}": value for x in row} for row in part] for part in dense]
        encode(items, index=index)
        yield partial(encode, index=index, grow=False), items


@given(lengths_of_sequences, st.data())
def test_a_part_holds_some_of_the_sequences(lengths, data):
    first = data.draw(st.integers(0, len(lengths) - 1))
    stop = data.draw(st.integers(first + 1, len(lengths)))
    for encode_part, X in parts_of_every_kind(lengths, np.random.default_rng(0)):
        sequences = encode_part(X)
        part = sequences.part(first, stop)
        expected = encode_part(X[first:stop])
        assert part.n_sequences == stop - first
        if sequences.sparse is not None and sequences.sparse.values is not None:
            values = expected.sparse.values
            ones = np.ones(len(expected.sparse.indices))
            values = ones if values is None else values
            expected = replace(expected, sparse=replace(expected.sparse, values=values))
        assert_equal_sequences(part, expected)


def test_a_part_is_a_view():
    sequences = encode([np.zeros((3, 2)), np.ones((2, 2))])
    part = sequences.part(1, 2)
    assert np.shares_memory(part.dense, sequences.dense)
    rows = encode([scipy.sparse.eye_array(3, format="csr")] * 2).sparse
    piece = rows.part(2, 5)
    assert (piece.indptr.tolist(), piece.indices.tolist()) == ([0, 1, 2, 3], [2, 0, 1])
    assert np.shares_memory(piece.indices, rows.indices)
    nothing = rows.part(4, 4)
    assert (nothing.indptr.tolist(), len(nothing.indices)) == ([0], 0)


def test_a_part_of_text_columns_keeps_all_categories():
    frames = [pd.DataFrame({"w": ["b", "a"]}), pd.DataFrame({"w": ["c"]})]
    (column,) = encode(frames).part(1, 2).categorical
    assert (column.codes.tolist(), column.categories) == ([2], ["a", "b", "c"])
    assert column.name == "w"


@given(lengths_of_sequences, st.integers(1, 12))
def test_batches_are_all_sequences_in_runs(lengths, n_positions):
    X = [np.random.default_rng(s).normal(size=(length, 1)) for s, length in enumerate(lengths)]
    sequences = encode(X)
    batches = [sequences.part(*run) for run in cut_runs(sequences.offsets, n_positions)]
    np.testing.assert_array_equal(np.concatenate([b.dense for b in batches]), sequences.dense)
    assert [int(length) for b in batches for length in b.lengths] == lengths
    first = 0
    for batch in batches:
        first += batch.n_sequences
        assert batch.n_positions <= n_positions or batch.n_sequences == 1
        # No room is left for one more.
        assert first == len(lengths) or batch.n_positions + lengths[first] > n_positions


def test_a_batch_of_nothing():
    assert list(cut_runs(np.array([0]), 10)) == [(0, 0)]


@pytest.mark.parametrize(
    "X",
    [
        np.arange(12.0).reshape(6, 2),
        scipy.sparse.csr_array(np.diag([1.0, 0.0, 2.0, 3.0, 0.0, 4.0])),
        pd.DataFrame({"n": np.arange(6.0), "t": ["b", None, "a", "c", "b", "a"]}),
    ],
)
def test_selected_positions_are_those_of_an_x_of_their_own(X):
    rows = np.array([1, 3, 4])
    part = X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]
    found = encode(X).select(rows, np.array([0, 1, 3]))
    expected = encode(part, groups=[0, 1, 1])
    assert fingerprint(found) == fingerprint(expected)
