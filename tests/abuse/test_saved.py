"""Saved cases contain the error, but no paths of this machine."""

import traceback

import pytest

from abuse import saved
from abuse.batch import Failure
from abuse.kinds import KINDS


def error_of(text):
    try:
        raise ValueError(text)
    except ValueError:
        return traceback.format_exc()


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (error_of("no 1/2 at x/y"), ["ValueError: no 1/2 at x/y"]),
        (error_of("a\n    b"), ["ValueError: a", "    b"]),
        (error_of("/home/me/data.csv: line 1"), ["ValueError: data.csv: line 1"]),
        (error_of("'C:\\\\me\\\\data.csv'"), ["ValueError: 'data.csv'"]),
        (error_of("\n".join(map(str, range(30)))), list(map(str, range(18, 30)))),
        ('Fatal\n  File "/a/b.py", line 1 in f\nended with -11', ["ended with -11"]),
        ("ended with -9", ["ended with -9"]),
    ],
)
def test_the_last_lines_without_folders(error, lines):
    assert saved.shorten(error) == lines


def test_a_failure_is_read_as_it_was_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "FOLDER", tmp_path)
    kind = next(iter(KINDS.values()))
    path = saved.save_failure(kind, Failure({"seed": 1}, error_of("wrong")))
    assert saved.read_case(path) == (kind.name, {"seed": 1})
    assert __file__ not in path.read_text()
