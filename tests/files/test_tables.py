"""CSV and Parquet files: tables with a group column."""

import csv as python_csv
import io
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import TreeCRF
from hedgerow.files import FileError, make_recipe, open_writer, read_file, stream_file
from reference.table_files import read_table, write_table

TABLE = pa.table(
    {
        "id": ["a", "a", "b", "c", "c", "c"],
        "x": [1.5, 2.0, None, 4.0, 5.0, 6.5],
        "n": [1, 2, 3, 4, 5, 6],
        "kind": ["u", "v", "", "u", "NA", "w"],
        "label": ["A", "B", "A", "B", "A", "B"],
    }
)


@pytest.fixture(params=["csv", "parquet", "feather", "jsonl"])
def path(request, tmp_path):
    path = tmp_path / f"table.{request.param}"
    write_table(TABLE, path)
    return path


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


def write(folder, text, name="t.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


CSV = "g,x,t,y\n1,2,a,A\n1,3,b,B\n2,4,c,A\n"
PIECES = st.text('ab,;"\n é', max_size=4)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), PIECES, st.floats(-9, 9)), min_size=1, max_size=12),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 5),
)
def test_rows_stay_as_they_are(tmp_path_factory, rows, delimiter, newline, n_positions):
    folder = tmp_path_factory.mktemp("csv")
    buffer = io.StringIO()
    writer = python_csv.writer(buffer, delimiter=delimiter, lineterminator=newline)
    writer.writerow(["g", "t", "x", "y"])
    group = 0
    for step, text, number in rows:
        group += step
        writer.writerow([group, text, number, "L"])
    path = write(folder, buffer.getvalue())
    recipe = make_recipe(path, group="g")
    whole = read_file(path, recipe)
    batches = list(stream_file(path, recipe, labels=True, n_positions=n_positions))
    parts = [frame.to_pydict() for batch in batches for frame in batch.X]
    assert parts == [frame.to_pydict() for frame in whole.X]
    assert {label for labels in whole.y for label in labels} == {"L"}
    texts = [value for frame in parts for value in frame["t"]]
    if recipe.kinds[1] == "text":
        assert texts == [text or None for _, text, _ in rows]
    out = folder / "out.csv"
    with open_writer(out, recipe) as writer:
        for batch in batches:
            writer.write(batch, {"a,b": [["x"] * len(x) for x in batch.X]})
    lines = buffer.getvalue().removesuffix(newline)
    if not any("\n" in text for _, text, _ in rows):
        expected = [f"{line}{delimiter}x" for line in lines.split(newline)]
        name = '"a,b"' if delimiter == "," else "a,b"
        expected[0] = expected[0][:-1] + name
        assert out.read_bytes().decode() == newline.join(expected) + newline


def test_what_columns_hold_is_kept_from_training(tmp_path):
    recipe = make_recipe(write(tmp_path, "g,n,b,t,y\n1,2,true,a,3\n1,,false,,4\n"), group="g")
    assert recipe.kinds == ("integer", "integer", "bool", "text", "integer")
    path = write(tmp_path, "y,t,g,other,b,n\n,7,1,q,,2.5\n", "new.csv")
    batch = read_file(path, recipe)
    assert batch.X[0].to_pydict() == {"n": [2.5], "b": [None], "t": ["7"]}
    assert batch.y == [[None]]


def test_other_separators_than_in_training(tmp_path):
    recipe = make_recipe(write(tmp_path, CSV), group="g")
    expected = read_file(write(tmp_path, CSV, "new.csv"), recipe)
    for delimiter in ";\t":
        batch = read_file(write(tmp_path, CSV.replace(",", delimiter), "new.csv"), recipe)
        assert batch.y == expected.y
        assert [x.to_pydict() for x in batch.X] == [x.to_pydict() for x in expected.X]


