"""JSON lines: objects that are rows, whatever their keys, and lines that are none."""

import json

import pytest

from hedgerow.files import FileError, make_recipe, open_writer, read_file, stream_file

ROWS = [
    {"g": 1, "x": 2, "y": "A", "on": True, "t": "ä"},
    {"g": 1, "y": "B", "t": None, "x": 2.5},
    {"g": "b", "x": None, "y": "A", "more": [1, {}], "on": False},
]


def write(folder, rows, name="t.jsonl"):
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return path


def test_rows_are_objects(tmp_path):
    path = write(tmp_path, [*ROWS[:1], "", *ROWS[1:], "  "])
    recipe = make_recipe(path, group="g", label="y", features=["x", "on", "t"])
    assert (recipe.format, recipe.columns) == ("jsonl", ("g", "x", "y", "on", "t", "more"))
    assert recipe.kinds == ("number", "number", "text", "bool", "text", "number")
    batch = read_file(path, recipe)
    assert batch.y == [["A", "B"], ["A"]]
    found = [frame.to_pydict() for frame in batch.X]
    assert found[0] == {"x": [2.0, 2.5], "on": [True, None], "t": ["ä", None]}
    assert found[1] == {"x": [None], "on": [False], "t": [None]}


@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_rows_stay_as_they_are(tmp_path, monkeypatch, block):
    monkeypatch.setattr("hedgerow.files.json_tables.BLOCK", block)
    path = write(tmp_path, ['{"g":1,  "x": 1e0, "y": "é" }', '\ufeff{"g":2,"y":"B"}'[1:]])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().rstrip(b"\n"))
    recipe = make_recipe(path, group="g", features=["x"])
    out = tmp_path / "out.jsonl"
    with open_writer(out, recipe) as writer:
        for batch in stream_file(path, recipe, labels=True):
            writer.write(batch, {"tag": batch.y, "p": [[0.5] for _ in batch.y]})
    assert out.read_text(encoding="utf8").splitlines() == [
        '{"g":1,  "x": 1e0, "y": "é", "tag": "é", "p": 0.5}',
        '{"g":2,"y":"B", "tag": "B", "p": 0.5}',
    ]


def test_labels_that_are_known(tmp_path):
    path = write(tmp_path, ROWS)
    recipe = make_recipe(path, group="g", label="y", features=["x"])
    known = read_file(path, recipe, labels=False, known="t").known
    assert known == [["ä", None], [None]]


def test_the_first_line_tells(tmp_path):
    path = write(tmp_path, ROWS, "rows")
    recipe = make_recipe(path, group="g", label="y", features=["x"])
    assert recipe.format == "jsonl"
    assert make_recipe(write(tmp_path, ["{ B", "} I"], "columns")).format == "conll"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "t.jsonl: the file is empty: it has no line with an object"),
        ([ROWS[0], "{"], r"t.jsonl, line 2: expected a JSON object, \{...\}: Expecting prop"),
        ([ROWS[0], "[1]"], r"t.jsonl, line 2: expected a JSON object, \{...\}, got \[1\]"),
        (
            [{"g": 1, "x": "b", "y": "A"}, {}, {"g": 2, "x": 5, "y": "A"}],
            "line 3: column 'x' holds 5, but an earlier row has \"b\"; expected values of one type",
        ),
        (
            [{"g": 1, "x": 10**30, "y": "A"}],
            "line 1: column 'x' holds 1000.*; expected a number of at most 18 digits; if the",
        ),
        (
            [{"g": 1, "tokens": ["a", "b"], "y": "A"}],
            r"column 'tokens' is of type list<.*: if a row holds a whole sequence, write one row",
        ),
    ],
)
def test_what_is_no_table(tmp_path, rows, message):
    with pytest.raises(FileError, match=message):
        make_recipe(write(tmp_path, rows), group="g")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"g": 1, "x": "b"}], "new.jsonl, line 1: column 'x' holds \"b\"; expected double"),
        ([{"g": 1}], "column 'x', which the model was trained on, is missing; the columns are"),
        ([{"x": 1}, {"g": 2}], "row 1 has no group in column 'g'; every row needs one"),
    ],
)
def test_a_table_unlike_that_of_training(tmp_path, rows, message):
    recipe = make_recipe(write(tmp_path, ROWS), group="g", label="y", features=["x"])
    with pytest.raises(FileError, match=message):
        list(stream_file(write(tmp_path, rows, "new.jsonl"), recipe))


def test_nothing_but_blank_lines(tmp_path):
    recipe = make_recipe(write(tmp_path, ROWS), group="g", label="y", features=["x"])
    assert list(stream_file(write(tmp_path, ["", ""], "new.jsonl"), recipe)) == []
