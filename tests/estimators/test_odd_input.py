"""Odd input: unusual containers and types, large and small numbers, odd labels."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from hedgerow import LinearCRF, TreeCRF, load
from reference.estimators import group_ids, refuses
from reference.linear import make_data

SEQUENCES, Y = make_data(n_sequences=8)
ROWS, LABELS = np.concatenate(SEQUENCES), np.concatenate(Y)
GROUPS = group_ids(SEQUENCES)
CODES = np.searchsorted(["a", "b", "c"], LABELS)
NAMES = ["u", "v", "w"]
COLUMNS = dict(zip(NAMES, ROWS.T, strict=True))
GAPS, MASKED = np.where(ROWS > 1, np.nan, ROWS), np.ma.masked_array(ROWS, mask=ROWS > 1)


@pytest.mark.parametrize(
    "names",
    [
        ["é", "日本", "🎉"],
        ["", " ", "\n"],
        ["O", "0", "o"],
        ["a" * 5000, "b", "c"],
        [-(2**63), 0, 2**63 - 1],
        np.array([2**64 - 1, 1, 0], np.uint64),
    ],
)
def test_labels_of_any_looks_come_back(make, names, tmp_path):
    y = np.array(names)[CODES]
    crf = make().fit(ROWS, y, groups=GROUPS)
    assert set(crf.classes_.tolist()) == set(np.asarray(names).tolist())
    crf.save(tmp_path / "model")
    found = load(tmp_path / "model").predict(ROWS, groups=GROUPS)
    assert found.dtype == y.dtype
    plain = make().fit(ROWS, LABELS, groups=GROUPS).predict(ROWS, groups=GROUPS)
    assert crf.score(ROWS, y, groups=GROUPS) == pytest.approx(np.mean(plain == LABELS), abs=0.1)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e99])
def test_numbers_of_any_size(make, scale):
    crf = make().fit(ROWS * scale, LABELS, groups=GROUPS)
    assert np.isfinite(crf.loss_)
    assert np.isfinite(crf.predict_proba(ROWS * scale, groups=GROUPS)).all()


def test_a_long_sequence_and_a_short_one(make):
    rows = np.random.default_rng(0).normal(size=(20_000, 2))
    labels = np.where(rows[:, 0] > 0, "p", "n")
    crf = make().fit([rows[1:], rows[:1]], [labels[1:], labels[:1]])
    assert crf.score([rows], [labels]) > 0.97
    assert np.isfinite(crf.log_likelihood([rows], [labels])).all()


@pytest.mark.parametrize(
    "X",
    [
        MASKED,
        sparse.csr_array(GAPS),
        [MASKED],
        [MASKED.astype(object)],
        [list(MASKED)],
        [np.where(ROWS > 1, None, ROWS)],
    ],
    ids=["masked", "sparse", "listed", "objects", "rows", "None"],
)
def test_what_is_masked_is_missing(X):
    y = [LABELS] if isinstance(X, list) else LABELS
    found = TreeCRF(n_rounds=2, n_jobs=1).fit(X, y)
    assert found.loss_ == TreeCRF(n_rounds=2, n_jobs=1).fit(GAPS, LABELS).loss_
    with pytest.raises(ValueError, match=r"X(\[0\] has NaN at position| has NaN at row)"):
        LinearCRF().fit(X, y)


def test_masks_of_parts_and_of_integers():
    parts = [MASKED[s == GROUPS] for s in range(8)]
    assert TreeCRF(n_rounds=2).fit(parts, Y).score(parts, Y) > 0.5
    counts = np.ma.masked_array([[1, 2], [3, 4]], mask=[[True, False], [False, False]])
    refuses(ValueError, "X has NaN at row 0, column 0", LinearCRF().fit, counts, ["a", "b"])


def test_masks_where_nothing_can_be_missing(make):
    ids = np.ma.masked_array(GROUPS, mask=GROUPS == 1)
    row = np.flatnonzero(GROUPS == 1)[0]
    where = f"(None or NaN) at row {row}; every row needs one"
    message = f"groups has no id {where}"
    refuses(ValueError, message, make().fit, ROWS, LABELS, groups=ids)
    columns, message = np.ma.column_stack([ids, ROWS]), f"column 0 has no group id {where}"
    refuses(ValueError, message, make(group_column=0).fit, columns, LABELS)
    weights = np.ma.masked_array(np.ones(len(ROWS)), mask=GROUPS == 1)
    with pytest.raises(ValueError, match=r"sample_weight is not an array .* some of its values"):
        make().fit(ROWS, LABELS, sample_weight=weights)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32])
def test_sparse_entries_that_are_there_twice_are_added(make, dtype):
    counts = np.abs(ROWS * 30).round().clip(0, 100) + 1
    rows, columns = np.nonzero(counts)
    twice = [np.tile(part, 2) for part in (counts[rows, columns].astype(dtype), rows, columns)]
    expected = make().fit(sparse.csr_array(counts * 2), LABELS, groups=GROUPS).loss_
    X = sparse.coo_array((twice[0], (twice[1], twice[2])), shape=ROWS.shape)
    assert make().fit(X, LABELS, groups=GROUPS).loss_ == expected
    order = np.argsort(twice[1], kind="stable")
    indptr = np.searchsorted(twice[1][order], np.arange(len(ROWS) + 1))
    X = sparse.csr_array((twice[0][order], twice[2][order], indptr), shape=ROWS.shape)
    assert make().fit(X, LABELS, groups=GROUPS).loss_ == expected
    assert X.nnz == len(order)


KINDS = CODES.tolist()
CATEGORIES = {
    "int": pd.Series(KINDS, dtype="category"),
    "float": pd.Series(KINDS, dtype=float).astype("category"),
    "Int64": pd.Series(KINDS, dtype="Int64").astype("category"),
    "objects": pd.Series(KINDS, dtype=object),
    "floats as objects": pd.Series([float(kind) for kind in KINDS], dtype=object),
    "decimals": pd.Series([decimal.Decimal(kind) for kind in KINDS], dtype=object),
    "long decimals": pd.Series([decimal.Decimal(f"{kind}.00") for kind in KINDS], dtype=object),
    "negative zero": pd.Series([kind or -0.0 for kind in KINDS], dtype=float).astype("category"),
    "text": pd.Series([str(kind) for kind in KINDS]),
}
# Their text is that of floats, which text such as "1" is not.
FLOATS = {"float", "negative zero"}


@pytest.mark.filterwarnings("ignore:all values of column 'c' look like numbers")
@pytest.mark.filterwarnings("ignore:column 'c' holds numbers")
@pytest.mark.parametrize("trained_on", ["int", "float", "long decimals", "negative zero", "text"])
def test_equal_numbers_are_one_category(make, trained_on, tmp_path):
    make().fit(CATEGORIES[trained_on].to_frame("c"), LABELS).save(tmp_path / "model")
    crf = load(tmp_path / "model")
    expected = crf.predict_proba(CATEGORIES[trained_on].to_frame("c"))
    for given, column in CATEGORIES.items():
        if not (trained_on in FLOATS and given == "text"):
            frame = column.to_frame("c")
            np.testing.assert_array_equal(crf.predict_proba(frame), expected)
            np.testing.assert_array_equal(crf.predict_marginals([frame])[0], expected)


def test_integers_wider_than_those_of_numpy():
    wide = pl.DataFrame({"u": pl.Series([1, None, 2**100], dtype=pl.Int128), "v": [1, 2, 3]})
    assert TreeCRF(n_rounds=1).fit(wide, ["a", "b", "a"]).n_features_in_ == 2


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (
            pa.record_batch(COLUMNS),
            LABELS,
            "X is a RecordBatch, a table that cannot be read as it is; convert it to a DataFrame",
        ),
        (
            pa.table({"day": [datetime.date(2020, 1, 1)] * 3}),
            list("aba"),
            "column 'day' of X has dtype date32[day]; expected numbers, bools, strings or",
        ),
        (
            sparse.csr_array((3, 10**8 + 1)),
            list("aba"),
            "X has 100000001 columns; at most 100000000 are supported: drop the empty ones",
        ),
        (
            np.array([[np.datetime64("2020-01-01")], [None]], object),
            list("ab"),
            "column 0; expected a number, not a time; convert times to numbers first",
        ),
        (
            np.array([[1.5], [np.timedelta64(5, "s")]], object),
            list("ab"),
            "X has np.timedelta64(5,'s') at position 1, column 0; expected a number, not a time",
        ),
        (
            np.array([[1.5], [1j]], object),
            list("ab"),
            "X has 1j at position 1, column 0; expected a number",
        ),
        (ROWS[:3], [1, 2, 2**70], f"y[2] is {2**70}, too large an integer for a label; make the"),
        ([ROWS[:2]], [[-(2**64), 2]], f"y[0][0] is {-(2**64)}, too large an integer for a label"),
    ],
)
def test_what_cannot_be_read_is_named(make, X, y, message):
    refuses((TypeError, ValueError), message, make().fit, X, y)


def test_groups_by_the_name_of_a_column(make):
    with pytest.raises(TypeError, match=r"groups is 'seq'; .* set group_column instead"):
        make().fit(ROWS, LABELS, groups="seq")


def test_complex_weights(make):
    message = "sample_weight is not an array of numbers: its values are complex"
    refuses(ValueError, message, make().fit, ROWS, LABELS, sample_weight=np.full(len(ROWS), 1j))