def test_labels_that_are_known(tmp_path):
    recipe = make_recipe(write(tmp_path, "g,n,y\n1,2,3\n"), group="g")
    path = write(tmp_path, "g,n,k\n1,2,?\n1,3,\n1,4,5\n", "new.csv")
    assert read_file(path, recipe, labels=False, known="k").known == [["?", None, "5"]]
    with pytest.raises(FileError, match="column 'n' cannot hold known labels: the model"):
        read_file(path, recipe, labels=False, known="n")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "line 1: the first line is blank; expected the names of the columns"),
        ("g,x,y\n", {}, "the file is empty: it has no sequence"),
        (
            CSV,
            {"group": None},
            "a table needs a group column, which contains the .* are 'g', 'x'",
        ),
        (CSV, {"group": "id"}, "there is no column 'id'; the columns are 'g', 'x', 't', 'y'"),
        (CSV, {"group": "y"}, "column 'y' is both the group and the label; say which column holds"),
        ("g,g,y\n1,1,A\n", {}, "two columns are named 'g'; rename one"),
        ("g,x,y\n1,2,A\n2,3,B\n1,4,A\n", {}, "group '1' of column 'g' occurs again in row 3; the"),
        ("g,x,y\n1,2,A\n,3,B\n", {}, "row 2 has no group in column 'g'; every row needs one"),
        ("g,x,y\n1,2,A\n\n2,B\n", {}, r"t.csv, line 4: Expected 3 columns, got 2: 2,B"),
        ('g,x,y\n1,"2\n3",A\n2,B\n', {}, "line 4: Expected 3 columns, got 2"),
        ("g,x,y\n1,2024-05-01,A\n", {}, r"column 'x' is of type date32\[day\]; expected numbers"),
        (b"g,x,y\n1,\xff,A\n", {}, "line 2: column 'x' is not valid UTF-8; save the file as"),
        (b"g,\xff,y\n1,2,A\n", {}, "line 1: .* is not valid UTF-8"),
        ('g,"x,y\n1,2,A\n', {}, "line 1: the column names cannot be read: unexpected end of data"),
        ("g,x,y\r1,2,A\r", {}, "line 1: lines end with a carriage return alone; save the file"),
        ("g,x,y\n1,2,A\r2,3,B\n", {}, "line 2: expected 1 row from here on, got 2; look for a"),
    ],
)
def test_what_is_no_table(tmp_path, text, options, message):
    path = write(tmp_path, text)
    with pytest.raises(FileError, match=message):
        read_file(path, make_recipe(path, **{"group": "g", **options}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("g,x,t,y\n1,2,a,A\n1,b,c,A\n", r"line 3: column 'x' cannot be read as double: .* 'b'"),
        ("g,t,y\n1,a,A\n", "column 'x', which the model was trained on, is missing; the columns"),
        (
            "x,t,y\n1,a,A\n",
            "column 'g', which contains the sequence ids, is missing; add it, with one "
            "value in all rows if they are one sequence; the columns are 'x', 't', 'y'",
        ),
        ('g,x,t,y\n1,2,a,A\n1,2,",A\n', "line 3: a quote is opened here and never closed"),
    ],
)
def test_a_table_unlike_that_of_training(tmp_path, text, message):
    recipe = make_recipe(write(tmp_path, CSV), group="g")
    with pytest.raises(FileError, match=message):
        list(stream_file(write(tmp_path, text, "new.csv"), recipe, labels=True))


def test_a_column_that_is_there_already(path):
    recipe = make_recipe(path, group="id")
    (batch, *_) = stream_file(path, recipe)
    for out in (path.with_name("out"), "-"):
        with (
            open_writer(out, recipe) as writer,
            pytest.raises(
                FileError, match="there is already a column 'x', so the output would have two"
            ) as caught,
        ):
            writer.write(batch, {"x": [[0] * len(x) for x in batch.X]})
        assert caught.value.path == str(path)  # where it is to be renamed


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
@pytest.mark.parametrize("name", ["id", "x", "kind", "label"])
def test_a_column_that_is_there_twice(tmp_path, suffix, name):
    path = tmp_path / f"table{suffix}"
    write_table(TABLE, path)
    recipe = make_recipe(path, group="id")
    twice = TABLE.append_column(name, TABLE[name])
    write_table(twice, path)
    with pytest.raises(FileError, match=f"two columns are named '{name}'; rename one") as caught:
        read_file(path, recipe)
    assert caught.value.path == str(path)
    with pytest.raises(FileError, match=f"two columns are named '{name}'; rename one"):
        read_file(path, recipe, labels=False, known=name)


