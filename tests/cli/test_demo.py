"""hedgerow demo: predicts words that it was not trained on."""

import numpy as np
import pytest

from hedgerow.cli import demo
from hedgerow.cli.program import main


def test_words_are_read(capsys, monkeypatch):
    monkeypatch.setattr(demo, "N_ROUNDS", 2)
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert "handwritten words: 6,251 for training, 626 for testing\n" in out
    rows = {line[:23].rstrip(): line[23:].split() for line in out.splitlines()}
    alone, together = (float(rows[name][0]) for name in demo.MODELS)
    assert 30 < alone < together
    written, *_, read = out.splitlines()[-1].split()
    assert written == read
    assert "2/2  loss=" in err


@pytest.mark.parametrize(("encoding", "marks"), [("utf8", " ▄▀█"), ("ascii", " .'#")])
def test_words_are_drawn_two_rows_a_line(encoding, marks, monkeypatch):
    class Output:
        pass

    Output.encoding = encoding
    monkeypatch.setattr("sys.stdout", Output)
    word = np.zeros((2, 16, 8), np.uint8)
    word[0, :2, 0] = 1
    word[0, 0, 1] = 1
    word[1, 15, 0] = 1
    lines = demo.draw(word.reshape(2, 128)).split("\n")
    assert lines[0] == marks[3] + marks[2]
    assert lines[1:7] == [""] * 6
    assert lines[7] == " " * 8 + marks[1]


def test_mistakes(capsys):
    assert main(["demo", "--jobs", "0"]) == 2
    assert "hedgerow: n_jobs is 0; expected" in capsys.readouterr().err
