"""Ctrl-C at any moment: the old state is unchanged, or the new one is complete."""

import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import hedgerow
from abuse.answers import answer, model_bytes
from abuse.children import fork, join
from abuse.kind import Case, Kind
from abuse.long_trainings import build, draw_data, sleep
from abuse.moments import act_at, count_moments
from abuse.training import Training
from abuse.trainings import trainings
from hedgerow import Checkpoint, persist

__all__ = ["KINDS"]

ACTIONS = ["fit", "refit", "checkpoint", "save", "load", "predict", "explain", "pickle"]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """An action, and the moments of Ctrl-C: as shares of it, or as lines before its end."""
    moments = st.floats(0, 0.999) | st.integers(-40, -1)
    return {
        "training": draw(trainings(warm=False, based=True)),
        "action": draw(st.sampled_from(ACTIONS)),
        "moments": draw(st.lists(moments, min_size=1, max_size=6)),
    }


def check(case: Case) -> None:
    """Interrupted at some lines of the library's code, one after the other."""
    training = Training.of(case["training"])
    with tempfile.TemporaryDirectory(prefix="abuse-") as folder:
        scene = Scene(training, case["action"], Path(folder))
        n_moments, _ = count_moments(scene.act)
        scene.check_after()
        for moment in case["moments"]:
            scene.begin_again()
            is_share = moment >= 0
            interrupt(int(moment * n_moments) if is_share else n_moments + moment, scene.act)
            scene.check_after()
            scene.act()  # a second attempt starts from the same state
            scene.check_done()


def interrupt(moment: int, call: Callable[[], Any]) -> None:
    """Raise KeyboardInterrupt at a line of a call, if it has that many lines this time."""
    raised = []

    def ctrl_c() -> None:
        raised.append(moment)
        raise KeyboardInterrupt

    try:
        act_at(moment, ctrl_c, call)
    except KeyboardInterrupt:
        return
    assert not raised, f"nobody heard of the Ctrl-C at line {moment}"


class Scene:
    """An estimator with a model of other data, a folder with its file, and an action."""

    def __init__(self, training: Training, action: str, folder: Path) -> None:
        self.training, self.action, self.path = training, action, folder / "file"
        self.new = training.fit()
        self.new_bytes = model_bytes(self.new)
        self.old = training.build().fit(training.X, training.y, **training.fit_parameters)
        self.old.history_ = {"loss": [1.0]}  # different from the new model
        self.old_bytes = model_bytes(self.old)
        self.begin_again()

    def begin_again(self) -> None:
        """Restore the initial state."""
        self.estimator = self.training.build()
        if self.action == "refit":
            self.estimator = pickle.loads(pickle.dumps(self.old))
        self.before = dict(vars(self.estimator))
        self.model = pickle.loads(pickle.dumps(self.new))  # lazy attributes are not computed yet
        for path in self.path.parent.iterdir():
            path.unlink()
        if self.action in ("save", "load"):
            self.path.write_bytes(self.old_bytes)

    def act(self) -> Any:
        """The action that Ctrl-C interrupts."""
        training, model = self.training, self.model
        if self.action in ("fit", "refit"):
            return self.estimator.fit(training.X, training.y, **training.fit_parameters)
        if self.action == "checkpoint":
            return self.estimator.fit(
                training.X,
                training.y,
                **training.fit_parameters,
                checkpoint=Checkpoint(self.path, every=1),
            )
        if self.action == "save":
            return model.save(self.path)
        if self.action == "load":
            return hedgerow.load(self.path)
        if self.action == "pickle":
            return pickle.loads(pickle.dumps(model))
        return answer(self.action, model, training)

    def check_after(self) -> None:
        """Nothing is left half done, with or without an interruption."""
        after = vars(self.estimator)
        unchanged = after.keys() == self.before.keys() and all(
            after[name] is self.before[name] for name in after
        )
        assert unchanged or model_bytes(self.estimator) == self.new_bytes
        files = list_files(self.path.parent)
        assert files in ([], ["file"]), files
        if self.action in ("save", "load"):
            assert self.path.read_bytes() in (self.old_bytes, self.new_bytes)
        assert model_bytes(self.model) == self.new_bytes

    def check_done(self) -> None:
        """The action is complete, as without an interruption."""
        self.check_after()
        if self.action in ("fit", "refit", "checkpoint"):
            assert model_bytes(self.estimator) == self.new_bytes
        if self.action == "save":
            assert self.path.read_bytes() == self.new_bytes


def list_files(folder: Path) -> list[str]:
    """All files except for lock files, which an interrupted run may leave for the next one."""
    return [path.name for path in folder.iterdir() if path.suffix != ".lock"]


@st.composite
def signal_cases(draw: st.DrawFn) -> Case:
    """Work that keeps the core busy for a while, and how much of it is done before the signal.

    ``seconds`` are processor time, so that they do not depend on the load of the machine.
    """
    return {
        "estimator": draw(st.sampled_from(["LinearCRF", "TreeCRF"])),
        "action": draw(st.sampled_from(["fit", "checkpoint", "predict"])),
        "n_jobs": draw(st.integers(1, 3)),
        "order": draw(st.integers(1, 2)),
        "seconds": draw(st.floats(0, 0.3)),
        "thread": draw(st.booleans()),  # whether another thread is fitting at the same time
    }


def check_signal(case: Case) -> None:
    """A real SIGINT, in a separate process."""
    join(fork(lambda: meet_signal(case)))


def meet_signal(case: Case) -> None:
    """Work until SIGINT; afterwards everything must be intact, and a small training run must
    work."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    X, y = draw_data()
    small = [part[:20] for part in X], [part[:20] for part in y]
    expected, long = build(case, 2).fit(*small), None
    model_before = model_bytes(expected)
    other = threading.Thread(target=build(case, 3).fit, args=(X, y))
    if case["thread"]:
        other.start()
    with tempfile.TemporaryDirectory(prefix="abuse-") as folder:
        path = Path(folder, "checkpoint")
        checkpoint = Checkpoint(path, every=1) if case["action"] == "checkpoint" else None

        def send() -> None:
            sleep(case["seconds"])
            os.kill(os.getpid(), signal.SIGINT)

        sender = threading.Thread(target=send)
        try:
            sender.start()
            while True:  # only the signal ends this
                if case["action"] == "predict":
                    expected.predict_marginals(X)
                else:
                    long = build(case, 10**6)
                    long.fit(X, y, checkpoint=checkpoint)
        except KeyboardInterrupt:
            pass
        sender.join()
        if hasattr(long, "classes_"):  # it finished just before the signal, and is complete
            model_bytes(long)
        files = list_files(Path(folder))
        assert files in ([], ["checkpoint"]), files
        if path.exists():
            assert persist.read(path.read_bytes())[0] == persist.CHECKPOINT  # or it raises
    if case["thread"]:
        other.join()
    assert model_bytes(expected) == model_before == model_bytes(build(case, 2).fit(*small))


KINDS = [Kind("concurrency-interrupt", cases(), check, in_suite=3)]
if hasattr(os, "fork"):
    KINDS.append(Kind("concurrency-signal", signal_cases(), check_signal, in_suite=2))
