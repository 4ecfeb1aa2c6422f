"""What is noted of every round, who is told, and when training should end."""

import numpy as np
import pytest

from hedgerow.boosting.monitor import Monitor, Round
from hedgerow.progress import Progress


def make(callbacks=(), patience=None, metric="loss", history=None):
    return Monitor({} if history is None else history, Progress(9, 0), callbacks, patience, metric)


def feed(monitor, **figures):
    """Note one round after the other; returns the answers."""
    rounds = [dict(zip(figures, row, strict=True)) for row in zip(*figures.values(), strict=True)]
    return [monitor.note(number, figure) for number, figure in enumerate(rounds, start=1)]


def test_the_history_has_every_figure_of_every_round():
    monitor = make()
    assert feed(monitor, loss=[3.0, 2.0], accuracy=[0.5, 0.25]) == [False, False]
    assert monitor.history == {"loss": [3.0, 2.0], "accuracy": [0.5, 0.25]}
    assert monitor.best_round is None


def test_a_history_that_goes_on():
    monitor = make(history={"loss": [4.0]})
    feed(monitor, loss=[3.0])
    assert monitor.history == {"loss": [4.0, 3.0]}


@pytest.mark.parametrize(
    ("metric", "figures", "answers", "best"),
    [
        ("loss", [3.0, 2.0, 2.5, 2.1], [False, False, False, True], 2),
        ("loss", [3.0, 2.0, 2.0, 2.0], [False, False, False, True], 2),  # the first of equals
        ("loss", [3.0, 2.0, 2.5, 1.0], [False] * 4, 4),
        ("accuracy", [0.1, 0.5, 0.4, 0.5], [False, False, False, True], 2),
        ("accuracy", [0.1, 0.5, 0.4, 0.6], [False] * 4, 4),
        ("loss", [np.inf, np.inf, np.inf], [False, False, True], 1),
    ],
)
def test_patience(metric, figures, answers, best):
    monitor = make(patience=2, metric=metric)
    assert feed(monitor, **{f"eval_{metric}": figures}) == answers
    assert monitor.best_round == best


def test_the_other_figure_does_not_matter():
    monitor = make(patience=1, metric="accuracy")
    assert feed(monitor, eval_loss=[1.0, 2.0, 3.0], eval_accuracy=[0.1, 0.2, 0.3]) == [False] * 3
    assert monitor.best_round == 3


def test_without_patience_the_best_round_is_known_all_the_same():
    monitor = make()
    assert feed(monitor, eval_loss=[3.0, 1.0, *[2.0] * 50]) == [False] * 52
    assert monitor.best_round == 2


def test_every_callback_is_told_and_each_can_end_it():
    told = []

    def first(now):
        told.append(now)
        return now.number == 2

    def second(now):
        told.append(now)

    monitor = make([first, second])
    assert feed(monitor, loss=[3.0, 2.0]) == [False, True]
    assert [now.number for now in told] == [1, 1, 2, 2]
    assert all(isinstance(now, Round) for now in told)
    assert dict(told[-1].figures) == {"loss": 2.0}


@pytest.mark.parametrize("answer", [None, False, 0, np.False_, True, 1, np.True_])
def test_something_true_ends_it(answer):
    assert feed(make([lambda now: answer]), loss=[1.0]) == [bool(answer)]


def test_what_a_callback_is_told_cannot_be_changed():
    told = []
    monitor = make([told.append])
    feed(monitor, loss=[1.0])
    with pytest.raises(TypeError, match="does not support item assignment"):
        told[0].figures["loss"] = 0.0
    with pytest.raises(AttributeError, match="cannot assign"):
        told[0].number = 5


def test_an_error_in_a_callback_comes_through():
    def fail(now):
        raise RuntimeError(f"round {now.number}")

    with pytest.raises(RuntimeError, match="round 1"):
        feed(make([fail]), loss=[1.0])
