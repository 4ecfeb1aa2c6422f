"""The training loop: history, the best step, callbacks, and early stopping."""

import numpy as np
import pytest

from hedgerow import LinearCRF, TreeCRF
from hedgerow.progress import Progress
from hedgerow.state import State
from hedgerow.training.state import TrainingState
from hedgerow.training.stopping import Step, Stopping
from hedgerow.training.training import train
from hedgerow.training.update import Update


class Script(Update):
    """Learns nothing: every step gives figures from a list."""

    n_threads = 1

    def __init__(self, figures, n_warm=0):
        rows = zip(*figures.values(), strict=True)
        self.steps = [dict(zip(figures, row, strict=True)) for row in rows]
        self.warm, self.done, self.kept = n_warm, 0, None

    n_done = property(lambda self: self.done)
    n_warm = property(lambda self: self.warm)
    has_learnt = property(lambda self: self.done > 0)
    loss = property(lambda self: 0.0)

    def advance(self):
        is_left = self.done < len(self.steps)
        self.done += is_left
        return is_left

    def figures(self):
        return {name: v for name, v in self.steps[self.done - 1].items() if "eval" not in name}

    def score(self, sequences):
        return self.steps[max(self.done - 1, 0)]

    score_kept = score

    def keep(self):
        self.kept = self.done

    def potentials(self):
        return ()

    def pack(self):
        return State({}, {})


class Watched:
    """An eval set whose figures are those of the script."""

    name, sequences = "eval", None

    def measure(self, figures, n_threads):
        return {name: figure for name, figure in figures.items() if name.startswith("eval")}


def run(callbacks=(), patience=None, metric="loss", history=None, n_warm=0, **figures):
    state = TrainingState({} if history is None else history)
    update = Script(figures, n_warm)
    watched = [Watched()] if any(name.startswith("eval") for name in figures) else []
    stopping = Stopping(patience, metric, callbacks)
    train(update, state, watched, stopping, Progress(9, 0), None)
    return state, update


def test_the_history_has_every_figure_of_every_step():
    state, update = run(loss=[3.0, 2.0], accuracy=[0.5, 0.25])
    assert state.history == {"loss": [3.0, 2.0], "accuracy": [0.5, 0.25]}
    assert (state.best_step, state.ended, update.kept) == (None, False, 2)


def test_a_history_that_goes_on():
    assert run(history={"loss": [4.0]}, loss=[3.0])[0].history == {"loss": [4.0, 3.0]}


@pytest.mark.parametrize(
    ("metric", "figures", "n_done", "best"),
    [
        ("loss", [3.0, 2.0, 2.5, 2.1, 0.0], 4, 2),
        ("loss", [3.0, 2.0, 2.0, 2.0, 0.0], 4, 2),  # the first of equals
        ("loss", [3.0, 2.0, 2.5, 1.0], 4, 4),
        ("accuracy", [0.1, 0.5, 0.4, 0.5, 1.0], 4, 2),
        ("accuracy", [0.1, 0.5, 0.4, 0.6], 4, 4),
        ("loss", [np.inf, np.inf, np.inf, 0.0], 3, 1),
    ],
)
def test_patience(metric, figures, n_done, best):
    state, update = run(patience=2, metric=metric, **{f"eval_{metric}": figures})
    assert (update.n_done, state.best_step, update.kept) == (n_done, best, best)
    assert state.ended == (n_done < len(figures))


def test_training_is_not_stopped_while_it_warms_up():
    figures = [1.0, *[2.0] * 20]
    assert run(patience=2, n_warm=5, eval_loss=figures)[1].n_done == 7


def test_the_other_figure_does_not_matter():
    state, _ = run(
        patience=1, metric="accuracy", eval_loss=[1.0, 2.0, 3.0], eval_accuracy=[0.1, 0.2, 0.3]
    )
    assert (state.best_step, state.ended) == (3, False)


def test_without_patience_the_best_step_is_known_and_the_last_is_kept():
    state, update = run(eval_loss=[3.0, 1.0, *[2.0] * 50])
    assert (state.best_step, update.n_done, update.kept) == (2, 52, 52)


def test_every_callback_is_told_and_each_can_end_it():
    told = []

    def first(now):
        told.append(now)
        return now.number == 2

    def second(now):
        told.append(now)

    state, update = run([first, second], loss=[3.0, 2.0, 1.0])
    assert (state.ended, update.n_done, update.kept) == (True, 2, 2)
    assert [now.number for now in told] == [1, 1, 2, 2]
    assert all(isinstance(now, Step) for now in told)
    assert dict(told[-1].figures) == {"loss": 2.0}


@pytest.mark.parametrize("answer", [None, False, 0, np.False_, True, 1, np.True_])
def test_something_true_ends_it(answer):
    assert run([lambda now: answer], loss=[1.0])[0].ended == bool(answer)


def test_what_a_callback_is_told_cannot_be_changed():
    told = []
    run([told.append], loss=[1.0])
    with pytest.raises(TypeError, match="does not support item assignment"):
        told[0].figures["loss"] = 0.0
    with pytest.raises(AttributeError, match="cannot assign"):
        told[0].number = 5


def test_an_error_in_a_callback_comes_through():
    def fail(now):
        raise RuntimeError(f"step {now.number}")

    with pytest.raises(RuntimeError, match="step 1"):
        run([fail], loss=[1.0])


@pytest.mark.parametrize("crf", [LinearCRF, TreeCRF])
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        (
            {"early_stopping_rounds": 2, "validation_fraction": None},
            ValueError,
            "needs validation data, but there is no eval_set and validation_fraction is None; call",
        ),
        ({"callbacks": print}, TypeError, "callbacks is <built-in.*; expected a list of callables"),
        ({"callbacks": [print, 5]}, TypeError, "callbacks holds 5, which cannot be called"),
        ({"callbacks": ("loud",)}, TypeError, "callbacks holds 'loud', which cannot be called"),
    ],
)
def test_parameters_that_make_no_sense(crf, parameters, error, message):
    with pytest.raises(error, match=message):
        crf(**parameters).fit([[[0.0]]], [["a"]])
