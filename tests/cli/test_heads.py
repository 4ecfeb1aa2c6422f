"""Tree-shaped graphs on the command line."""

import pytest

import hedgerow
from reference.command_line import complaint, run
from reference.report_page import Page

SENTENCE = """\
# text = the old man sleeps
1-2	theold	_	_	_	_	_	_	_	_
1	the	the	DET	_	_	3	det	_	_
2	old	old	ADJ	_	_	3	amod	_	_
3	man	man	NOUN	_	_	4	nsubj	_	_
4	sleeps	sleep	VERB	_	_	0	root	_	_
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "train.conllu"
    path.write_text("\n".join([SENTENCE] * 6) + "\n")
    return path


@pytest.mark.parametrize("more", [(), ("--model", "trees", "--rounds", 5)])
def test_from_training_to_tags(file, tmp_path, capsys, more):
    place = tmp_path / "model.hedgerow"
    options = ("--label", "DEPREL", "--heads", "--features", "FORM,UPOS", "--ancestors", 1)
    run(capsys, "train", file, "-m", place, "--dev", file, *options, "--quiet", *more)
    model = hedgerow.load(place)
    assert model.parents_format == "conllu"
    assert model.model_.schema.has_parents
    assert model.ancestors == 1
    out = tmp_path / "out.conllu"
    run(capsys, "tag", place, file, "-o", out, "--marginals")
    written = out.read_text().splitlines()
    assert written[1].endswith("_\t_\t_")
    assert written[2].split("\t")[:11] == [*SENTENCE.splitlines()[2].split("\t"), "det"]
    run(capsys, "tag", place, file, "-o", out, "--k-best", 2)
    printed = run(capsys, "eval", place, file)
    assert "accuracy" in str(printed)
    run(capsys, "report", place, file, "-o", tmp_path / "page.html")
    explained = run(capsys, "inspect", place, file, "--sequence", 1, "--position", 1)
    assert "position 1 (parent 2, no children): amod" in explained


def test_a_graph_and_a_chain_are_compared(file, tmp_path, capsys):
    graph, chain, page = (tmp_path / name for name in ("a.hedgerow", "b.hedgerow", "page.html"))
    start = ("train", file, "--label", "DEPREL", "--features", "FORM", "--quiet", "-m")
    run(capsys, *start, graph, "--heads")
    run(capsys, *start, chain)
    for models in ([graph, chain], [chain, graph]):
        run(capsys, "report", *models, file, "-o", page)
        names = Page(page).data["comparison"]["names"]
        assert names == [model.name for model in models]
        assert "McNemar" in run(capsys, "eval", models[0], file, models[1])


def test_a_table(tmp_path, capsys):
    path, place = tmp_path / "train.csv", tmp_path / "model"
    rows = [
        f"{day},{x},{head},{'ab'[x % 2]}" for day in range(9) for x, head in enumerate([2, 0, 2])
    ]
    path.write_text("\n".join(["day,x,head,y", *rows]) + "\n")
    run(capsys, "train", path, "-m", place, "--group", "day", "--heads", "head", "--quiet")
    assert run(capsys, "eval", place, path)


def test_mistakes(file, tmp_path, capsys):
    place = tmp_path / "model"
    start = ("train", file, "-m", place)
    assert "there is no column 'Head'" in complaint(capsys, *start, "--heads", "Head")
    assert "--ancestors needs the parents" in complaint(capsys, *start, "--ancestors", 1)
    assert "use --heads for the column of heads" in complaint(
        capsys, *start, "--set", "parents_column=HEAD"
    )
    file.write_text(SENTENCE.replace("\t0\t", "\t9\t") + "\n")
    assert "train.conllu, line 6: the head is 9" in complaint(capsys, *start, "--heads")
