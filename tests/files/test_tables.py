"""CSV and Parquet files: tables with a group column."""

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from hedgerow import TreeCRF
from hedgerow.files import FileError, make_recipe, open_writer, read_file, stream_file

TABLE = pa.table(
    {
        "id": ["a", "a", "b", "c", "c", "c"],
        "x": [1.5, 2.0, None, 4.0, 5.0, 6.5],
        "n": [1, 2, 3, 4, 5, 6],
        "kind": ["u", "v", "", "u", "NA", "w"],
        "label": ["A", "B", "A", "B", "A", "B"],
    }
)


@pytest.fixture(params=["csv", "parquet"])
def path(request, tmp_path):
    path = tmp_path / f"table.{request.param}"
    (csv.write_csv if request.param == "csv" else parquet.write_table)(TABLE, path)
    return path


def read_table(path):
    return csv.read_csv(path) if path.suffix == ".csv" else parquet.read_table(path)


@pytest.mark.parametrize("n_positions", [1, 2, 3, 100])
def test_tables_come_back_with_further_columns(path, n_positions):
    recipe = make_recipe(path, group="id")
    out = path.with_name(f"out{path.suffix}")
    with open_writer(out, recipe) as writer:
        for batch in stream_file(path, recipe, labels=True, n_positions=n_positions):
            p = [[0.5] * len(labels) for labels in batch.y]
            writer.write(batch, {"tag": batch.y, "p": p})
    written = read_table(out)
    assert written.select(TABLE.column_names).equals(read_table(path))
    assert written["tag"].to_pylist() == TABLE["label"].to_pylist()
    assert written["p"].to_pylist() == [0.5] * 6


def test_a_model_learns_from_a_table(path):
    recipe = make_recipe(path, group="id", label="label")
    batch = read_file(path, recipe)
    assert batch.y == [["A", "B"], ["A"], ["B", "A", "B"]]
    assert [frame.to_pydict() for frame in batch.X][1] == {"x": [None], "n": [3.0], "kind": [None]}
    crf = TreeCRF(n_rounds=2).fit(batch.X, batch.y)
    assert [len(labels) for labels in crf.predict(batch.X)] == [2, 1, 3]
    assert [len(labels) for labels in crf.predict(list(batch.X))] == [2, 1, 3]


def test_a_group_that_comes_again(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("g,x,y\n1,2,A\n2,3,B\n1,4,A\n")
    with pytest.raises(FileError, match=r"group '1' of column 'g' comes again in row 3"):
        read_file(path, make_recipe(path, group="g"))
