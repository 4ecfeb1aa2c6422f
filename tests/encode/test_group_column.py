"""A column of X with the sequence ids."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from hedgerow import load
from hedgerow.encode import encode
from reference.linear import make_data
from reference.trainings import saved

X, Y = make_data(n_sequences=12)
ROWS, LABELS = np.concatenate(X), np.concatenate(Y)
IDS = np.repeat(np.arange(len(X)) * 3 % 13, list(map(len, X)))
NAMES = [f"s{number}" for number in IDS]
FEATURES = {f"f{j}": ROWS[:, j] for j in range(ROWS.shape[1])}
TABLE = {"f0": ROWS[:, 0], "sequence": NAMES} | FEATURES
WITH_IDS = np.insert(ROWS, 1, IDS, axis=1)
MIXED = WITH_IDS.astype(object)
MIXED[:, 1] = NAMES


@pytest.mark.parametrize(
    ("table", "group_column"),
    [
        (pd.DataFrame(TABLE), "sequence"),
        (pd.DataFrame(TABLE), 1),
        (pd.DataFrame(TABLE, index=NAMES), "sequence"),
        (pd.DataFrame(TABLE).astype({"sequence": "category"}), "sequence"),
        (pl.DataFrame(TABLE), "sequence"),
        (pl.DataFrame(TABLE), -ROWS.shape[1]),
        (pa.table(TABLE), "sequence"),
        (pd.DataFrame(WITH_IDS), 1),
        (pd.DataFrame(WITH_IDS)[[0, *range(2, WITH_IDS.shape[1]), 1]], 1),
        (WITH_IDS, 1),
        (WITH_IDS, np.int64(1)),
        (WITH_IDS.tolist(), 1),
        (MIXED, 1),
        (MIXED.tolist(), 1),
        (sparse.csr_array(WITH_IDS), 1),
        (sparse.coo_matrix(WITH_IDS), -ROWS.shape[1]),
    ],
)
def test_it_is_the_same_as_groups_beside_the_table(table, group_column):
    found = encode(table, group_column=group_column)
    np.testing.assert_array_equal(found.offsets, encode(ROWS, IDS).offsets)
    values = found.dense
    if found.sparse is not None:
        rows = found.sparse
        values = sparse.csr_array((rows.values, rows.indices, rows.indptr)).toarray()
    np.testing.assert_array_equal(values, ROWS)
    assert found.flat
    assert found.schema.n_features == ROWS.shape[1]
    assert found.schema.names in (None, tuple(FEATURES))


def test_what_the_user_gave_stays_as_it_was():
    frame, rows = pd.DataFrame(TABLE), WITH_IDS.copy()
    encode(frame, group_column="sequence")
    encode(rows, group_column=1)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(TABLE))
    np.testing.assert_array_equal(rows, WITH_IDS)


@pytest.mark.parametrize("cut", [lambda frame: frame, lambda frame: frame.to_numpy()])
def test_it_is_dropped_from_a_list_of_sequences(cut):
    frame = pd.DataFrame(TABLE).assign(sequence=IDS)
    parts = [cut(part) for _, part in frame.groupby("sequence", sort=False)]
    found = encode(parts, group_column=1)
    np.testing.assert_array_equal(found.dense, ROWS)
    np.testing.assert_array_equal(found.offsets, encode(ROWS, IDS).offsets)
    assert not found.flat


def test_a_model_remembers_it(make, tmp_path):
    frame = pd.DataFrame(TABLE)
    crf = make(group_column="sequence").fit(frame, LABELS, eval_set=(frame, LABELS))
    beside = make().fit(frame.drop(columns="sequence"), LABELS, groups=NAMES)
    expected = beside.predict_proba(ROWS, groups=IDS)
    np.testing.assert_array_equal(crf.predict_proba(frame), expected)
    assert crf.score(frame, LABELS) == beside.score(X, Y)
    assert crf.n_features_in_ == ROWS.shape[1]
    assert crf.feature_names_in_.tolist() == list(FEATURES)
    loaded = load(saved(crf, tmp_path))
    assert loaded.group_column == "sequence"
    np.testing.assert_array_equal(loaded.predict_proba(frame), expected)


@pytest.mark.parametrize(
    ("table", "group_column", "message"),
    [
        (pd.DataFrame(TABLE), "word", "group_column is 'word', but X has the columns 'f0', 'seq"),
        (pd.DataFrame(TABLE), 17, "group_column is 17, but X has the columns 'f0', 'sequence'"),
        (WITH_IDS, 4, "group_column is 4, but X has 4 columns; pass X with the column of group"),
        (
            WITH_IDS,
            -5,
            "group_column is -5, but X has 4 columns; pass X with the column of group ids to fit "
            "and to predict, or set group_column=None and pass the argument groups",
        ),
        (WITH_IDS, "word", "group_column is 'word', but X has no column names; pass the number"),
        (sparse.csr_array(WITH_IDS), "word", "group_column is 'word', but X has no column names"),
        (
            [[pd.DataFrame(TABLE)]],
            1,
            "the entries of X[0] are not rows but of type DataFrame, so there is no column",
        ),
        ([ROWS], 9, "group_column is 9, but X[0] has 3 columns"),
        (IDS[:, None], 0, "X has only the column of group ids, group_column=0; at least one"),
        (
            pd.DataFrame({"s": IDS}),
            "s",
            "X has only the column of group ids, group_column='s'",
        ),
        ([[{"a": 1}]], "s", "group_column is 's', but X holds dicts or attribute strings, which"),
        (
            np.array([[0, 1], [2, 1], [0, 1]]),
            0,
            "group 0 occurs again at row 2 after it began at row 0",
        ),
        (
            pd.DataFrame({"s": ["a", None], "f": [1, 2]}),
            "s",
            "column 's' has no group id (None or NaN) at row 1; every row needs one",
        ),
        (
            np.array([[1, 0.0], [2, np.nan]]),
            -1,
            "column -1 has no group id (None or NaN) at row 1; every row needs one",
        ),
        (
            np.ma.masked_equal([[1, 0], [2, 9]], 9),
            1,
            "column 1 has no group id (None or NaN) at row 1; every row needs one",
        ),
        ([[1, 0], [1, None]], 1, "column 1 has no group id (None or NaN) at row 1; every row"),
        ([[0, 1.0, 2.0], [0, 1.0, "a"]], 0, "X has 'a' at position 1, column 2; expected a number"),
        ([[1.0, 0, "a"], [1.0, 0, 1.0]], -2, "X has 'a' at position 0, column 2; expected a"),
        (
            np.array([[0, 1.0, None], [0, "a", 1.0]], object),
            0,
            "X has 'a' at position 1, column 1; expected a number",
        ),
        ([[0, 1.0, 2.0], [0, 1.0]], 0, "position 1 has 2 columns but position 0 has 3; every"),
        ([np.ones((2, 3)), np.ones((2, 2))], 0, "X[1] has 2 columns but X[0] has 3; every"),
        (
            [sparse.csr_array(np.ones((2, 3))), sparse.csr_array(np.ones((2, 2)))],
            0,
            "X[1] has 2 columns but X[0] has 3; every",
        ),
    ],
)
def test_bad_group_columns(table, group_column, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        encode(table, group_column=group_column)


def test_ids_that_are_not_hashable():
    message = "column 's' holds a group id that is not hashable: "
    with pytest.raises(TypeError, match=message):
        encode(pd.DataFrame({"s": [["a"], ["b"]], "f": [1, 2]}), group_column="s")


def test_many_columns_are_not_all_listed():
    frame = pd.DataFrame(np.zeros((2, 12)), columns=list("abcdefghijkl"))
    with pytest.raises(ValueError, match=r"'a', .*, 'j', \.\.\.; pass X"):
        encode(frame, group_column="z")


def test_groups_are_given_once(make):
    crf = make(group_column=1)
    message = r"groups are given twice: by a column of X, group_column=1, and by groups; leave gro"
    with pytest.raises(ValueError, match=message):
        crf.fit(WITH_IDS, LABELS, groups=IDS)
    with pytest.raises(ValueError, match="in eval_set: groups are given twice"):
        crf.fit(WITH_IDS, LABELS, eval_set=(WITH_IDS, LABELS, IDS))


def test_groups_beside_a_table_without_the_column(make):
    frame = pd.DataFrame({"s": IDS, "f": np.arange(len(IDS)) % 3.0})
    crf = make(group_column="s").fit(frame, LABELS)
    features = frame[["f"]]
    expected = crf.predict_proba(frame)
    np.testing.assert_array_equal(crf.predict_proba(features, groups=IDS), expected)
    np.testing.assert_array_equal(crf.predict_proba(features.to_numpy(), groups=IDS), expected)
    same = make(group_column="s").fit(features, LABELS, groups=IDS)
    np.testing.assert_array_equal(same.predict_proba(frame), expected)
    with pytest.raises(
        ValueError, match="groups are given twice: by a column of X, group_column='"
    ):
        crf.predict(frame, groups=IDS)
    with pytest.raises(ValueError, match="group ids to fit and to predict, or pass the argument"):
        crf.predict(features)
    message = (
        r"X\[0\] has the columns 'f'; pass sequences that have this column too, or fit with gro"
    )
    with pytest.raises(ValueError, match=message):
        crf.predict([features])


@pytest.mark.parametrize("group_column", [1.0, True, ["sequence"], b"sequence"])
def test_a_group_column_of_a_wrong_type(make, group_column):
    message = f"group_column is {group_column!r}; expected the name or the number of a column of X"
    with pytest.raises(ValueError, match=re.escape(message)):
        make(group_column=group_column).fit(WITH_IDS, LABELS)
