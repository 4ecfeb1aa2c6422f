"""Workers that hold parts of one data set see it as if each of them held all of it."""

import numpy as np
import pandas as pd
import pytest

from hedgerow import _core
from hedgerow.comm import ALONE, ThreadComm
from hedgerow.encode import agree_on_columns, encode
from reference.daily_tables import daily_table

TABLE = daily_table(8)
DAYS = TABLE["day"].unique()
PARTS = [TABLE[TABLE["day"].isin(days)] for days in (DAYS[:2], DAYS[2:3], DAYS[3:])]


def on_workers(work):
    """What each of three workers gives."""
    return ThreadComm.run(3, work)


def test_text_columns_have_the_categories_of_all_workers():
    table = TABLE[["weather", "heat"]].assign(mark=TABLE["hour"].map({0: None, 1: 1.0}))
    table["mark"] = table["mark"].astype(object)
    whole = encode(table)
    parts = [table.loc[part.index] for part in PARTS]
    parts[1] = parts[1].assign(weather="rain")
    whole = encode(pd.concat(parts))

    def agree(comm):
        return agree_on_columns(encode(parts[comm.rank]), _core.StringIndex(), comm)[0]

    found = on_workers(agree)
    for number, column in enumerate(whole.categorical):
        mine = [sequences.categorical[number] for sequences in found]
        assert all(each.categories == column.categories for each in mine)
        assert np.concatenate([each.codes for each in mine]).tolist() == column.codes.tolist()
        assert {each.kind for each in mine} == {column.kind}
        assert all(each.spellings == column.spellings for each in mine)


def test_attributes_are_numbered_by_their_names():
    items = [[["b", "a"], ["c"]], [["d", "b"]], [["a"]]]

    def agree(comm):
        index = _core.StringIndex()
        sequences = encode([items[comm.rank]], index=index)
        sequences, index = agree_on_columns(sequences, index, comm)
        return index.names(), sequences.sparse.indices.tolist(), sequences.sparse.n_columns

    names = ["a", "b", "c", "d"]
    assert on_workers(agree) == [(names, [1, 0, 2], 4), (names, [3, 1], 4), (names, [0], 4)]


def test_one_worker_alone_keeps_what_it_has():
    sequences, index = encode(TABLE), _core.StringIndex()
    assert agree_on_columns(sequences, index, ALONE) == (sequences, index)


ROWS = np.zeros((2, 2))
DIFFERENT = {
    "the part of worker 0 has 2 columns, but that of worker 1 3 columns": np.zeros((2, 3)),
    "but that of worker 1 dicts or attribute strings; all parts of the": [[["a"]]],
    "that of worker 1 has other columns than the part of worker 0: column 'x0' of": pd.DataFrame(
        {"a": [1.0], "b": [2.0]}
    ),
}


@pytest.mark.parametrize("message", DIFFERENT)
def test_different_columns_are_refused(message):
    def agree(comm):
        X, index = DIFFERENT[message] if comm.rank else ROWS, _core.StringIndex()
        agree_on_columns(encode(X, index=index), index, comm)

    with pytest.raises(ValueError, match=message):
        ThreadComm.run(2, agree)


def test_columns_of_different_kinds_are_refused():
    def agree(comm):
        X = pd.DataFrame({"a": [1.0], "b": ["x"] if comm.rank else [2.0]})
        agree_on_columns(encode(X), _core.StringIndex(), comm)

    with pytest.raises(ValueError, match="column 'b' is numeric in the part of worker 0 but text"):
        ThreadComm.run(2, agree)
