"""Errors name a file as it was given; only ``-`` is called standard input."""

import gzip

import pytest

from hedgerow.cli import main
from reference.command_line import complaint, give, run, train
from reference.table_files import parquet_bytes

TRAINING = "g,x,w,y\n" + "".join(
    f"{row // 3},{row % 5},{'ab'[row % 2]},{'AB'[row % 2]}\n" for row in range(30)
)
COMMANDS = {
    "tag": ("tag", "{model}", "{file}"),
    "eval": ("eval", "{model}", "{file}"),
    "report": ("report", "{model}", "{file}", "-o", "{page}"),
    "inspect": ("inspect", "{model}", "{file}", "--sequence", "0"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    file = tmp_path_factory.mktemp("files") / "training.csv"
    file.write_text(TRAINING)
    return train(file, file.with_name("model"), "--group", "g", "--set", "n_rounds=1")


@pytest.mark.parametrize("from_input", [False, True], ids=["by name", "-"])
@pytest.mark.parametrize(
    ("data", "commands", "message"),
    [
        (b"g,x,x,w,y\n1,2,3,a,A\n", [*COMMANDS], "FILE: two columns are named 'x'; rename one"),
        (b"g,g,x,w,y\n1,1,3,a,A\n", [*COMMANDS], "FILE: two columns are named 'g'; rename one"),
        (b"g,x,w,y,y\n1,2,a,A,A\n", ["eval"], "FILE: two columns are named 'y'; rename one"),
        (
            parquet_bytes(["g", "x", "x", "w", "y"], [[1], [2.0], [3.0], ["a"], ["A"]]),
            [*COMMANDS],
            "FILE: two columns are named 'x'; rename one",
        ),
        (b"g,x,w,predicted\n1,2,a,A\n", ["tag"], "FILE: there is already a column 'predict"),
        (
            parquet_bytes(["g", "x", "w", "predicted"], [[1], [2.0], ["a"], ["A"]]),
            ["tag"],
            "FILE: there is already a column 'predicted', so the output would have two",
        ),
        (b"g,x,w,y\n", ["tag"], "FILE: the table has no rows to label"),
        (b"g,x,w,y\n", ["eval"], "FILE has no labels to compare with"),
        (b"", ["report"], "FILE: the file is empty: it has no sequence"),
        (b"g,x,w,y\n", ["inspect"], "--sequence is 0, but FILE has 0 sequences"),
        (b"g,x,w,y\n1,inf,a,A\n", [*COMMANDS], "FILE: X"),
        (b"g,w,y\n1,a,A\n", [*COMMANDS], "FILE: column 'x', which the model was trained on,"),
        (b"g,x,w,y\n1,2,\xff,A\n", [*COMMANDS], "FILE, line 2: column 'w' is not valid UTF-8"),
        (gzip.compress(TRAINING.encode())[:-9], [*COMMANDS], "FILE: the gzipped data are damaged"),
        (b"PAR1 and then nothing", [*COMMANDS], "FILE: the Parquet file cannot be read: "),
    ],
)
def test_complaints_name_the_file(
    data, commands, message, from_input, model, tmp_path, monkeypatch, capsys
):
    file = tmp_path / "given"
    file.write_bytes(data)
    for command in commands:
        give(monkeypatch, data if from_input else b"nothing of this is read")
        names = {"model": model, "page": tmp_path / "page"}
        names["file"] = "-" if from_input else file
        arguments = [part.format(**names) for part in COMMANDS[command]]
        expected = message.replace("FILE", "standard input" if from_input else str(file))
        assert complaint(capsys, *arguments).startswith(expected)


def test_categories_of_another_kind(tmp_path, capsys):
    file, model, out = (tmp_path / name for name in ("file.parquet", "model", "out.parquet"))
    codes = [str(row % 2) for row in range(30)]
    y = [f"L{code}" for code in codes]
    file.write_bytes(parquet_bytes(["g", "w", "y"], [[1] * 30, codes, y]))
    train(file, model, "--group", "g", "--set", "n_rounds=1")
    assert "all values of column 'w' look like numbers" in capsys.readouterr().err
    run(capsys, "tag", model, file, "-o", out)
    floats = [f"{code}.0" for code in codes]
    file.write_bytes(parquet_bytes(["g", "w", "y"], [[1] * 30, floats, y]))
    assert main(["tag", str(model), str(file), "-o", str(out)]) == 0
    assert capsys.readouterr().err == (
        "hedgerow: warning: column 'w' has only categories that did not occur in training, such "
        "as '0.0', so all of them are treated as missing; the model was fitted on '0', '1'; use "
        "the same values as in training\n"
    )


def test_positions_of_standard_input(model, monkeypatch, capsys):
    give(monkeypatch, b"g,x,w,y\n1,2,a,A\n")
    message = complaint(capsys, "inspect", model, "-", "--sequence", 0, "--position", 1)
    assert message.startswith("--position is 1, but sequence 0 of standard input has 1 position")


def test_the_format_of_standard_input(model, tmp_path, monkeypatch, capsys):
    give(monkeypatch, b"g,x,w,y\n1,2,a,A\n")
    message = complaint(capsys, "tag", model, "-", "-o", tmp_path / "out.parquet")
    assert "would hold csv, as standard input does, but its name ends in .parquet;" in message


def test_figures_of_standard_input(model, monkeypatch, capsys):
    give(monkeypatch, b"g,x,w,y\n1,2,a,A\n")
    assert run(capsys, "eval", model, "-").startswith("standard input: 1 sequence, 1 position\n")


def test_standard_input_beside_a_file_of_that_name(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_bytes(b"PAR1 and then nothing")
    give(monkeypatch, parquet_bytes(["g", "x", "w", "y"], [[1], [2.0], ["a"], ["A"]]))
    assert run(capsys, "eval", model, "-").startswith("standard input: 1 sequence, 1 position\n")


def test_training_names_its_files(tmp_path, monkeypatch, capsys):
    file, other = tmp_path / "file.csv", tmp_path / "other.csv"
    file.write_text(TRAINING)
    other.write_text("g,x,w,y\n1,2,a,A\n1,2,a,C\n")
    options = ["-m", tmp_path / "model", "--group", "g", "--set", "n_rounds=1"]

    def warnings_and_names(learn, dev):
        given = file if learn == "-" else other
        give(monkeypatch, given.read_bytes() if "-" in (learn, dev) else b"")
        assert main(list(map(str, ["train", learn, "--dev", dev, *options]))) == 0
        out, err = capsys.readouterr()
        warning = next(line for line in err.splitlines() if "warning: " in line)
        return warning, out.splitlines()[0], out.splitlines()[3]

    for learn, dev in ((file, other), ("-", other), (file, "-")):
        names = ["standard input" if path == "-" else str(path) for path in (learn, dev)]
        warning, first, fourth = warnings_and_names(learn, dev)
        text = f"hedgerow: warning: {names[1]} has labels that did not occur in training: 'C', at "
        assert warning.startswith(text)
        assert first.startswith(f"{names[0]}: 10 sequences")
        assert fourth.startswith(f"{names[1]}: accuracy")
    give(monkeypatch, b"g,x,w,y\n1,inf,a,A\n")
    message = complaint(capsys, "train", file, "--dev", "-", *options, "--quiet")
    assert message.startswith("standard input: X")
    message = complaint(capsys, "train", "-", "--template", "-", "-m", tmp_path / "model")
    assert message == "only one of TRAIN, --dev and --template can be standard input"
