"""hedgerow tag: rows are written unchanged, with additional columns."""

import math
import os

import pytest

import hedgerow
from hedgerow.cli import main
from hedgerow.files import Recipe, read_file
from reference.command_line import SENTENCES, complaint, conll, give, labels, run


@pytest.fixture
def words(tmp_path):
    """A file without labels."""
    path = tmp_path / "words.txt"
    path.write_text(conll(SENTENCES[1:4], n_columns=2))
    return path


def ask(chunk_model, file, method, *arguments, **named):
    """The predictions of the library."""
    model = hedgerow.load(chunk_model)
    data = read_file(file, Recipe.from_json(model.recipe_), labels=False)
    return getattr(model, method)(data.X, *arguments, **named)


def cells(text):
    """Cells by row, of all sequences together."""
    return [line.split(" ") for line in text.splitlines() if line]


def test_labels_follow_the_row(chunk_model, words, capsys):
    out = run(capsys, "tag", chunk_model, words)
    expected = iter([label for y in ask(chunk_model, words, "predict") for label in y])
    rows = [line and f"{line} {next(expected)}" for line in words.read_text().split("\n")]
    assert out == "\n".join(rows)


def test_a_file_may_have_labels(chunk_model, chunks, capsys):
    out = run(capsys, "tag", chunk_model, chunks, "--jobs", 1)
    assert [row[:3] for row in cells(out)] == cells(chunks.read_text())
    assert labels(out) == labels(chunks.read_text())


def test_standard_input_and_output(chunk_model, words, tmp_path, capsys, monkeypatch):
    expected = run(capsys, "tag", chunk_model, words)
    for arguments in ([], ["-"]):
        give(monkeypatch, words.read_bytes())
        assert run(capsys, "tag", chunk_model, *arguments) == expected
    assert run(capsys, "tag", chunk_model, words, "-o", tmp_path / "out") == ""
    assert (tmp_path / "out").read_text() == expected


def test_nothing_in_nothing_out(chunk_model, tmp_path, capsys):
    (tmp_path / "empty").write_text("")
    assert run(capsys, "tag", chunk_model, tmp_path / "empty") == ""


def test_marginals(chunk_model, words, capsys):
    out = run(capsys, "tag", chunk_model, words, "--marginals")
    marginals = ask(chunk_model, words, "predict_proba")
    predicted = run(capsys, "tag", chunk_model, words, "--decode", "marginal")
    assert [float(row[3]) for row in cells(out)] == pytest.approx(marginals.max(axis=1), abs=1e-6)
    assert [row[2] for row in cells(predicted)] == [row[2] for row in cells(out)]


def test_all_marginals(chunk_model, words, capsys):
    out = run(capsys, "tag", chunk_model, words, "--all-marginals")
    marginals = ask(chunk_model, words, "predict_proba")
    names = hedgerow.load(chunk_model).classes_.tolist()
    for row, shares in zip(cells(out), marginals.tolist(), strict=True):
        assert row[4:] == [f"{name}/{p:.6f}" for name, p in zip(names, shares, strict=True)]
        assert f"{row[2]}/{row[3]}" in row[4:]


def test_k_best(chunk_model, tmp_path, capsys):
    file = tmp_path / "two.txt"
    file.write_text("Dogs NNS\nbark VBP\n\nDogs NNS\n")
    long, short = ask(chunk_model, file, "predict_k_best", 20)
    assert len(short) < 20
    rows = cells(run(capsys, "tag", chunk_model, file, "--k-best", 20))
    assert all(len(row) == 2 + 2 * 20 for row in rows)
    for rank, (best, log_prob) in enumerate(long):
        assert [row[2 + 2 * rank] for row in rows[:2]] == best.tolist()
        assert {row[3 + 2 * rank] for row in rows[:2]} == {f"{math.exp(log_prob):.6f}"}
    assert rows[2][2] == short[0][0][0]
    assert rows[2][-2:] == ["_", "0.000000"]


