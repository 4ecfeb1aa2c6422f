"""Progress of training: a bar in a terminal, lines in a log, or nothing."""

import io
import re
import sys

import pytest

from hedgerow import progress
from hedgerow.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watch(monkeypatch, stderr, n_steps, total, verbose, done=0):
    """What is written in that many steps."""
    monkeypatch.setattr("sys.stderr", stderr)
    with Progress(total, verbose, done) as shown:
        for step in range(n_steps):
            shown.update({"loss": 1 / (step + 1), "accuracy": 0.5})
    return stderr.getvalue()


def steps(text):
    """Numbers of the steps that lines are about, and of how many."""
    return [tuple(map(int, pair)) for pair in re.findall(r"^ *(\d+)/(\d+) ", text, re.MULTILINE)]


def test_a_log_gets_few_lines(monkeypatch):
    text = watch(monkeypatch, io.StringIO(), 120, 1000, verbose=1)
    assert "\r" not in text
    assert steps(text) == [*((n, 1000) for n in (1, 2, 5, 10, 20, 50, 100)), (120, 120)]
    line = r" +2/1000  loss=0\.5  accuracy=0\.5  \d+\.\d s"
    assert re.fullmatch(line, text.splitlines()[1])


def test_no_line_is_said_twice(monkeypatch):
    assert steps(watch(monkeypatch, io.StringIO(), 2, 2, verbose=2)) == [(1, 2), (2, 2)]
    assert watch(monkeypatch, io.StringIO(), 0, 5, verbose=2) == ""


def test_a_line_ends_every_long_silence(monkeypatch):
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    text = watch(monkeypatch, io.StringIO(), 7, 10, verbose=1)
    assert [step for step, _ in steps(text)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_training_that_goes_on_counts_on(monkeypatch):
    text = watch(monkeypatch, io.StringIO(), 4, 60, verbose=1, done=48)
    assert steps(text) == [(50, 60), (52, 52)]
    assert "52/52" in watch(monkeypatch, Terminal(), 4, 60, verbose=1, done=48)


def test_a_terminal_gets_a_bar(monkeypatch):
    text = watch(monkeypatch, Terminal(), 3, 10, verbose=1)
    assert "\r" in text
    assert "3/3" in text
    assert "loss=0.333333, accuracy=0.5" in text


def test_lines_can_be_had_on_a_terminal(monkeypatch):
    assert "\r" not in watch(monkeypatch, Terminal(), 3, 10, verbose=2)


@pytest.mark.parametrize("stderr", [io.StringIO, Terminal])
def test_nothing_is_written_unless_asked(monkeypatch, stderr):
    assert watch(monkeypatch, stderr(), 3, 10, verbose=0) == ""


@pytest.mark.parametrize("verbose", [1, 2])
def test_an_error_leaves_the_count_where_it_was(monkeypatch, verbose):
    def fail():
        with Progress(10, verbose) as shown:
            shown.update({"loss": 1.0})
            raise RuntimeError

    monkeypatch.setattr("sys.stderr", Terminal())
    with pytest.raises(RuntimeError):
        fail()
    assert "1/10" in sys.stderr.getvalue()
