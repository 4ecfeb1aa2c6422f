"""CRFsuite files: attributes as they are, with values and weights."""

import pytest

from hedgerow.files import FileError, make_recipe, open_writer, read_file, stream_file

TEXT = "B\tw=the\tn:2\nI\tw=\\:\\\\\tn:0.5\tn:1\n\n@weight:3\nO\tw=x\t\n\n\nB\\:1\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "train.crfsuite"
    path.write_text(TEXT)
    return path


def test_labels_attributes_values_and_weights(path):
    batch = read_file(path, make_recipe(path))
    assert batch.X == [[{"w=the": 1, "n": 2}, {"w=:\\": 1, "n": 1.5}], [["w=x"]], [[]]]
    assert batch.y == [["B", "I"], ["O"], ["B:1"]]
    assert batch.weights == [1, 3, 1]


def test_lines_like_those_of_its_own_tagger(path, tmp_path):
    recipe = make_recipe(path)
    for n_positions in (1, 2, 10):
        with open_writer(tmp_path / "out", recipe) as writer:
            for batch in stream_file(path, recipe, n_positions=n_positions):
                assert batch.y is None
                writer.write(batch, {"tag": [["x"] * len(x) for x in batch.X]})
        assert (tmp_path / "out").read_text() == "x\nx\n\nx\n\nx\n\n"


def test_labels_that_are_known(path):
    (batch,) = stream_file(path, make_recipe(path), known="label")
    assert batch.known == [["B", "I"], ["O"], ["B:1"]]


def test_equal_weights_are_none(tmp_path):
    path = tmp_path / "x.crfsuite"
    path.write_text("A\ta\n\n@weight\t1\nB\tb\n")
    assert read_file(path, make_recipe(path)).weights is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A\ta\nB\tb:x\n", r"line 2: expected a number after the colon of 'b:x'; write a colon"),
        ("A\tb:nan\n", r"line 1: expected a number after the colon of 'b:nan'"),
        ("@weight:-1\nA\ta\n", r"line 1: expected a weight such as @weight:2.5, got '@weight:-1'"),
        ("@weight:x\nA\ta\n", r"line 1: expected a weight such as @weight:2.5"),
    ],
)
def test_what_is_no_number(tmp_path, text, message):
    path = tmp_path / "x.crfsuite"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        read_file(path, make_recipe(path))
