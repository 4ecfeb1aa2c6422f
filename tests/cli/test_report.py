"""hedgerow report: the page of the library, written from files."""

import pytest

import hedgerow
from hedgerow.files import Recipe, read_file
from hedgerow.report import write_report
from reference.command_line import complaint, run, train, two_divisions
from reference.report_page import Page


@pytest.mark.parametrize("has_data", [False, True])
def test_a_page(has_data, chunk_model, chunks, tmp_path, capsys):
    page, expected = tmp_path / "page.html", tmp_path / "expected.html"
    data = [chunks] if has_data else []
    out = run(capsys, "report", chunk_model, *data, "-o", page)
    assert out == f"{page}: {page.stat().st_size / 1000:.3g} kB\n"
    model = hedgerow.load(chunk_model)
    read = read_file(chunks, Recipe.from_json(model.recipe_))
    known = {"X": read.X, "y": read.y, "source": chunks} if has_data else {}
    write_report(model, expected, title=chunk_model.name, **known)
    assert page.read_bytes() == expected.read_bytes()


def test_another_decoder(chunk_model, chunks, tmp_path, capsys):
    page, expected = tmp_path / "page.html", tmp_path / "expected.html"
    run(capsys, "report", chunk_model, chunks, "-o", page, "--decode", "marginal")
    model = hedgerow.load(chunk_model)
    read = read_file(chunks, Recipe.from_json(model.recipe_))
    names = {"title": chunk_model.name, "source": chunks}
    write_report(model, expected, read.X, read.y, decode="marginal", **names)
    assert page.read_bytes() == expected.read_bytes()


def test_two_models(chunk_model, chunks, tmp_path, capsys):
    page, expected, other = (tmp_path / name for name in ("a.html", "b.html", "other.hedgerow"))
    train(chunks, other, "--rounds", "2")
    capsys.readouterr()  # it has not converged
    run(capsys, "report", chunk_model, other, chunks, "-o", page)
    model, second = hedgerow.load(chunk_model), hedgerow.load(other)
    read = [read_file(chunks, Recipe.from_json(one.recipe_)) for one in (model, second)]
    names = {"title": chunk_model.name, "source": chunks, "compare_title": other.name}
    write_report(
        model, expected, read[0].X, read[0].y, compare=second, X_compare=read[1].X, **names
    )
    assert page.read_bytes() == expected.read_bytes()


def test_sequences_have_the_ids_of_their_groups(tmp_path, capsys):
    table, model, page = (tmp_path / name for name in ("t.csv", "m.hedgerow", "p.html"))
    rows = [f"{day},{x},{'ab'[x % 2]}" for day in ("mon", "tue") for x in range(5)]
    table.write_text("\n".join(["day,x,state", *rows]) + "\n")
    train(table, model, "--label", "state", "--group", "day", "--rounds", "1")
    run(capsys, "report", model, table, "-o", page)
    assert Page(page).data["browser"]["names"] == ["mon", "tue"]
    assert Page(page).data["source"]["name"] == "t.csv"


def test_two_models_of_other_groups(tmp_path, capsys):
    table, models = two_divisions(tmp_path)
    page = tmp_path / "p.html"
    message = complaint(capsys, "report", *models, table, "-o", page)
    assert message == (
        f"{table}: the two models read different sequences: 8 positions of 2 sequences, and "
        "8 positions of 4 sequences; they need the same group column, or, in Python, X and "
        "X_compare with the same sequences in the same order"
    )
    assert not page.exists()


def test_a_title(chunk_model, tmp_path, capsys):
    page = tmp_path / "page.html"
    run(capsys, "report", chunk_model, "-o", page, "--title", "Chunks of <text>")
    assert "Chunks of &lt;text&gt;" in page.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "the following arguments are required: -o/--output; see hedgerow report --help"),
        (["-o", "{folder}"], "cannot save to '{folder}': it is a folder; name a file"),
        (
            ["-o", "{folder}/no/x"],
            "cannot save to '{folder}/no/x': the folder '{folder}/no' does not exist",
        ),
        (["-o", "{model}"], "the page would be written over {model}; name another file"),
        (["nothing", "-o", "{folder}/x"], "nothing: No such file or directory"),
        (
            ["{model}", "-", "-o", "{folder}/x"],
            "two models read the data twice, so data cannot come from standard input; name a file",
        ),
        (
            ["a", "b", "c", "-o", "{folder}/x"],
            "unexpected argument c; see hedgerow report --help",
        ),
    ],
)
def test_mistakes(options, message, chunk_model, tmp_path, capsys):
    names = {"folder": tmp_path, "model": chunk_model}
    given = [option.format(**names) for option in options]
    assert complaint(capsys, "report", chunk_model, *given) == message.format(**names)
