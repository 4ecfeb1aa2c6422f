"""Commands on tables: trees by default, columns with names, numbers that stay numbers."""

import json

import numpy as np
import pyarrow as pa
import pytest

import hedgerow
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
    message = complaint(capsys, "tag", model, table, "-o", tmp_path / f"wrong{other.suffix}")
    kind, named = table.suffix[1:], other.suffix[1:]
    assert message == (
        f"{table} holds {kind} and its rows are written as such, but "
        f"{tmp_path / f'wrong{other.suffix}'} is named as {named}; name it otherwise"
    )


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
    assert "names the column 'sped', which X does not have; did you mean speed?" in message


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
    assert message == "--known: the model has no label '7'"
    assert not out.exists()


def test_tables_are_nothing_for_a_model_of_columns(table, chunk_model, capsys):
    message = complaint(capsys, "tag", chunk_model, table)
    kind = table.suffix[1:]
    assert message == (f"{table}: this is a {kind} table, but the model was trained on conll files")
