"""Templates: attributes as CRF++ makes them."""

import re
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import LinearCRF
from hedgerow.files import FileError, Template, make_recipe, read_file

ROWS = [[("He", "PRP"), ("reckons", "VBZ"), ("the", "DT")], [("Go", "VB")]]


def expand(template, sequences):
    """The same by `Template.expand`: columns in, tuples out."""
    rows = [row for rows in sequences for row in rows]
    columns = dict(enumerate(map(list, zip(*rows, strict=True))))
    return template.expand(columns, [0, *accumulate(map(len, sequences))])


def expand_slowly(lines, rows):
    """One macro after the other, one position after the other."""

    def cell(match, position):
        place, column = position + int(match[1]), int(match[2])
        if place < 0:
            return f"_B{place}"
        return f"_B+{place - len(rows) + 1}" if place >= len(rows) else rows[place][column]

    macro = re.compile(r"%x\[([-+]?\d+),(\d+)\]")
    return [
        tuple(macro.sub(lambda match, t=t: cell(match, t), line) for line in lines)
        for t in range(len(rows))
    ]


def test_the_example_of_the_manual():
    lines = "U01:%x[0,0]", "U02:%x[0,1]", "U03:%x[-1,0]", "U04:%x[-2,1]", "U05:%x[0,0]/%x[0,1]"
    (attributes, _) = expand(Template.parse(lines), ROWS)
    assert attributes[2] == ("U01:the", "U02:DT", "U03:reckons", "U04:PRP", "U05:the/DT")
    assert attributes[0][2:4] == ("U03:_B-1", "U04:_B-2")


def test_beyond_the_ends():
    template = Template.parse(["U:%x[-2,0]", "U:%x[3,0]"])
    assert expand(template, ROWS) == [
        [("U:_B-2", "U:_B+1"), ("U:_B-1", "U:_B+2"), ("U:He", "U:_B+3")],
        [("U:_B-2", "U:_B+3")],
    ]


CELLS = st.tuples(st.integers(-4, 4), st.integers(0, 1)).map(lambda c: f"%x[{c[0]},{c[1]}]")
PIECES = st.lists(st.one_of(CELLS, st.text("ab{}'\"\\/%".replace("%", ""), max_size=3)), max_size=5)
WORDS = st.text("xyé{'", max_size=2)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(PIECES, min_size=1, max_size=5, unique_by=lambda pieces: "".join(pieces)),
    st.lists(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6), min_size=1, max_size=4),
)
def test_against_one_macro_after_the_other(pieces, sequences):
    lines = ["U" + "".join(line) for line in pieces]
    template = Template.parse(lines)
    lines = list(dict.fromkeys(line.strip() for line in lines))
    expected = [expand_slowly(lines, rows) for rows in sequences]
    assert expand(template, sequences) == expected
    assert expand(template, sequences) == expected


def test_what_a_template_says_about_labels():
    plain = Template.parse(["# comment", "", "U00:%x[0,0]"])
    assert (plain.has_transitions, plain.has_pair_attributes) == (False, False)
    pairs = Template.parse(["U00:%x[0,0]", "B", "B01:%x[0,0]"])
    assert (pairs.has_transitions, pairs.has_pair_attributes) == (True, True)
    assert len(pairs.attributes) == 2


def make_template(folder, text):
    (folder / "train.txt").write_text("a x A\nb y B\n\nb x B\n")
    (folder / "template").write_text(text)
    return make_recipe(folder / "train.txt", template=folder / "template")


def test_a_model_with_a_template(tmp_path):
    recipe = make_template(tmp_path, "U00:%x[0,0]\nB01:%x[0,1]\n")
    assert recipe.parameters() == {"order": 0, "transition_attributes": "B"}
    batch = read_file(tmp_path / "train.txt", recipe)
    crf = LinearCRF(**recipe.parameters()).fit(batch.X, batch.y)
    assert set(crf.weights()["attribute"]) == {"U00:a", "U00:b", "(bias)"}
    assert set(crf.transition_weights()["attribute"]) == {"B01:y"}
    assert make_template(tmp_path, "U00:%x[0,0]\nB\n").parameters() == {"order": 1}
    assert make_recipe(tmp_path / "train.txt").parameters() == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "U:%x[0,0]\nX01:%x[0,0]\n",
            "line 2: expected a line that begins with U, B or #, got 'X01",
        ),
        (
            "U01:%x[0]\n",
            r"template, line 1: '%x\[0\]' is not a macro; expected %x\[row,column\], s",
        ),
        ("U01:100%\n", "line 1: '%' is not a macro"),
        ("# nothing\nB\n", r"the template has no line such as U00:%x\[0,0\]; add one"),
        ("\nU01:%x[0,3]\n", "3, which does not exist; the columns have no names and are numbered"),
        ("U01:%x[0,2]\n", "uses column 2, the labels, which cannot be features"),
    ],
)
def test_what_is_no_template(tmp_path, text, message):
    with pytest.raises(FileError, match=message):
        make_template(tmp_path, text)


def test_a_template_chooses_columns_itself(tmp_path):
    make_template(tmp_path, "U00:%x[0,0]\n")
    path, template = tmp_path / "train.txt", tmp_path / "template"
    with pytest.raises(FileError, match="a template defines which columns are used; leave"):
        make_recipe(path, template=template, features=[0])
    with pytest.raises(FileError, match="a template is for CoNLL columns, but this is read as csv"):
        make_recipe(path, template=template, format="csv")
