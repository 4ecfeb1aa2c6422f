"""Several Parquet files as one data set."""

import gzip

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hedgerow.encode import encode
from hedgerow.files import FileError, count_rows, make_recipe, read_file, read_parquet_files
from reference.daily_tables import daily_table

TABLE = daily_table(9)


@pytest.fixture
def files(tmp_path):
    """All rows in one file, and in three."""
    for name, days in {"all": "012345678", "a": "01", "b": "234", "c": "5678"}.items():
        rows = TABLE[TABLE["day"].str[1].isin(list(days))]
        parquet.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / name)
    return tmp_path


def test_files_are_one_data_set(files):
    recipe = make_recipe(files / "all", label="state", group="day")
    read = []
    found = read_parquet_files([files / name for name in "abc"], recipe, read.append)
    whole = read_file(files / "all", recipe)
    assert found.y == whole.y
    assert found.names == [f"d{day}" for day in range(9)]
    assert (found.n_sequences, found.n_positions) == (9, len(TABLE))
    assert sum(read) == sum(count_rows(files / name) for name in "abc") == len(TABLE)
    mine, theirs = encode(found.X), encode(whole.X)
    assert mine.offsets.tolist() == theirs.offsets.tolist()
    np.testing.assert_array_equal(mine.dense, theirs.dense)
    assert mine.categorical[0].codes.tolist() == theirs.categorical[0].codes.tolist()


def test_a_gzipped_file(files):
    (files / "all.gz").write_bytes(gzip.compress((files / "all").read_bytes()))
    recipe = make_recipe(files / "all.gz", label="state", group="day")
    assert count_rows(files / "all.gz") == len(TABLE)
    found = read_parquet_files([files / "all.gz"], recipe)
    assert found.y == read_file(files / "all", recipe).y


def test_parents_come_along(files):
    recipe = make_recipe(files / "all", label="state", group="day", heads="hour")
    found = read_parquet_files([files / name for name in "abc"], recipe)
    assert found.parents == read_file(files / "all", recipe).parents


def test_what_is_refused(files, tmp_path):
    recipe = make_recipe(files / "all", label="state", group="day")
    message = f"b: group 'd2' of column 'day' is in {files / 'all'} too; the rows of a group must"
    with pytest.raises(FileError, match=message):
        read_parquet_files([files / "all", files / "b"], recipe)
    parquet.write_table(parquet.read_table(files / "a")[:0], tmp_path / "empty")
    with pytest.raises(FileError, match="the file is empty: it has no sequence"):
        read_parquet_files([tmp_path / "empty"], recipe)
    (tmp_path / "no").write_bytes(b"PAR1")
    with pytest.raises(FileError, match="the Parquet file cannot be read"):
        count_rows(tmp_path / "no")
