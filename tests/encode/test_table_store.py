"""A table that is read part by part is the same as one that is read at once."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hedgerow import LinearCRF, TreeCRF
from hedgerow.encode import encode
from hedgerow.encode.table_store import TableStore
from reference.daily_tables import daily_table
from reference.trainings import saved

TABLE = daily_table(12).assign(gaps=lambda table: table["heat"].where(table["hour"] > 1))
FEATURES = TABLE.drop(columns=["day", "hour", "state"])
STARTS = [*np.flatnonzero(TABLE["hour"] == 0), len(TABLE)]


def store_in_parts(table, cuts, *, flat=True):
    with TableStore() as store:
        for first, stop in pairwise(cuts):
            begin, end = STARTS[first], STARTS[stop]
            offsets = np.array(STARTS[first : stop + 1]) - begin
            store.append(table[begin:end], offsets, [f"d{day}" for day in range(first, stop)])
        return store.finish(flat=flat)


@pytest.mark.parametrize("cuts", [[0, 12], [0, 1, 5, 5, 12], range(13)])
def test_parts_make_up_the_table(cuts):
    stored = store_in_parts(FEATURES, cuts)
    whole = encode(FEATURES, TABLE["day"])
    found = encode(stored)
    assert len(stored) == 12
    assert found.ids == whole.ids
    assert found.schema == whole.schema
    assert found.offsets.tolist() == whole.offsets.tolist()
    np.testing.assert_array_equal(found.dense, whole.dense)
    (mine,), (theirs,) = found.categorical, whole.categorical
    assert (mine.codes.tolist(), mine.categories) == (theirs.codes.tolist(), theirs.categories)


def test_numbers_have_the_precision_that_they_need():
    narrow = FEATURES[["heat"]].astype(np.float32)
    stored = store_in_parts(narrow, [0, 4, 12]).sequences
    assert stored.dense.dtype == np.float32
    mixed = [narrow[: STARTS[4]], FEATURES[["heat"]][STARTS[4] :]]
    with TableStore() as store:
        store.append(mixed[0], STARTS[:5], [])
        store.append(mixed[1], np.array(STARTS[4:]) - STARTS[4], [])
        wide = store.finish().sequences
    assert wide.dense.dtype == np.float64
    np.testing.assert_array_equal(wide.dense, pd.concat(mixed).to_numpy(np.float64))


@pytest.mark.parametrize(
    "crf", [TreeCRF(n_rounds=3, window=1), LinearCRF()], ids=["trees", "linear"]
)
def test_models_are_the_same(crf, tmp_path):
    X = FEATURES.drop(columns="gaps")
    in_memory = saved(crf.fit(X, TABLE["state"], groups=TABLE["day"]), tmp_path)
    stored = store_in_parts(X, [0, 3, 12])
    assert saved(crf.fit(stored, TABLE["state"].to_numpy()), tmp_path) == in_memory
    assert crf.predict(stored).tolist() == crf.predict(X, groups=TABLE["day"]).tolist()


def test_text_alone_needs_no_file():
    stored = store_in_parts(FEATURES[["weather"]], [0, 3, 12], flat=False).sequences
    assert stored.dense is None
    assert not stored.flat


def test_what_is_refused():
    with TableStore() as store:
        with pytest.raises(ValueError, match="X has no rows; expected at least one"):
            store.finish()
        store.append(pa.table({"x": [1.0]}), [0, 1], ["a"])
        store.append(pa.table({"x": [1.0]})[:0], [0], [])
        with pytest.raises(ValueError, match="this part has different columns from the first"):
            store.append(pa.table({"z": [1.0]}), [0, 1], ["b"])
        message = (
            "the first part of X has 1 feature, but this part has 2; all parts of the data need "
            "the same columns"
        )
        with pytest.raises(ValueError, match=message):
            store.append(pa.table({"x": [1.0], "z": [1.0]}), [0, 1], ["b"])
        with pytest.raises(ValueError, match="column 'x' is numeric in the first part of X but te"):
            store.append(pa.table({"x": ["1"]}), [0, 1], ["b"])
