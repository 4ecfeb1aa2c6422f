"""Names of output files: the extension must match the format."""

import pytest

from hedgerow.cli.errors import CommandError
from hedgerow.cli.outputs import check_model_name, check_page_name, check_rows_name
from hedgerow.files.recipe import COLUMNLESS, FORMATS
from reference.command_line import complaint

# Names that files may have, and endings that are listed to a user who gives another.
NAMES = {
    "csv": ("a.csv a.CSV a.csv.gz a.tsv a.txt a /dev/null", ".csv, .tsv or .txt"),
    "jsonl": ("a.jsonl a.ndjson.gz a.json a", ".jsonl, .ndjson or .json"),
    "parquet": ("a.parquet a.pq a", ".parquet, .pq or .csv"),
    "arrow": ("a.arrow a.feather a.ipc a", ".arrow, .feather, .ipc or .csv"),
    "conll": ("a.conll a.conllu a.txt a.iob a.2 a", ".conll, .conllu, .txt or .tsv"),
    "crfsuite": ("a.crfsuite a.txt a.data a", ".crfsuite or .txt"),
    "facts": ("a.txt a.tsv a.labels a", ".txt or .tsv"),
}


@pytest.mark.parametrize("format", FORMATS)
def test_names_of_rows(format):
    names, endings = NAMES[format]
    for name in names.split():
        check_rows_name(name, "b", format)
    for ending in (".xlsx", ".pkl", ".zip", ".parquet" if format != "parquet" else ".arrow"):
        with pytest.raises(CommandError) as caught:
            check_rows_name(f"a{ending}", "b", format)
        what = "labels as text" if format in COLUMNLESS else f"{format}, as b does"
        assert str(caught.value) == (
            f"a{ending} would hold {what}, but its name ends in {ending}; expected a "
            f"name that ends in {endings}"
        )


def test_names_of_tables_have_an_ending_that_tells():
    check_rows_name("a.labelled", "b", "conll")
    with pytest.raises(CommandError, match=r"but its name ends in .labelled; expected"):
        check_rows_name("a.labelled", "b", "csv")


def test_names_of_pages():
    for name in ("a.html", "a.HTM", "a", "/dev/null"):
        check_page_name(name)
    with pytest.raises(CommandError, match=r"an HTML page, but its name ends in .md; expected a"):
        check_page_name("a.md")


def test_names_of_models(tmp_path, capsys):
    for name in ("a", "a.hedgerow", "a.safetensors", "a.model", "a.v2", "model-0.1"):
        check_model_name(name, "a model")
    for ending in (".csv", ".json", ".pkl", ".txt"):
        with pytest.raises(CommandError, match=f"name ends in {ending}; expected .* .hedgerow"):
            check_model_name(f"a{ending}", "a model")
    options = ["-m", tmp_path / "model", "--checkpoint", tmp_path / "kept.csv"]
    assert "would hold a checkpoint, but" in complaint(capsys, "train", "nothing", *options)
