"""Columns of heads: which position is the parent of which."""

import pandas as pd
import pytest

from hedgerow.files import FileError, Recipe, make_recipe, read_file, stream_file

CONLLU = """\
# sent_id = 1
1-2	du	_	_	_	_	_	_	_	_
1	de	de	ADP	_	_	3	case	_	_
2	le	le	DET	_	_	3	det	_	_
3	chien	chien	NOUN	_	_	0	root	_	_
3.1	qui	_	_	_	_	_	_	_	_

# sent_id = 2
1	chien	chien	NOUN	_	_	0	root	_	_
2	noir	noir	ADJ	_	_	1	amod	_	_
"""
HEADS = [["3", "3", "0"], ["0", "1"]]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "train.conllu"
    path.write_text(CONLLU)
    return path


def test_conllu(file):
    recipe = make_recipe(file, label="DEPREL", heads="HEAD")
    assert (recipe.heads, recipe.label) == (6, 7)
    assert recipe.features == (1,)
    data = read_file(file, recipe)
    assert data.parents == HEADS
    assert data.graph == {"parents": HEADS}
    assert data.y == [["case", "det", "root"], ["root", "amod"]]
    streamed = [batch.parents for batch in stream_file(file, recipe, n_positions=1)]
    assert sum(streamed, []) == HEADS  # noqa: RUF017
    assert read_file(file, make_recipe(file)).graph == {}


def test_other_columns(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("a 0 X\nb 1 Y\n\nc 0 X\n")
    recipe = make_recipe(path, heads=1)
    assert recipe.features == (0,)
    assert read_file(path, recipe).parents == [["0", "1"], ["0"]]


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet", "arrow"])
def test_tables(tmp_path, format):
    frame = pd.DataFrame(
        {"day": [1, 1, 1, 2], "head": [2, 0, 2, 0], "x": [0.5, 1, 2, 3], "y": list("abab")}
    )
    path = tmp_path / f"train.{format}"
    if format == "csv":
        frame.to_csv(path, index=False)
    elif format == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif format == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)
    recipe = make_recipe(path, group="day", heads="head", label="y")
    assert recipe.features == (2,)
    parents = read_file(path, recipe).parents
    assert [[int(head) for head in heads] for heads in parents] == [[2, 0, 2], [0]]


def test_recipes_of_earlier_versions_have_none(file):
    values = make_recipe(file).to_json()
    del values["heads"]
    assert Recipe.from_json(values).heads is None


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "_	_	3	det",
            "_	_	4	det",
            "train.conllu, line 4: the head is 4, but its sequence has 3 positions; expected 1 to "
            "3, counted within the sequence, or 0 for a root",
        ),
        (
            "_	_	3	det",
            "_	_	2	det",
            "line 4: the head is 2, the position itself; expect",
        ),
        (
            "_	_	3	det",
            "_	_	_	det",
            "line 4: the head is '_'; expected the index of the",
        ),
        (
            "_	_	0	root",
            "_	_	1	root",
            "line 3: the head is part of a cycle: 0 -> 2 -> 0, pos",
        ),
    ],
)
def test_bad_heads_are_found_in_their_line(file, before, after, message):
    file.write_text(CONLLU.replace(before, after, 1))
    recipe = make_recipe(file, label="DEPREL", heads="HEAD")
    with pytest.raises(FileError, match=message):
        read_file(file, recipe)


def test_what_is_refused(file, tmp_path):
    def refuse(message, path=file, **said):
        with pytest.raises(FileError, match=message):
            read_file(path, make_recipe(path, **said))

    refuse("column 'HEAD' cannot hold the heads: it is the label or the group", label=6, heads=6)
    refuse("column 'HEAD' cannot be a feature: .*or holds the heads", features=["HEAD"], heads=6)
    refuse("there is no column 'head'; the columns are 'ID'", heads="head")
    crfsuite = tmp_path / "train.crfsuite"
    crfsuite.write_text("A\tw=x\n")
    refuse("CRFsuite files have no column of heads", crfsuite, format="crfsuite", heads=0)
    table = tmp_path / "train.csv"
    table.write_text("day,head,x,y\n1,2,0.5,a\n1,7,1,b\n")
    message = "train.csv: column 'head' of group '?1'?: the head is 7, but its sequence has 2 pos"
    refuse(message, table, group="day", heads="head")
