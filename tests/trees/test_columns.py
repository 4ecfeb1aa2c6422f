"""Columns: every value in its bin, as NumPy's search would have it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hedgerow import _core
from hedgerow.encode import encode
from reference.columns import column_cuts, learn, midpoints, search, to_dense_bins
from reference.forests import make_leaves, make_stump, make_tree

LIBRARIES = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])

few_values = st.sampled_from([-2.5, -1.0, 0.0, 1.0, 1.0000000000000002, 7.0, np.nan])
any_values = st.floats(allow_infinity=False, width=64)
matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 40), st.integers(1, 3)),
    elements=st.one_of(few_values, any_values),
    fill=few_values,
)


def bins_of(X, max_bins=255):
    """Dense bins of a column, or of several."""
    X = np.asarray(X)
    columns, sequences = learn(X.reshape(len(X), -1), max_bins)
    return columns.bin(sequences, 1).dense.squeeze(axis=1 if X.ndim == 1 else ())


@given(matrices, st.integers(2, 255))
def test_dense_bins_are_those_of_a_search(X, max_bins):
    columns, sequences = learn(X, max_bins)
    bins = columns.bin(sequences, 2).dense
    assert bins.dtype == np.uint8
    assert bins.flags.c_contiguous
    for c in range(X.shape[1]):
        column = column_cuts(columns, c)
        known = np.unique(X[~np.isnan(X[:, c]), c])
        assert np.isfinite(column).all()
        assert (np.diff(column) > 0).all()
        assert columns.n_bins[c] == max(1, min(len(known), max_bins)) == len(column) + 1
        np.testing.assert_array_equal(bins[:, c], search(X[:, c], column))
        assert np.isin(np.arange(1, len(column) + 2), bins[:, c]).all() or not len(known)
        if len(known) <= max_bins:
            np.testing.assert_array_equal(search(known, column), 1 + np.arange(len(known)))
            np.testing.assert_array_equal(column, midpoints(known))


@given(matrices, matrices)
def test_new_values_are_searched_among_the_old_cuts(X, new):
    columns, _ = learn(X[:, :1], 4)
    bins = columns.bin(encode(new[:, :1]), 1).dense[:, 0]
    np.testing.assert_array_equal(bins, search(new[:, 0], column_cuts(columns, 0)))


@pytest.mark.parametrize("max_bins", [2, 3, 10, 254, 255])
def test_many_values_are_spread_evenly(max_bins):
    values = np.random.default_rng(0).normal(size=10_000)
    counts = np.bincount(bins_of(values, max_bins))[1:]
    assert len(counts) == max_bins
    assert counts.max() - counts.min() <= 2


@pytest.mark.parametrize("max_bins", [2, 3, 10, 255])
def test_a_frequent_value_has_its_own_bin_and_leaves_bins_to_the_others(max_bins):
    values = np.concatenate([np.zeros(100_000), np.linspace(-1, -0.1, 500), np.linspace(1, 2, 500)])
    bins = bins_of(values, max_bins)
    assert bins.max() == max_bins
    if max_bins > 2:
        assert len(np.unique(values[bins == bins[0]])) == 1
        sizes = np.bincount(bins)[1:]
        assert np.delete(sizes, bins[0] - 1).max() <= 2 * 1000 / (max_bins - 2) + 2


def test_missing_constant_and_empty_columns():
    X = np.array([[np.nan, 3.0, np.nan], [1.0, 3.0, np.nan], [2.0, 3.0, np.nan]])
    columns, sequences = learn(X)
    assert columns.n_bins.tolist() == [2, 1, 1]
    assert columns.cuts.tolist() == [1.5]
    assert columns.bin(sequences, 1).dense.tolist() == [[0, 1, 0], [1, 1, 0], [2, 1, 0]]
    assert columns.bin(encode([[np.nan, -9.0, 4.0]]), 1).dense.tolist() == [[0, 1, 1]]


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 5e-324],
        [-5e-324, -0.0, 5e-324],
        [1.0, np.nextafter(1, 2), np.nextafter(1, 0)],
        [-1.7e308, 1.7e308, np.nextafter(1.7e308, 2e308)],
        [5e-324, 1e-323, 1.5e-323, 2e-323],
    ],
)
def test_floats_that_touch_or_lie_far_apart(values):
    ranks = np.unique(np.array(values), return_inverse=True)[1] + 1
    np.testing.assert_array_equal(bins_of(values), ranks)


def test_huge_integers():
    values = np.array([2**63 - 1, -(2**63), 2**62, 0], np.int64)
    assert bins_of(values).tolist() == [4, 1, 3, 2]
    assert bins_of(np.array([2**64 - 1, 2**63, 1], np.uint64)).tolist() == [3, 2, 1]
    # They are float64 for the search, and these two are one number then.
    assert bins_of(np.array([2**60, 2**60 + 1, 0], np.int64)).tolist() == [2, 2, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint8, np.int32, bool])
def test_every_dtype_has_the_bins_of_float64(dtype):
    X = np.random.default_rng(0).normal(scale=30, size=(500, 3)).astype(dtype)
    columns, sequences = learn(X, 50)
    wide, wide_sequences = learn(X.astype(np.float64), 50)
    np.testing.assert_array_equal(columns.cuts, wide.cuts)
    bins = columns.bin(sequences, 1).dense
    np.testing.assert_array_equal(bins, wide.bin(wide_sequences, 1).dense)


def test_blocks_and_threads_change_nothing(monkeypatch):
    X = np.random.default_rng(0).normal(size=(3000, 5))
    X[::7, 2] = np.nan
    columns, sequences = learn(X, 100)
    whole = columns.bin(sequences, 1).dense
    monkeypatch.setattr("hedgerow.trees.entries.BLOCK", 1000)
    for n_threads in (1, 2, 3):
        np.testing.assert_array_equal(columns.bin(sequences, n_threads).dense, whole)


@LIBRARIES
def test_text_columns_follow_the_numbers(library):
    frame = library.DataFrame({"w": ["b", None, "a"], "n": [1.0, 2.0, 3.0], "v": ["x", "x", "x"]})
    columns, sequences = learn(frame)
    assert columns.column_names() == ["n", "w", "v"]
    assert columns.categorical.tolist() == [False, True, True]
    assert columns.n_bins.tolist() == [3, 2, 1]
    assert columns.bin(sequences, 1).dense.tolist() == [[1, 2, 1], [2, 0, 1], [3, 1, 1]]


@LIBRARIES
def test_categories_are_matched_by_their_text(library):
    columns, _ = learn(library.DataFrame({"w": ["b", "d", "a"]}))
    new = encode(library.DataFrame({"w": ["d", "c", "e", "", "b", None]}))
    assert columns.bin(new, 1).dense[:, 0].tolist() == [3, 0, 0, 0, 2, 0]


def test_a_text_column_without_any_text():
    columns, sequences = learn(pd.DataFrame({"w": pd.Series([None, None], dtype="string")}))
    assert columns.categories == ([],)
    assert columns.n_bins.tolist() == [1]
    assert columns.bin(sequences, 1).dense.tolist() == [[0], [0]]
    new = encode(pd.DataFrame({"w": ["a"]}))
    assert columns.bin(new, 1).dense.tolist() == [[0]]


@LIBRARIES
@pytest.mark.parametrize(("n_categories", "dense"), [(254, True), (255, False)])
def test_text_columns_of_many_categories_are_attributes(library, n_categories, dense):
    words = [f"w{i:03}" for i in range(n_categories)]
    columns, sequences = learn(library.DataFrame({"w": words, "n": np.arange(n_categories)}))
    assert (columns.n_dense, columns.n_attributes) == ((2, 0) if dense else (1, 255))
    binned = columns.bin(sequences, 1)
    if dense:
        assert binned.dense[:, 1].tolist() == list(range(1, 255))
        assert columns.column_names() == ["n", "w"]
        return
    assert columns.column_names()[:2] == ["n", "w=w000"]
    assert not columns.categorical.any()
    assert columns.cuts[columns.cut_offsets[1]] == 0.5
    assert binned.attributes.tolist() == list(range(255))
    assert set(binned.attribute_bins.tolist()) == {2}
    assert set(columns.default_bins.tolist()) == {1}
    new = encode(library.DataFrame({"w": ["w254", None, "x", "w001"], "n": [1, 2, 3, 4]}))
    binned = columns.bin(new, 1)
    assert binned.indptr.tolist() == [0, 1, 1, 1, 2]
    assert binned.attributes.tolist() == [254, 1]


def test_several_large_text_columns_number_their_categories_in_turn():
    words = [str(i) for i in range(300)]
    frame = pd.DataFrame({"a": words, "s": ["x"] * 300, "b": words[::-1]})
    columns, sequences = learn(frame)
    assert columns.column_names()[0] == "s"
    names = columns.column_names()[1:]
    binned = columns.bin(sequences, 1)
    assert binned.indptr.tolist() == list(range(0, 601, 2))
    assert [names[a] for a in binned.attributes[:4]] == ["a=0", "b=299", "a=1", "b=298"]


def test_names_of_columns_without_names():
    assert learn(np.zeros((1, 2)))[0].column_names() == ["x0", "x1"]
    assert learn(pd.DataFrame({0: [1.0], 1: ["a"]}))[0].column_names() == ["x0", "x1"]
    assert learn(scipy.sparse.csr_array((1, 2)))[0].column_names() == ["x0", "x1"]


def test_columns_of_x_that_columns_come_from():
    words = [f"{i:03}" for i in range(255)]
    frame = pd.DataFrame(
        {"big": words, "n": np.arange(255), "few": ["a", "b", "c"] * 85, "huge": words, "m": 0.5}
    )
    columns, _ = learn(frame)
    of_schema = columns.of_schema()
    assert of_schema.tolist() == [1, 4, 2, *[0] * 255, *[3] * 255]
    names = [name.split("=")[0] for name in columns.column_names()]
    assert [frame.columns[place] for place in of_schema] == names
    assert learn(np.zeros((2, 3)))[0].of_schema().tolist() == [0, 1, 2]
    assert learn(scipy.sparse.csr_array((2, 3)))[0].of_schema().tolist() == [0, 1, 2]
    assert learn(pd.DataFrame({"w": ["a"]}))[0].of_schema().tolist() == [0]
    items, _ = learn([[["b", "a"], ["c"]]], index=_core.StringIndex())
    assert items.of_schema().tolist() == [0, 1, 2]
    assert learn([[[]]], index=_core.StringIndex())[0].of_schema().tolist() == []


def every_kind_of_input():
    words = [f"{i:03}" for i in range(255)]
    yield [np.array([[1.0, np.nan], [2.0, 0.0]]), np.zeros((1, 2))]
    yield pd.DataFrame({"n": np.arange(255), "few": ["a", None, "c"] * 85, "many": words})
    yield scipy.sparse.csr_array([[0.0, 2.0], [1.0, -3.0], [np.nan, 0.0]])
    yield [[{"n": 2.5, "a": 1}, {"n": -1.0}], [["a"]]]
    yield [[[], []]]


@pytest.mark.parametrize("X", list(every_kind_of_input()))
def test_kernels_read_the_bins_as_they_are(X):
    columns, sequences = learn(X, index=_core.StringIndex())
    bins, binned = columns.bins(sequences, 2), columns.bin(sequences, 1)
    table = binned.dense
    if columns.n_attributes:
        table = np.concatenate([table, to_dense_bins(columns, binned)], axis=1)
    # A tree for each column and cut says on which side of it every value lies.
    for c in range(columns.n_columns):
        for cut in range(1, columns.n_bins[c] + 1, 17):
            forest = make_stump(columns=c, cuts=cut)
            out = np.zeros((sequences.n_positions, 1))
            forest.add_scores(bins, out, out, 1)
            left = (table[:, c] >= 1) & (table[:, c] <= cut)
            np.testing.assert_array_equal(out[:, 0], np.where(left, 1.0, 2.0))
    _core.TreeData(bins, 1, 1)


def fill(function, **changes):
    """Call a kernel with good arrays, or some that are not."""
    good = {
        "values": np.zeros((2, 2)) if function is _core.fill_bins else np.zeros(2),
        "columns": np.zeros(2, np.int32),
        "cut_offsets": np.array([0, 1, 3]),
        "cuts": np.array([0.0, 0.0, 1.0]),
        "bins": np.zeros((2, 2) if function is _core.fill_bins else 2, np.uint8),
        "n_threads": 1,
    }
    if function is _core.fill_bins:
        del good["columns"]
    function(**{**good, **changes})


@pytest.mark.parametrize(
    ("function", "changes", "message"),
    [
        ("fill_bins", {"cut_offsets": np.array([0, 1])}, "cut offsets must have one entry more"),
        ("fill_bins", {"cut_offsets": np.empty(0, np.int64)}, "cut offsets must begin at 0"),
        ("fill_bins", {"cut_offsets": np.array([-1, 1, 3])}, "cut offsets must begin at 0"),
        ("fill_bins", {"cut_offsets": np.array([0, 2, 1])}, "cut offsets must not decrease"),
        ("fill_bins", {"cut_offsets": np.array([0, 1, 4])}, "or exceed the number of cuts"),
        (
            "fill_bins",
            {"cut_offsets": np.array([0, 0, 255]), "cuts": np.arange(255.0)},
            "a column has more than 254 cuts",
        ),
        ("fill_bins", {"bins": np.zeros((1, 2), np.uint8)}, "bins must have the rows of values"),
        ("fill_bins", {"bins": np.zeros((2, 1), np.uint8)}, "bins must have the rows of values"),
        ("fill_entry_bins", {"columns": np.array([0, 2], np.int32)}, "a column is out of range"),
        ("fill_entry_bins", {"columns": np.array([-1, 0], np.int32)}, "a column is out of range"),
        ("fill_entry_bins", {"columns": np.zeros(1, np.int32)}, "an entry for each value"),
        ("fill_entry_bins", {"bins": np.zeros(3, np.uint8)}, "an entry for each value"),
        ("fill_entry_bins", {"cut_offsets": np.array([0, 9, 3])}, "cut offsets must not decrease"),
    ],
)
def test_kernels_refuse_what_does_not_fit(function, changes, message):
    fill(getattr(_core, function))
    with pytest.raises(ValueError, match=message):
        fill(getattr(_core, function), **changes)


def test_bins_may_have_more_columns_than_values():
    bins = np.full((2, 3), 9, np.uint8)
    fill(_core.fill_bins, values=np.array([[-1.0, 0.5], [np.nan, np.inf]]), bins=bins)
    assert bins.tolist() == [[1, 2, 9], [0, 3, 9]]


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i8", "f2"])
def test_values_give_the_scores_of_their_bins(dtype):
    rng = np.random.default_rng(0)
    X = (10 * rng.normal(size=(90, 11))).astype(dtype)
    if np.dtype(dtype).kind == "f":
        X[rng.random(X.shape) < 0.1] = np.nan
    columns, sequences = learn([X[:50], X[50:]])
    values = columns.values(sequences)
    assert (values is None) == (dtype in ("i8", "f2"))  # which have to be converted
    bins = columns.bins(sequences, 1)
    for c in range(11):
        for cut in range(1, columns.n_bins[c] + 1, 7):
            forest = make_stump(columns=c, cuts=cut, offsets=c % 3 - 1, missing_left=cut % 2)
            assert forest.walks_values(90)
            assert not forest.walks_values(1)
            expected, out = np.zeros((90, 1)), np.zeros((90, 1))
            forest.add_scores(bins, expected, expected, 1)
            if values is not None:
                forest.add_scores(values, out, out, 2)
                np.testing.assert_array_equal(out, expected)


def test_values_that_are_not_all_numbers_are_binned():
    for X in list(every_kind_of_input())[1:]:
        columns, sequences = learn(X, index=_core.StringIndex())
        assert columns.values(sequences) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": np.zeros((2, 2), np.int64)}, "values must be of dtype float32, float64 or uin"),
        ({"values": np.zeros((2, 4))[:, ::2]}, r"values must be a C-contiguous array \(rows, col"),
        ({"cut_offsets": np.array([0, 1])}, "cut offsets must have one entry more"),
        ({"cut_offsets": np.array([0, 1, 4])}, "or exceed the number of cuts"),
        ({"offsets": np.array([0, 1])}, "offsets must run from 0 to the number of positions"),
    ],
)
def test_values_that_do_not_fit_are_refused(changes, message):
    good = {
        "values": np.zeros((2, 2)),
        "cut_offsets": np.array([0, 1, 3]),
        "cuts": np.array([0.0, 0.0, 1.0]),
        "offsets": np.array([0, 2]),
    }
    values, out = _core.Values(**good), np.zeros((2, 1))
    with pytest.raises(ValueError, match=message):
        _core.Values(**{**good, **changes})
    with pytest.raises(ValueError, match="the trees split on columns that do not exist"):
        make_stump(columns=2, cuts=1).add_scores(values, out, out, 1)
    nodes = make_leaves(3)
    nodes["columns"][0], nodes["lefts"][0], nodes["sets"][0] = 0, 1, 0
    with pytest.raises(ValueError, match="the trees do not split on numbers only"):
        make_tree(nodes, np.ones(32, np.uint8)).add_scores(values, out, out, 1)
    with pytest.raises(ValueError, match="scores must have a row for each position and a column"):
        make_stump(columns=1, cuts=1).add_scores(values, out[:1], out, 1)
