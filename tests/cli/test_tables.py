"""Commands on tables: trees by default, named columns, numeric labels."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest

import hedgerow
from hedgerow.cli import main
from hedgerow.cli.features import describe_features
from hedgerow.files import Recipe
from reference.command_line import complaint, run, train
from reference.table_files import read_table, write_table


def make_table():
    """Days of readings; what was done depends on them."""
    rng = np.random.default_rng(0)
    day = np.repeat([f"day {number}" for number in range(12)], 10)
    speed = rng.normal(size=len(day)).round(3)
    place = np.where(rng.random(len(day)) < 0.5, "in", "out")
    state = np.where(speed > 0, np.where(place == "in", 2, 1), 0)
    return pa.table({"day": day, "speed": speed, "place": place, "state": state})


@pytest.fixture(scope="module", params=["csv", "parquet"])
def table(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / f"days.{request.param}"
    write_table(make_table(), path)
    return path


@pytest.fixture(scope="module")
def model(table):
    settings = ["--set", "n_rounds=10", "--set", "min_child_weight=0"]
    columns = ["--group", "day", "--label", "state"]
    return train(table, table.with_name("days.hedgerow"), *columns, *settings)


def test_trees_are_the_default(model, capsys):
    crf = hedgerow.load(model)
    assert isinstance(crf, hedgerow.TreeCRF)
    assert crf.classes_.tolist() == [0, 1, 2]
    assert crf.feature_names_in_.tolist() == ["speed", "place"]
    out = " ".join(run(capsys, "inspect", model).split())
    assert ", label column state, group column day, feature columns speed place " in out


def test_columns_are_added(table, model, tmp_path, capsys):
    out = tmp_path / f"labelled{table.suffix}"
    without_labels = tmp_path / f"days{table.suffix}"
    write_table(read_table(table).drop_columns(["state"]), without_labels)
    run(capsys, "tag", model, without_labels, "-o", out, "--all-marginals")
    found = read_table(out)
    assert found.column_names == [
        *("day", "speed", "place", "predicted", "probability", "p(0)", "p(1)", "p(2)")
    ]
    predicted = found["predicted"].to_pylist()
    assert np.mean(np.array(predicted) == make_table()["state"].to_numpy()) > 0.9
    shares = np.stack([found[f"p({label})"].to_numpy() for label in range(3)], axis=1)
    assert shares.sum(axis=1) == pytest.approx(1)
    chosen = shares[np.arange(len(shares)), predicted]
    assert found["probability"].to_numpy() == pytest.approx(chosen)


def test_k_best(table, model, tmp_path, capsys):
    out = tmp_path / f"labelled{table.suffix}"
    write_table(read_table(table).slice(0, 11), tmp_path / table.name)
    run(capsys, "tag", model, tmp_path / table.name, "-o", out, "--k-best", 4)
    found = read_table(out)
    assert found.column_names[-8:] == [
        f"{name}_{rank}" for rank in range(1, 5) for name in ("predicted", "probability")
    ]
    assert found["predicted_4"].to_pylist()[-1] is None  # a day of one row has three labellings
    shares = [found[f"probability_{rank}"].to_pylist() for rank in range(1, 5)]
    assert all(more >= less for more, less in zip(shares[0], shares[1], strict=True))


def test_known_labels_stay(table, model, tmp_path, capsys):
    hints = [2, None, None, None, 0, None, None, None, None, 1]
    known = read_table(table).slice(0, 10).append_column("hint", pa.array(hints, pa.int64()))
    file, out = tmp_path / f"known{table.suffix}", tmp_path / f"labelled{table.suffix}"
    write_table(known, file)
    run(capsys, "tag", model, file, "--known", "hint", "-o", out)
    predicted = read_table(out)["predicted"].to_pylist()
    assert [predicted[place] for place in (0, 4, 9)] == [2, 0, 1]


def test_scores(table, model, capsys):
    found = json.loads(run(capsys, "eval", model, table, "--json"))
    assert found["labels"] == ["0", "1", "2"]
    assert found["accuracy"] > 0.9
    assert found["chunks"] is None
    assert "true \\ predicted   0   1   2\n" in run(capsys, "eval", model, table)


def test_labels_of_another_kind_are_mistakes(table, model, tmp_path, capsys):
    other = read_table(table)
    states = pa.array([7, *other["state"].to_pylist()[1:]])
    file = tmp_path / table.name
    write_table(other.set_column(3, "state", states), file)
    found = json.loads(run(capsys, "eval", model, file, "--json"))
    assert found["n_unknown_labels"] == 1
    assert found["by_label"]["7"]["n_true"] == 1


def test_a_table_in_another_format(table, model, tmp_path, capsys):
    other = tmp_path / ("days.parquet" if table.suffix == ".csv" else "days.csv")
    write_table(make_table(), other)
    expected = json.loads(run(capsys, "eval", model, table, "--json"))
    assert json.loads(run(capsys, "eval", model, other, "--json")) == expected | {
        "file": str(other)
    }
    run(capsys, "tag", model, other, "-o", tmp_path / f"out{other.suffix}")
    run(capsys, "tag", model, table, "-o", tmp_path / f"out{table.suffix}")
    found, twin = (read_table(tmp_path / f"out{suffix}") for suffix in (".csv", ".parquet"))
    assert found["predicted"] == twin["predicted"]
    columns = ["--group", "day", "--label", "state", "--set", "n_rounds=2", "--quiet"]
    run(capsys, "train", table, "-m", tmp_path / "model", "--dev", other, *columns)
    if table.suffix == ".csv":
        message = complaint(capsys, "tag", model, table, "-o", tmp_path / "wrong.parquet")
        assert message == (
            f"{tmp_path / 'wrong.parquet'} would hold csv, as {table} does, but its name ends in "
            ".parquet; expected a name that ends in .csv, .tsv or .txt"
        )


def test_parquet_goes_out_as_csv(tmp_path, capsys, monkeypatch):
    file, place = tmp_path / "days.parquet", tmp_path / "model"
    write_table(make_table(), file)
    train(file, place, "--group", "day", "--label", "state", "--set", "n_rounds=2")
    for out in ("days.csv", "days.csv.gz"):
        run(capsys, "tag", place, file, "-o", tmp_path / out, "--marginals")
    run(capsys, "tag", place, file, "-o", tmp_path / "labelled.parquet", "--marginals")
    expected = read_table(tmp_path / "labelled.parquet").to_pydict()
    text = (tmp_path / "days.csv").read_bytes()
    assert text == gzip.decompress((tmp_path / "days.csv.gz").read_bytes())
    found = read_table(tmp_path / "days.csv").to_pydict()
    assert found["predicted"] == expected["predicted"]
    assert found["probability"] == pytest.approx(expected["probability"])
    assert list(found) == list(expected)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    message = complaint(capsys, "tag", place, file)
    assert message == (
        f"{file} holds parquet, which a terminal cannot show; write it to a file, -o "
        "labelled.parquet, or as text, -o labelled.csv"
    )


def test_lists_do_not_go_out_as_csv(tmp_path, capsys):
    file, place = tmp_path / "days.parquet", tmp_path / "model"
    write_table(make_table(), file)
    train(file, place, "--group", "day", "--label", "state", "--set", "n_rounds=1")
    table = make_table()
    write_table(table.append_column("all", pa.array([[1]] * len(table))), file)
    message = complaint(capsys, "tag", place, file, "-o", tmp_path / "out.csv")
    assert "column 'all' is of type list" in message
    assert "which CSV cannot hold; write to a file of the format that was read" in message


def test_labels_are_no_fractions(tmp_path, capsys):
    for name, labels in (("a.csv", [0.5, 1.0]), ("a.parquet", [0.5, 1.0])):
        file = tmp_path / name
        write_table(pa.table({"g": [1, 1], "x": [1.0, 2.0], "level": labels}), file)
        message = complaint(capsys, "train", file, "-m", tmp_path / "model", "--group", "g")
        assert message == (
            f"{file}: column 'level' holds the number 0.5, but labels are text or whole numbers; "
            "choose another column of labels, or turn numbers into classes first, such as low and "
            "high"
        )
    file = tmp_path / "whole.parquet"  # integers, one of which is missing
    write_table(pa.table({"g": [1, 1, 1], "x": [1.0, 2.0, 3.0], "level": [0.0, None, 1.0]}), file)
    place = train(file, tmp_path / "model", "--group", "g", "--set", "n_rounds=1")
    assert hedgerow.load(place).classes_.tolist() == [0, 1]


def test_features_are_listed_and_counters_warned_of(tmp_path, capsys):
    day = np.repeat([f"day {number}" for number in range(6)], 5)
    columns = {
        "day": day,
        "x": np.tile([0.5, 0.25, 0.5, 1.5, 2.5], 6),
        "time": np.arange(30) * 0.5,
        "device": np.char.add("d", np.repeat(np.arange(6), 5).astype(str)),
        "row": [f"r{number}" for number in range(30)],
        "on": [True, False] * 15,
        "state": ["a", "b", "b"] * 10,
    }
    file, place = tmp_path / "days.csv", tmp_path / "model"
    write_table(pa.table(columns), file)
    command = ["train", file, "-m", place, "--group", "day", "--set", "n_rounds=1"]
    assert main(list(map(str, command))) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1] == "5 features: x, time, device, row, on"
    warned = [line for line in err.splitlines() if "probably not a feature" in line]
    rest = ": probably not a feature, since new data will have other values; choose the feature "
    assert warned == [
        f"hedgerow: warning: column {looks}{rest}columns with --features"
        for looks in (
            "'time' rises from row to row in every sequence, like a time",
            "'device' has one value per sequence, different in each, like an id",
            "'row' is different in every row, like an id",
        )
    ]
    assert main(list(map(str, [*command, "--features", "x,time"]))) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1] == "2 features: x, time"
    assert "warning" not in err


def test_a_list_of_features_fits_a_line():
    names = tuple(f"feature_{number}" for number in range(200))
    recipe = Recipe("csv", (*names, "g", "y"), 201, 200, tuple(range(200)), ("number",) * 202)
    text = describe_features(recipe)
    assert text.startswith("200 features: feature_0, feature_1, ")
    assert text.endswith(", ...")
    assert 60 < len(text) <= 80
    assert describe_features(Recipe("crfsuite")) == "features: the attributes of the file"
    lines = ("# a comment", "", "U00:%x[0,0]", "B")
    template = Recipe("conll", ("0", "1"), 1, features=(0,), template=lines)
    assert describe_features(template) == "features: attributes from a template of 2 lines"
    assert describe_features(Recipe("csv", ("x", "g", "y"), 2, 1, (0,))) == "1 feature: x"


def test_a_linear_model_of_a_table(table, tmp_path, capsys):
    place = tmp_path / "model"
    options = ["--group", "day", "--label", "state", "--model", "linear", "--quiet"]
    run(capsys, "train", table, "-m", place, *options, "--features", "speed", "--dev", table)
    assert isinstance(hedgerow.load(place), hedgerow.LinearCRF)
    assert hedgerow.load(place).attributes_ == ["speed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "a table needs a group column"),
        (["--group", "dai"], "there is no column 'dai'; the columns are 'day', 'speed', 'place',"),
        (["--group", "day", "--label", "x"], "there is no column 'x'"),
        (["--group", "day", "--template", "t"], "a template is for CoNLL columns"),
    ],
)
def test_mistakes(options, message, table, tmp_path, capsys):
    assert message in complaint(capsys, "train", table, "-m", tmp_path / "model", *options)


def test_constraints_of_columns(table, tmp_path, capsys):
    place, columns = tmp_path / "model", ["--group", "day", "--label", "state", "--quiet"]
    options = [*columns, "--set", "n_rounds=2", "--set", "interaction_constraints=no_interactions"]
    run(
        capsys,
        "train",
        table,
        "-m",
        place,
        *options,
        "--set",
        "monotone_constraints={'speed': {2: 1}}",
    )
    assert hedgerow.load(place).monotone_constraints == {"speed": {2: 1}}
    assert hedgerow.load(place).interaction_constraints == "no_interactions"
    wrong = ["--set", 'monotone_constraints={"sped": {"2": 1}}']
    message = complaint(capsys, "train", table, "-m", place, *columns, *wrong)
    assert "names 'sped', which is not a feature of X; did you mean speed?" in message


def test_a_position_is_explained(table, model, capsys):
    out = run(capsys, "inspect", model, table, "--sequence", 1, "--label", 2, "--against", 0)
    assert out.startswith("position 0: 2 ")
    assert "speed" in out


def test_a_model_of_a_file_is_that_of_its_frame(table, model, tmp_path, capsys):
    frame = make_table()
    crf = hedgerow.TreeCRF(n_rounds=10, min_child_weight=0)
    crf.fit(frame.select(["speed", "place"]), frame["state"], groups=frame["day"])
    crf.save(tmp_path / "python")
    of_file = hedgerow.load(model)
    del of_file.recipe_
    of_file.save(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == (tmp_path / "python").read_bytes()
    out = tmp_path / f"out{table.suffix}"
    run(capsys, "tag", model, table, "-o", out, "--marginals")
    predicted = crf.predict(frame.select(["speed", "place"]), groups=frame["day"])
    assert (
        read_table(out)["predicted"].to_pylist() == np.concatenate([predicted], axis=None).tolist()
    )


def test_bools_are_labels(table, tmp_path, capsys):
    file, model = tmp_path / table.name, tmp_path / "model"
    frame = read_table(table)
    write_table(frame.set_column(3, "state", pa.array(frame["state"].to_numpy() > 0)), file)
    run(capsys, "train", file, "-m", model, "--group", "day", "--set", "n_rounds=2", "--quiet")
    out = tmp_path / f"out{table.suffix}"
    run(capsys, "tag", model, file, "-o", out, "--known", "state")
    assert read_table(out)["predicted"].equals(read_table(file)["state"])


def test_a_table_without_rows(table, model, tmp_path, capsys):
    file, out = tmp_path / table.name, tmp_path / f"out{table.suffix}"
    write_table(make_table().slice(0, 0), file)
    message = complaint(capsys, "tag", model, file, "-o", out)
    assert message == f"{file}: the table has no rows to label"
    assert not out.exists()


def test_a_mistake_half_way(table, model, tmp_path, capsys):
    file, out = tmp_path / table.name, tmp_path / f"out{table.suffix}"
    many = {"day": [f"lone {n}" for n in range(9000)], "speed": [1.0] * 9000}
    frame = pa.table({**many, "place": ["in"] * 9000, "state": [1] * 8999 + [7]})
    write_table(frame, file)
    message = complaint(capsys, "tag", model, file, "-o", out, "--known", "state")
    assert message.startswith("--known: the model has no label '7'; its labels are ")
    assert not out.exists()


def test_tables_are_nothing_for_a_model_of_columns(table, chunk_model, capsys):
    message = complaint(capsys, "tag", chunk_model, table)
    kind = table.suffix[1:]
    assert message == (
        f"{table}: this is a table ({kind}), but the model was trained on conll files"
    )


def test_several_parquet_files_are_one_data_set(tmp_path, capsys, monkeypatch):
    table = make_table()
    write_table(table, tmp_path / "all.parquet")
    write_table(table[:50], tmp_path / "a.parquet")
    write_table(table[50:], tmp_path / "b.parquet")
    settings = ["--group", "day", "--label", "state", "--set", "n_rounds=3"]
    alone = train(tmp_path / "all.parquet", tmp_path / "alone", *settings)
    monkeypatch.setattr("hedgerow.cli.training_files.MANY_ROWS", 100)
    both = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    capsys.readouterr()
    assert main(["train", *map(str, both), "-m", str(tmp_path / "model"), *settings]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("2 files: 12 sequences, 120 positions, 3 labels\n")
    assert "120/120" in said.err
    assert (tmp_path / "model").read_bytes() == alone.read_bytes()


def test_other_files_are_learnt_from_one_at_a_time(tmp_path, capsys):
    for name in ("a.csv", "b.parquet"):
        write_table(make_table(), tmp_path / name)
    a, b = tmp_path / "a.csv", tmp_path / "b.parquet"
    arguments = ["-m", tmp_path / "model", "--group", "day"]
    message = "is not a Parquet file; all files must be Parquet files for training on several files"
    assert f"{a} {message}" in complaint(capsys, "train", a, b, *arguments)
    assert f"{a} {message}" in complaint(capsys, "train", b, a, *arguments)
    assert f"{b} is given twice" in complaint(capsys, "train", b, b, *arguments)
