"""The parts of workers and client, without a cluster."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hedgerow import TreeCRF
from hedgerow.comm import ALONE, ThreadComm
from hedgerow.dask.cluster import spread
from hedgerow.dask.collections import shuffle_frame
from hedgerow.dask.culprit import name_culprit
from hedgerow.dask.group_check import check_groups_apart
from hedgerow.dask.local_data import ColumnRoles, FileReader, TableReader
from hedgerow.dask.partitions import ParquetRows, Part, find_files, is_parquet
from hedgerow.dask.task import read_parts
from hedgerow.files import FileError, Recipe, make_recipe
from reference.daily_tables import daily_table

ROLES = ColumnRoles("day", "state", position="hour")


def read(*frames, roles=ROLES):
    parts = [Part(f"partition {number}", frame) for number, frame in enumerate(frames)]
    return TableReader(roles).read(parts)


def test_parts_are_spread_evenly_by_rows():
    sizes = {"a": 5, "b": 1, "c": 4, "d": 1}
    assert spread(sizes, ["w2", "w1"]) == {"w1": ["a", "d"], "w2": ["c", "b"]}
    assert spread({"a": 5}, ["w1", "w2"]) == {"w1": ["a"]}  # workers without data do not take part


def test_files_are_found_by_paths_folders_and_patterns(tmp_path):
    for name in ("b.parquet", "a.parquet", "c.txt"):
        (tmp_path / name).touch()
    a, b = (str(tmp_path / name) for name in ("a.parquet", "b.parquet"))
    assert find_files(str(tmp_path)) == find_files(tmp_path / "*.parquet") == [a, b]
    assert find_files([b, tmp_path]) == [b, a]
    with pytest.raises(FileNotFoundError, match=r"there is no Parquet file .*x\*'; expected the"):
        find_files([a, str(tmp_path / "x*")])
    with pytest.raises(FileNotFoundError, match="there is no Parquet file"):
        find_files(str(tmp_path / "z.parquet"))


def test_paths_are_told_from_data():
    assert is_parquet("a.parquet")
    assert is_parquet(["a.parquet"])
    assert not any(map(is_parquet, ([], [["a"]], np.zeros((2, 2)))))


def test_rows_are_sorted_and_columns_that_are_no_features_taken_out(tmp_path):
    table = daily_table(6)
    shuffled = table.sample(frac=1, random_state=0)
    expected = table.sort_values(["day", "hour"])
    raw = read(shuffled.set_index("day", drop=False)).raw
    assert raw.X.sequences.schema.names == ("heat", "noise", "weather")
    assert raw.X.sequences.ids == [f"d{day}" for day in range(6)]
    assert raw.y.tolist() == expected["state"].tolist()
    path = str(tmp_path / "all.parquet")
    shuffled.to_parquet(path)  # with its index, which is no feature
    weighted = ColumnRoles("day", "state", "heat", "hour", "noise")
    from_file = TableReader(weighted).read([Part(path, ParquetRows(path))]).raw
    assert from_file.sample_weight.tolist() == expected["heat"].tolist()
    assert from_file.parents.tolist() == expected["noise"].tolist()
    assert from_file.X.sequences.schema.names == ("weather",)


@pytest.mark.parametrize("to_frame", [lambda table: table, pa.Table.from_pandas])
def test_partitions_are_joined_whatever_their_dtypes(to_frame):
    table = daily_table(6)
    table["weather"] = table["weather"].astype("category")
    first, second = table[table["day"] < "d3"].copy(), table[table["day"] >= "d3"].copy()
    first["weather"] = first["weather"].cat.remove_unused_categories()
    first["noise"] = first["noise"].round().astype(np.int64)
    joined = read(to_frame(first), to_frame(second[:0]), to_frame(second))
    assert joined.raw.X.sequences.n_positions == len(joined.raw.y) == len(table)
    assert len(joined.portions) == 2


def test_files_are_read_by_a_recipe(tmp_path):
    table = daily_table(6)
    paths = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    table[table["day"] < "d3"].to_parquet(paths[0], index=False)
    table[table["day"] >= "d3"].to_parquet(paths[1], index=False)
    recipe = make_recipe(paths[0], label="state", group="day", features=["heat"], heads="hour")
    data = FileReader(recipe).read([Part(path, ParquetRows(path)) for path in paths])
    assert data.group_column == "day"
    assert [portion.groups for portion in data.portions] == [["d0", "d1", "d2"], ["d3", "d4", "d5"]]
    last = data.portions[1].raw(1, 2)
    assert last.y == data.raw.y[4:5]
    assert last.parents == data.raw.parents[4:5]
    heat = table.loc[table["day"] == "d4", "heat"]
    assert last.X.sequences.dense.ravel().tolist() == heat.tolist()


def test_a_group_in_two_partitions_is_named():
    table = daily_table(6)
    torn = table["day"].eq("d2") & table["hour"].gt(0)
    message = (
        "group 'd2' of column 'day' is in two partitions, partition 0 and partition 1; the rows of "
        "a group must be in one: write the data that way, or in Python call fit with shuffle=True"
    )
    with pytest.raises(ValueError, match=message):
        check_groups_apart(read(table[~torn], table[torn]), ALONE)
    check_groups_apart(read(table), ALONE)

    def check(comm):
        part = Part(f"partition {comm.rank}", table[torn] if comm.rank else table[~torn])
        check_groups_apart(TableReader(ROLES).read([part]), comm)

    with pytest.raises(ValueError, match=message):
        ThreadComm.run(2, check)


def test_a_group_whose_rows_are_apart_in_a_partition_is_named():
    table = daily_table(3)
    roles = ColumnRoles("day", "state")
    with pytest.raises(ValueError, match=r"partition 0: group 'd0' occurs again at row"):
        read(pd.concat([table, table[:1]]), roles=roles)


def test_columns_that_are_not_there_are_named():
    table = daily_table(2)
    with pytest.raises(ValueError, match=r"partition 0 has no column 'y', which y names; its colu"):
        read(table, roles=ColumnRoles("day", "y"))
    with pytest.raises(ValueError, match=r"has no column 'w', which sample_weight names"):
        read(table, roles=ColumnRoles("day", "state", "w"))
    with pytest.raises(
        ValueError, match="a column is used twice: group_column='day', y='day'; pass"
    ):
        read(table, roles=ColumnRoles("day", "day"))
    with pytest.raises(ValueError, match=r"rows of a group are sorted by: position_col"):
        shuffle_frame(table, ColumnRoles("day", "state"))


def test_the_group_that_an_error_is_about_is_named():
    table = daily_table(9)
    table.loc[table["day"].eq("d5").idxmax(), "heat"] = np.inf
    first = table["day"] < "d3"
    data = read(table[first], table[~first])
    crf = TreeCRF(group_column="day")
    with pytest.raises(ValueError, match="X has inf at row") as caught:
        crf.read_labelled(data.raw)
    error = name_culprit(caught.value, data.portions, crf.read_labelled)
    assert isinstance(error, ValueError)
    assert str(error).startswith("partition 1, group 'd5': X has inf at row 0, column 'heat';")


def test_an_error_that_is_about_no_single_group_stays_as_it_is():
    data = read(daily_table(3))

    def read_together(raw):
        if len(raw.X) > 1:
            raise ValueError("too much")

    error = name_culprit(ValueError("too much"), data.portions, read_together)
    assert str(error) == "partition 0: too much"
    elsewhere = ValueError("of another worker")
    assert name_culprit(elsewhere, data.portions, lambda raw: None) is elsewhere


def test_errors_can_be_sent_from_a_worker_to_the_client(tmp_path):
    path = str(tmp_path / "no.parquet")
    (tmp_path / "no.parquet").write_bytes(b"PAR1")
    recipe = Recipe("parquet", ("day", "heat", "state"), 2, 0, (1,), ("text", "number", "text"))
    with pytest.raises(FileError, match="the Parquet file cannot be read") as caught:
        read_parts(FileReader(recipe), [path], [ParquetRows(path)], True)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(FileNotFoundError, match=r"no\.txt"):
        read_parts(FileReader(recipe), ["no.txt"], [ParquetRows("no.txt")], True)

    class LocalError(TypeError):
        """Not known in another process."""

    class Broken:
        def read(self, parts):
            raise LocalError("of this process alone")

    with pytest.raises(TypeError, match="of this process alone") as caught:
        read_parts(Broken(), ["a"], [None], True)
    assert type(caught.value) is TypeError
