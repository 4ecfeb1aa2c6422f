"""hedgerow report: the page of the library, written from files."""

import pytest

import hedgerow
from hedgerow.files import Recipe, read_file
from hedgerow.report import write_report
from reference.command_line import complaint, run


@pytest.mark.parametrize("has_data", [False, True])
def test_a_page(has_data, chunk_model, chunks, tmp_path, capsys):
    page, expected = tmp_path / "page.html", tmp_path / "expected.html"
    data = [chunks] if has_data else []
    out = run(capsys, "report", chunk_model, *data, "-o", page)
    assert out == f"{page}: {page.stat().st_size / 1000:.3g} kB\n"
    model = hedgerow.load(chunk_model)
    read = read_file(chunks, Recipe.from_json(model.recipe_))
    known = (read.X, read.y) if has_data else ()
    write_report(model, expected, *known, title=chunk_model.name)
    assert page.read_bytes() == expected.read_bytes()


def test_another_decoder(chunk_model, chunks, tmp_path, capsys):
    page, expected = tmp_path / "page.html", tmp_path / "expected.html"
    run(capsys, "report", chunk_model, chunks, "-o", page, "--decode", "marginal")
    model = hedgerow.load(chunk_model)
    read = read_file(chunks, Recipe.from_json(model.recipe_))
    write_report(model, expected, read.X, read.y, title=chunk_model.name, decode="marginal")
    assert page.read_bytes() == expected.read_bytes()


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
    ],
)
def test_mistakes(options, message, chunk_model, tmp_path, capsys):
    names = {"folder": tmp_path, "model": chunk_model}
    given = [option.format(**names) for option in options]
    assert complaint(capsys, "report", chunk_model, *given) == message.format(**names)
