"""Workers that hold parts of one data set see it as if each of them held all of it."""

import numpy as np
import pandas as pd
import pytest

from hedgerow import _core
from hedgerow.comm import ALONE, ThreadComm
from hedgerow.encode import agree_on_columns, encode
from hedgerow.labels import LabelColumn, Labels, Patterns, rare_shares
from hedgerow.weighting import class_weights, read_sample_weight
from reference.daily_tables import daily_table

TABLE = daily_table(8)
DAYS = TABLE["day"].unique()
PARTS = [TABLE[TABLE["day"].isin(days)] for days in (DAYS[:2], DAYS[2:3], DAYS[3:])]
OFFSETS = [np.append(np.flatnonzero(part["hour"] == 0), len(part)) for part in PARTS]


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


def test_classes_are_those_of_all_workers():
    labels, codes = Labels.learn(LabelColumn(np.array(["b", "a", "c", "b"], np.object_)))
    own = [["b", "a"], ["c"], ["b"]]
    missing = [None, None, np.array([True])]

    def learn(comm):
        values = np.array(own[comm.rank], np.object_)
        return Labels.learn(LabelColumn(values, missing[comm.rank]), comm)

    found = on_workers(learn)
    assert all(mine.classes.tolist() == labels.classes.tolist() for mine, _ in found)
    assert [mine.tolist() for _, mine in found] == [[1, 0], [2], [-1]]
    assert codes.tolist() == [1, 0, 2, 1]


def test_classes_of_different_kinds_are_refused():
    def learn(comm):
        return Labels.learn(LabelColumn(np.array([1] if comm.rank else ["a"])), comm)

    with pytest.raises(ValueError, match="y mixes kinds of labels: worker 0 has 'a' and worker 1"):
        ThreadComm.run(2, learn)

    def learn_nothing(comm):
        return Labels.learn(LabelColumn(np.zeros(2, int), np.ones(2, bool)), comm)

    with pytest.raises(ValueError, match="y has no label at any of its 2 positions"):
        ThreadComm.run(2, learn_nothing)


CODES = [
    Labels.learn(LabelColumn(TABLE["state"].to_numpy(object)))[1][part.index] for part in PARTS
]
ALL_CODES, ALL_OFFSETS = (
    np.concatenate(CODES),
    np.append(np.flatnonzero(TABLE["hour"] == 0), len(TABLE)),
)


@pytest.mark.parametrize("min_count", [1, 2, 3])
def test_patterns_are_counted_on_all_workers(min_count):
    def find(comm):
        rank = comm.rank
        return Patterns.seen(
            CODES[rank], OFFSETS[rank], 3, n_labels=3, min_count=min_count, comm=comm
        )

    expected = Patterns.seen(ALL_CODES, ALL_OFFSETS, 3, n_labels=3, min_count=min_count)
    assert [list(found) for found in on_workers(find)] == [list(expected)] * 3


@pytest.mark.parametrize("weighted", [False, True])
def test_rare_patterns_are_counted_on_all_workers(weighted):
    weights = TABLE["hour"].to_numpy(float) / 3

    def find(comm):
        rank = comm.rank
        own = weights[PARTS[rank].index] if weighted else None
        return rare_shares(CODES[rank], OFFSETS[rank], own, 4, n_labels=3, comm=comm)

    given = weights if weighted else None
    expected = rare_shares(ALL_CODES, ALL_OFFSETS, given, 4, n_labels=3)
    assert on_workers(find) == [expected] * 3


def test_balanced_classes_are_counted_on_all_workers():
    labels = Labels(np.array(["idle", "on", "wash"]))
    found = on_workers(lambda comm: class_weights("balanced", labels, CODES[comm.rank], comm))
    expected = class_weights("balanced", labels, ALL_CODES)
    assert [weights.tolist() for weights in found] == [expected.tolist()] * 3


def test_weights_differ_within_sequences_if_they_do_on_any_worker():
    sequences = [encode(part[["heat"]], part["day"]) for part in PARTS]

    def read(comm):
        weights = np.zeros(len(PARTS[comm.rank]))
        weights[-1] = comm.rank == 1
        return read_sample_weight(weights, sequences[comm.rank], comm)

    assert all(weight.by_sequence is None for weight in on_workers(read))
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        on_workers(
            lambda comm: read_sample_weight([0] * len(PARTS[comm.rank]), sequences[comm.rank], comm)
        )