def test_a_column_that_is_there_twice_and_not_used(path):
    recipe = make_recipe(path, group="id")
    twice = TABLE.append_column("label", TABLE["x"])
    write_table(twice, path)
    assert len(read_file(path, recipe, labels=False).X) == 3


@pytest.mark.parametrize("n_digits", [20, 400])
def test_strings_of_digits_are_no_numbers(tmp_path, n_digits):
    digits = "10" * (n_digits // 2)
    path = write(tmp_path, f"id\tresolved\tx\tlabel\na\t110\t2e30\tA\nb\t{digits}\t1\tB\n", "t.csv")
    message = (
        f"t.csv: column 'resolved' has a string of {n_digits} digits in row 2, 101010101010..., "
        "which is too long for a number. If a row holds a whole sequence, write one row per "
        "position; if the digits are an id, choose other columns as features (--features)"
    )
    with pytest.raises(FileError, match=re.escape(message)):
        make_recipe(path, group="id")
    assert make_recipe(path, group="id", features=["x"]).features == (2,)


def test_types_of_parquet(tmp_path):
    days = pa.array([1, 2], pa.date32())
    table = pa.table({"g": [0, 0], "x": pa.array(["a", "b"]).dictionary_encode(), "y": ["A", "B"]})
    path = tmp_path / "t.parquet"
    write_table(table, path)
    recipe = make_recipe(path, group="g")
    assert read_file(path, recipe).X[0].to_pydict() == {"x": ["a", "b"]}
    write_table(table.set_column(1, "x", [[1, 2]]), path)
    with pytest.raises(
        FileError, match="column 'x' is of type int64, but the model was trained on t"
    ):
        read_file(path, recipe)
    numbers = make_recipe(path, group="g")
    write_table(table.set_column(1, "x", days), path)
    with pytest.raises(
        FileError, match=r"column 'x' is of type date32.*trained on numbers; convert"
    ):
        read_file(path, numbers)
    with pytest.raises(
        FileError, match=r"column 'x' is of type date32\[day\]; expected numbers, bools"
    ):
        make_recipe(path, group="g")
    integers = make_recipe(path, group="x", label="g", features=["y"])
    write_table(table.set_column(0, "g", [["u", "v"]]), path)
    with pytest.raises(FileError, match="'g' does not hold labels of the kind used in training"):
        read_file(path, integers)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FileError, match="the Parquet file cannot be read: "):
        make_recipe(path, group="g")


def test_numbers_in_place_of_bools_stay_numbers(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"g": [0, 0], "x": [True, False], "y": ["A", "B"]})
    write_table(table, path)
    recipe = make_recipe(path, group="g")
    assert read_file(path, recipe).X[0].to_pydict() == {"x": [True, False]}
    write_table(table.set_column(1, "x", [[5, 0]]), path)
    assert read_file(path, recipe).X[0].to_pydict() == {"x": [5.0, 0.0]}


def test_groups_are_forgotten_in_a_long_stream(path, monkeypatch):
    monkeypatch.setattr("hedgerow.files.tables.MOST_REMEMBERED", 1)
    recipe = make_recipe(path, group="id")
    assert sum(batch.n_sequences for batch in stream_file(path, recipe, n_positions=1)) == 3


@pytest.mark.parametrize("groups", [[None, None, 1.0], [1.0, None, None], [float("nan"), 1.0, 1.0]])
def test_rows_without_a_group(tmp_path, groups):
    path = tmp_path / "t.parquet"
    write_table(pa.table({"g": groups, "x": [1, 2, 3], "y": ["A", "B", "A"]}), path)
    with pytest.raises(FileError, match=r"row \d has no group in column 'g'; every row needs one"):
        read_file(path, make_recipe(path, group="g"))


def test_a_column_whose_values_come_later(tmp_path):
    path, out = tmp_path / "table.parquet", tmp_path / "out.parquet"
    write_table(TABLE, path)
    recipe = make_recipe(path, group="id")
    with open_writer(out, recipe) as writer:
        for n, batch in enumerate(stream_file(path, recipe, labels=True, n_positions=1)):
            more = [[n or None] * len(labels) for labels in batch.y]
            writer.write(batch, {"best": [[n] * len(labels) for labels in batch.y], "more": more})
    assert read_table(out)["more"].to_pylist() == [None, None, 1, 2, 2, 2]
