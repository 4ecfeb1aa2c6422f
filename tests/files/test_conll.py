"""CoNLL files: columns in, attributes and labels out, and back."""

import pytest

from hedgerow.files import FileError, make_recipe, open_writer, read_file, stream_file

TEXT = "The DT B\ndog NN I\n\nIt PRP B\n"


def write(folder, text, name="train.txt"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_words_and_labels(tmp_path):
    path = write(tmp_path, TEXT)
    recipe = make_recipe(path)
    batch = read_file(path, recipe)
    assert batch.y == [["B", "I"], ["B"]]
    assert "c0[0]=dog" in batch.X[0][1]
    assert "c1[-1]=DT" in batch.X[0][1]
    assert batch.n_positions == 3


@pytest.mark.parametrize("n_positions", [1, 2, 100])
def test_further_columns_stand_at_the_end_of_lines(tmp_path, n_positions):
    path = write(tmp_path, TEXT)
    recipe = make_recipe(path)
    with open_writer(tmp_path / "out.txt", recipe) as writer:
        for batch in stream_file(path, recipe, labels=True, n_positions=n_positions):
            writer.write(batch, {"tag": batch.y, "p": [[0.5] * len(y) for y in batch.y]})
    out = (tmp_path / "out.txt").read_text()
    assert out == "The DT B B 0.5\ndog NN I I 0.5\n\nIt PRP B B 0.5\n"


def test_a_lone_token_that_looks_like_a_comment(tmp_path):
    recipe = make_recipe(write(tmp_path, TEXT))
    (batch,) = stream_file(write(tmp_path, "# said on a day\n#fun NN\n", "new.txt"), recipe)
    assert [len(x) for x in batch.X] == [1]
    assert "c0[0]=#fun" in batch.X[0][0]


def test_a_ragged_line(tmp_path):
    path = write(tmp_path, "a b\nc d e\n")
    with pytest.raises(
        FileError, match=r"line 2: expected 2 columns as in the lines before, got 3"
    ):
        make_recipe(path)