@pytest.mark.parametrize("unknown", ["_", "?"])
@pytest.mark.parametrize("option", [(), ("--k-best", 1), ("--marginals",)])
def test_known_labels_stay(chunk_model, tmp_path, capsys, unknown, option):
    file = tmp_path / "known.txt"
    file.write_text(f"Dogs NNS B-VP\nbark VBP {unknown}\n. . {unknown}\n")
    hints = [["B-VP", None, None]]
    (expected,) = ask(chunk_model, file, "predict", known=hints)
    assert expected.tolist() != ask(chunk_model, file, "predict")[0].tolist()
    out = run(capsys, "tag", chunk_model, file, "--known", 2, *option)
    assert [row[3] for row in cells(out)] == expected.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["no such file"], "no such file: No such file or directory"),
        (["--k-best", "2", "--marginals"], "argument --marginals: not allowed with"),
        (["--k-best", "2", "--decode", "viterbi"], "--k-best finds labellings as a whole"),
        (["--k-best", "0"], "--k-best is 0; expected a number from 1 to 1,000"),
        (["--k-best", "1001"], "--k-best is 1001; expected a number from 1 to 1,000"),
        (["--jobs", "0"], "n_jobs is 0; expected"),
        (["--known", "9"], "there is no column 9"),
        (["--known", "0"], "--known: the model has no label 'Dogs'"),
        (["-o", "."], "cannot save to '.': it is a folder; name a file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes(options, message, chunk_model, words, capsys):
    file = [] if options[0].startswith("no") else [words]
    assert message in complaint(capsys, "tag", chunk_model, *file, *options)


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there is no /dev/null here")
def test_labels_may_go_to_a_device(chunk_model, words, capsys):
    run(capsys, "tag", chunk_model, words, "-o", "/dev/null")
    assert not os.path.isfile("/dev/null")


def test_a_file_of_other_columns(chunk_model, tmp_path, capsys):
    (tmp_path / "other").write_text("one\ntwo\n")
    message = complaint(capsys, "tag", chunk_model, tmp_path / "other", "-o", tmp_path / "out")
    assert message.startswith(f"{tmp_path / 'other'}, line 1: expected 2 or 3 columns, got 1")
    assert not (tmp_path / "out").exists()


def test_a_model_that_knows_no_files(tmp_path, words, capsys):
    path = tmp_path / "python.hedgerow"
    hedgerow.LinearCRF().fit([[("a",), ("b",)]], [["x", "y"]]).save(path)
    message = complaint(capsys, "tag", path, words)
    assert message == (
        f"{path} was trained in Python, so it does not store how to read files; train it with "
        "hedgerow train, or use it in Python"
    )


def test_a_recipe_that_makes_no_sense(chunk_model, tmp_path, words, capsys):
    model = hedgerow.load(chunk_model)
    model.recipe_["label"] = 99
    model.save(tmp_path / "model")
    message = complaint(capsys, "tag", tmp_path / "model", words)
    assert message.startswith(f"{tmp_path / 'model'}: an inconsistent recipe")


@pytest.mark.parametrize("command", ["tag", "eval", "inspect"])
def test_a_damaged_model(command, chunk_model, chunks, tmp_path, capsys):
    damaged = tmp_path / "damaged"
    damaged.write_bytes(chunk_model.read_bytes()[:-5])
    message = complaint(capsys, command, damaged, chunks)
    assert message.startswith(f"cannot load {str(damaged)!r}: the file is truncated: it has ")
    message = complaint(capsys, command, tmp_path, chunks)
    assert message == f"{tmp_path}: Is a directory"
    message = complaint(capsys, command, chunks, chunks)
    assert message.startswith(f"cannot load {str(chunks)!r}: the file is ")


def test_a_reader_that_goes_away(chunk_model, chunks, monkeypatch, capfd):
    def close(*_):
        raise BrokenPipeError

    monkeypatch.setattr("hedgerow.files.conll.ConllWriter.write", close)
    assert main(["tag", str(chunk_model), str(chunks)]) == 141
    assert capfd.readouterr() == ("", "")
