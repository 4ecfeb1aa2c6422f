"""hedgerow queries: tables of facts become a file of attributes."""

import json

import pandas as pd
import pytest

from hedgerow import load
from hedgerow.files import make_recipe, read_file
from hedgerow.files.facts import read_facts
from hedgerow.relational import Atoms, RelationalFeatures
from reference.command_line import complaint, run

EVENTS = pd.DataFrame(
    {
        "day": ["1", "1", "2", "2"],
        "file": ["a:b", "a:b", "c\\", None],
        "state": ["x", "y", "x", None],
    }
)
FILES = pd.DataFrame({"name": ["a:b", "c\\"], "ending": ["007", "7"]})
SCHEMA = {
    "events": "events.csv",
    "tables": {"ending": "files.parquet"},
    "sequence": "day",
    "label": "state",
    "modes": ["file(+t,+-f)", "file(+t,#f)", "ending(+f,#e)"],
    "window": 1,
}


@pytest.fixture
def schema(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    EVENTS.to_csv("events.csv", index=False)
    FILES.to_parquet("files.parquet")
    return write(SCHEMA)


def write(schema):
    with open("schema.json", "w") as file:
        json.dump(schema, file)
    return "schema.json"


def test_attributes(schema, capsys):
    printed = run(capsys, "queries", schema, "-o", "out.crfsuite", "--save", "queries.json")
    X = Atoms.from_tables(EVENTS.drop(columns="state"), {"ending": FILES}, sequence="day")
    features = RelationalFeatures(SCHEMA["modes"], window=1)
    expected = features.fit_transform(X)
    assert printed.splitlines() == [
        f"out.crfsuite: {X}",
        f"queries.json: {features.n_queries_} queries",
    ]
    batch = read_file("out.crfsuite", make_recipe("out.crfsuite"))
    assert [[tuple(row) for row in x] for x in batch.X] == list(expected)
    assert batch.y == [["x", "y"], ["x", None]]
    run(capsys, "queries", schema, "-o", "again.crfsuite", "--load", "queries.json")
    with open("out.crfsuite") as one, open("again.crfsuite") as two:
        assert one.read() == two.read()


def test_events_alone_without_labels_and_facts(schema, capsys):
    pd.DataFrame({"w": ["a", None]}).to_csv("events.csv", index=False)
    run(capsys, "queries", write({"events": "events.csv"}), "-o", "out.crfsuite")
    batch = read_file("out.crfsuite", make_recipe("out.crfsuite"))
    assert [list(map(tuple, x)) for x in batch.X] == [[("w=a",), ("(none)",)]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"evnts": 3}, "schema.json: a schema has no key 'evnts'; did you mean events?"),
        ({"events": 3}, 'schema.json: expected {"events": "FILE.csv", ...}'),
        ({"tables": [1]}, 'schema.json: expected "tables": {"PREDICATE": "FILE.csv", ...}'),
        ({"label": "stat"}, "events.csv: there is no column 'stat' of labels; did you mean state?"),
        ({"modes": ["fil(+t,#f)"]}, "schema.json: mode 'fil(+t,#f)': no fact of X has the predi"),
        ({"events": "none.csv"}, "none.csv"),
    ],
)
def test_mistakes(schema, change, message, capsys):
    assert message in complaint(capsys, "queries", write(SCHEMA | change), "-o", "out.crfsuite")


def test_mistakes_in_files(schema, capsys):
    with open("bad.json", "w") as file:
        file.write("{")
    assert "bad.json: not a JSON file" in complaint(capsys, "queries", "bad.json", "-o", "out")
    assert "would be written over" in complaint(capsys, "queries", schema, "-o", schema)
    assert "not a file of relational" in complaint(
        capsys, "queries", schema, "-o", "out", "--load", "bad.json"
    )
    with open("bad.csv", "w") as file:
        file.write("a,b\n1\n")
    bad = write({"events": "bad.csv"})
    assert "bad.csv: CSV parse error" in complaint(capsys, "queries", bad, "-o", "out")
    pd.DataFrame({"w": ["a\tb"]}).to_csv("events.csv", index=False)
    tab = write({"events": "events.csv"})
    assert "contains a tab or a line break" in complaint(capsys, "queries", tab, "-o", "out")


@pytest.mark.parametrize("model", ["linear", "trees"])
def test_training_on_facts(schema, model, capsys):
    options = ["-m", "m.hedgerow", "--model", model, "--quiet"]
    run(capsys, "train", schema, *options, "--dev", schema)
    crf = load("m.hedgerow")
    assert crf.queries.get_params()["window"] == 1
    X, _ = read_facts(schema, SCHEMA)
    labels = [label for part in crf.predict(X) for label in part]
    written = run(capsys, "tag", "m.hedgerow", schema).split("\n")
    assert [line for line in written if line] == labels
    assert "accuracy" in run(capsys, "eval", "m.hedgerow", schema)
    assert "facts" in run(capsys, "inspect", "m.hedgerow")
    run(capsys, "report", "m.hedgerow", schema, "-o", "page.html")
    EVENTS.drop(columns="state").to_csv("events.csv", index=False)
    write({name: value for name, value in SCHEMA.items() if name != "label"})
    run(capsys, "tag", "m.hedgerow", schema, "-o", "out.txt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "state"], "a schema defines the columns of its tables"),
        (["--set", "queries=3"], "the schema of the tables defines the queries"),
        (
            ["--template", "schema.json"],
            "a template is for CoNLL columns, but this is read as facts",
        ),
    ],
)
def test_mistakes_in_training(schema, options, message, capsys):
    assert message in complaint(capsys, "train", schema, "-m", "m.hedgerow", *options)


def test_facts_without_labels(schema, capsys):
    write({name: value for name, value in SCHEMA.items() if name != "label"})
    message = 'schema.json: the schema names no column of labels; add "label": "COLUMN"'
    assert message in complaint(capsys, "train", schema, "-m", "m.hedgerow")
    write(SCHEMA)
    run(capsys, "train", schema, "-m", "m.hedgerow", "--rounds", "2", "--quiet")
    message = "known labels are not supported for tables of facts"
    assert message in complaint(capsys, "tag", "m.hedgerow", schema, "--known", "state")
