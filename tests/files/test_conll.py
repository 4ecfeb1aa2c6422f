"""CoNLL files: columns in, attributes and labels out, and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.files import FileError, Recipe, make_recipe, open_writer, read_file, stream_file

TEXT = "The DT B\ndog NN I\n\nIt PRP B\n"
ODD = (
    b"\xef\xbb\xbf-DOCSTART- -X- O\r\n\r\n# # B-NP \r\n5 CD\tI-NP\r\n\r\n  \t\r\n"
    b"# a comment of this line alone\r\n\xe9\x80\xb1\xe3\x80\x80x NN B\r\n\r\n-DOCSTART- -X- O\r\n"
)
CONLLU = """\
# global.columns = ID FORM UPOS MISC
# text = du chien
1-2	du	_	_
1	de	ADP	_
2	le	DET	x y
2.1	un	_	_

# sent_id = 2
1	chien	NOUN	\x20
"""


def write(folder, text, name="train.txt"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def copy(path, recipe, n_positions, out, **columns):
    """Write a file again, with a column of labels."""
    with open_writer(out, recipe) as writer:
        for batch in stream_file(path, recipe, labels=True, n_positions=n_positions):
            more = {name: [[value] * len(x) for x in batch.X] for name, value in columns.items()}
            writer.write(batch, {"tag": batch.y, **more})
    return out.read_bytes()


def test_words_and_labels(tmp_path):
    path = write(tmp_path, TEXT)
    batch = read_file(path, make_recipe(path))
    assert batch.y == [["B", "I"], ["B"]]
    assert {"c0[0]=dog", "c1[-1]=DT", "c0[-1]|c0[0]=The|dog", "suffix=og"} < set(batch.X[0][1])
    assert (batch.n_sequences, batch.n_positions) == (2, 3)


@pytest.mark.parametrize("n_positions", [1, 2, 100])
def test_further_columns_stand_at_the_end_of_lines(tmp_path, n_positions):
    path = write(tmp_path, TEXT)
    out = copy(path, make_recipe(path), n_positions, tmp_path / "out", p=0.5, q=None)
    assert out == b"The DT B B 0.5 _\ndog NN I I 0.5 _\n\nIt PRP B B 0.5 _\n"


@pytest.mark.parametrize("n_positions", [1, 3, 100])
def test_all_other_lines_stay(tmp_path, n_positions):
    path = write(tmp_path, ODD)
    recipe = make_recipe(path)
    batch = read_file(path, recipe)
    assert batch.y == [["B-NP", "I-NP"], ["B"]]
    assert "c0[0]=週\u3000x" in batch.X[1][0]
    out = copy(path, recipe, n_positions, tmp_path / "out")
    assert out == ODD[3:].replace(b"B-NP ", b"B-NP B-NP").replace(
        b"\tI-NP", b"\tI-NP I-NP"
    ).replace(b"NN B", b"NN B B")


@pytest.mark.parametrize("n_positions", [1, 2, 100])
def test_conllu(tmp_path, n_positions):
    path = write(tmp_path, CONLLU)
    recipe = make_recipe(path)
    assert (recipe.columns[recipe.label], recipe.delimiter) == ("UPOS", "\t")
    batch = read_file(path, recipe)
    assert batch.y == [["ADP", "DET"], ["NOUN"]]
    assert {"FORM[0]=de", "FORM[1]=le"} < set(batch.X[0][0])
    out = copy(path, recipe, n_positions, tmp_path / "out").decode().split("\n")
    assert out[0] == "# global.columns = ID FORM UPOS MISC tag"
    assert out[2:4] == ["1-2\tdu\t_\t_\t_", "1\tde\tADP\t_\tADP"]
    assert out[4:6] == ["2\tle\tDET\tx y\tDET", "2.1\tun\t_\t_\t_"]
    assert out[8] == "1\tchien\tNOUN\t \tNOUN"


def test_columns_of_conllu_have_names_of_their_own(tmp_path):
    path = write(tmp_path, "1\ta\ta\tDET\tD\t_\t0\troot\t_\t_\n", "x.conllu")
    recipe = make_recipe(path, label="XPOS", features=["FORM", "UPOS"])
    assert (recipe.label, recipe.features) == (4, (1, 3))


def test_a_set_of_columns_is_taken_in_the_order_of_the_file(tmp_path):
    path = write(tmp_path, "1\ta\ta\tDET\tD\t_\t0\troot\t_\t_\n", "x.conllu")
    names = {"XPOS", "FORM", "LEMMA", "UPOS", "ID"}
    assert make_recipe(path, label="DEPREL", features=names).features == (0, 1, 2, 3, 4)
    assert make_recipe(path, label="DEPREL", features=["XPOS", "FORM"]).features == (4, 1)
    with pytest.raises(FileError, match="there is no column 'A'"):
        make_recipe(path, features={"D", "C", "B", "A"})


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(*[st.text("aé#.-\u2028\x85", min_size=1, max_size=3)] * 3),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([" ", "\t"]),
    st.integers(1, 9),
)
def test_a_file_by_parts_is_the_atomic_write(tmp_path_factory, sequences, gap, n_positions):
    folder = tmp_path_factory.mktemp("conll")
    text = "\n\n".join("\n".join(map(gap.join, rows)) for rows in [[("w", "p", "L")], *sequences])
    path = write(folder, text)
    recipe = make_recipe(path)
    whole = read_file(path, recipe)
    assert whole.y == [["L"], *([row[2] for row in rows] for rows in sequences)]
    batches = list(stream_file(path, recipe, labels=True, n_positions=n_positions))
    assert [x for batch in batches for x in batch.X] == list(whole.X)
    assert [y for batch in batches for y in batch.y] == whole.y
    again = write(folder, copy(path, recipe, n_positions, folder / "out"), "again.txt")
    assert read_file(again, make_recipe(again)).y == whole.y


def test_an_empty_label_is_not_known(tmp_path):
    path = write(tmp_path, "New York\tB\nis\t\n")
    assert read_file(path, make_recipe(path)).y == [["B", None]]


def test_labels_by_number_and_by_name(tmp_path):
    path = write(tmp_path, "# columns: tag word\nA x\nB y\n")
    for label in (0, -2, "0", "tag"):
        recipe = make_recipe(path, label=label)
        assert read_file(path, recipe).y == [["A", "B"]]
        assert recipe.features == (1,)
        assert Recipe.from_json(recipe.to_json()) == recipe


def test_files_to_tag_may_lack_the_last_column(tmp_path):
    recipe = make_recipe(write(tmp_path, TEXT))
    path = write(tmp_path, "The DT\n", "new.txt")
    (batch,) = stream_file(path, recipe)
    assert batch.y is None
    with pytest.raises(
        FileError, match=r"new.txt, line 1: expected 3 columns, got 2: 'The DT'; the"
    ):
        read_file(path, recipe)
    first = make_recipe(write(tmp_path, TEXT), label=0)
    with pytest.raises(FileError, match=r"line 1: expected 3 columns, got 2"):
        read_file(path, first, labels=False)


def test_labels_that_are_known(tmp_path):
    recipe = make_recipe(write(tmp_path, TEXT))
    path = write(tmp_path, "The DT _\ndog NN I\n", "known.txt")
    assert read_file(path, recipe, labels=False, known=-1).known == [["_", "I"]]
    further = write(tmp_path, "The DT B I\n", "further.txt")
    assert read_file(further, recipe, known="3").known == [["I"]]
    with pytest.raises(FileError, match=r"there is no column 3; the columns have no names and are"):
        read_file(path, recipe, known=3)


def test_a_file_of_comments_alone_and_one_of_hashes(tmp_path):
    recipe = make_recipe(write(tmp_path, TEXT))
    assert list(stream_file(write(tmp_path, "# and nothing else here\n", "c"), recipe)) == []
    path = write(tmp_path, "# # B\n\n# # I\n", "hashes.txt")
    assert read_file(path, recipe).y == [["B"], ["I"]]


def test_a_lone_token_that_looks_like_a_comment(tmp_path):
    recipe = make_recipe(write(tmp_path, TEXT))
    (batch,) = stream_file(write(tmp_path, "# said on a day\n#fun NN\n", "new.txt"), recipe)
    assert [len(x) for x in batch.X] == [1]
    assert "c0[0]=#fun" in batch.X[0][0]


def test_a_long_sequence_is_read_whole(tmp_path):
    path = write(tmp_path, "a B\n" * 5000 + "\n" + "b C\n")
    batches = list(stream_file(path, make_recipe(path), n_positions=7))
    assert [len(x) for batch in batches for x in batch.X] == [5000, 1]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "train.txt: the file is empty: it has no line that is a position"),
        ("\n\n-DOCSTART- -X-\n", {}, "the file is empty"),
        ("a b\nc d e\n", {}, r"line 2: expected 2 columns as in the lines before, got 3: 'c d e'"),
        (TEXT, {"label": 7}, "there is no column 7; the columns have no names and are numbered"),
        (TEXT, {"label": "pos"}, "there is no column 'pos'; the columns have no names"),
        (CONLLU, {"label": "pos"}, "there is no column 'pos'; the columns are 'ID', 'FORM'"),
        (TEXT, {"features": [2]}, "column '2' cannot be a feature: it is the label or the group"),
        ("a\nb\n", {}, "no column is left to learn from"),
        (
            TEXT,
            {"group": 0, "format": "conll"},
            "a group column is for tables, but this is read as conll; leave it",
        ),
        (
            b"a B\n\xff\xfe C\n",
            {},
            r"line 2: b'\\xff\\xfe' is not valid UTF-8 .*; save the file as",
        ),
        ("# columns: a b c\nx y\n", {}, "line 2: the columns are named a b c, but the numb"),
        ("# columns: a a c\nx y z\n", {}, "two columns are named 'a'; rename one"),
        ("# columns: a c c\nx y z\n", {"label": "c"}, "two columns are named 'c'; rename one"),
    ],
)
def test_what_cannot_be_read(tmp_path, text, options, message):
    path = write(tmp_path, text)
    with pytest.raises(FileError, match=message):
        read_file(path, make_recipe(path, **options))


def test_a_file_that_became_empty(tmp_path):
    recipe = make_recipe(write(tmp_path, TEXT))
    with pytest.raises(FileError, match="the file is empty: it has no sequence"):
        read_file(write(tmp_path, "\n\n"), recipe)
