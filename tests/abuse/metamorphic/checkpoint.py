"""Training runs that are stopped at a bad moment and resumed from their checkpoint."""

import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import strategies as st

from abuse.children import fork, wait
from abuse.kind import Case, Kind
from abuse.metamorphic.answers import file_of
from abuse.training import Training
from abuse.trainings import trainings
from hedgerow import Checkpoint, LinearCRF, TreeCRF, persist

__all__ = ["KINDS"]

STOPS = ["error", "writing"]
if hasattr(os, "fork"):
    STOPS += ["kill", "kill while writing"]


@st.composite
def stopped_trainings(draw: st.DrawFn) -> Case:
    """Training runs, the moments at which they are stopped, and what is tried with the
    checkpoint."""
    case = draw(trainings(based=True))
    parameters = case["parameters"]
    if case["estimator"] == "TreeCRF":
        parameters["n_rounds"] = draw(st.integers(1, 9))
        # Held-out sequences and folds do not depend on a random seed that was not set.
        deals = "held_out" in case or "folds" in (case.get("base") or "")
        if not deals and draw(st.booleans()):
            parameters["random_state"] = None
    stop = st.tuples(st.sampled_from(STOPS), st.integers(1, 8), st.integers(1, 5))
    case["stops"] = draw(st.lists(stop, min_size=1, max_size=3))
    case["n_jobs"] = draw(st.sampled_from([1, 2, 3]))
    case["verbose"] = draw(st.integers(0, 2))
    return case


class StopError(Exception):
    """The exception that stops a training run."""


def check_checkpoint(case: Case) -> None:
    """However it was stopped, resuming gives the model file of an uninterrupted run."""
    training = Training.of(case)
    # The initial model is always the same.
    fit = training.start(random_state=0)

    def run(checkpoint: Checkpoint | None = None, **changes: Any) -> LinearCRF | TreeCRF:
        estimator = training.build(**changes)
        return estimator.fit(training.X, training.y, checkpoint=checkpoint, **fit)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kept")
        for how, moment, every in case["stops"]:
            stop(how, moment, partial(run, Checkpoint(path, every)))
        with open(os.devnull, "w") as nowhere, mock.patch("sys.stderr", nowhere):
            found = run(Checkpoint(path, 2), verbose=case["verbose"], n_jobs=case["n_jobs"])
        # A random seed that was not set is stored in the checkpoint.
        drawn = persist.read(path.read_bytes())[1].metadata.get("seed")
        whole = run() if drawn is None else run(random_state=drawn)
        expected = file_of(whole, random_state=0)
        assert file_of(found, random_state=0) == expected
        assert file_of(run(Checkpoint(path)), random_state=0) == expected, "it was over"
        assert not [name for name in os.listdir(folder) if re.search("[0-9a-f]{32}", name)]
        check_others_are_refused(training, fit, path)


def stop(how: str, moment: int, run: Callable[[], Any]) -> None:
    """Start training and stop it at some moment, unless it has ended by then."""
    if how.startswith("kill"):

        def killed() -> None:
            with interrupted("writing" in how, moment, kill):
                run()

        code = wait(fork(killed))
        assert code in (0, -signal.SIGKILL), f"the child ended with {code}"
        return
    with suppress(StopError), interrupted(how == "writing", moment, give_up):
        run()


@contextmanager
def interrupted(while_writing: bool, moment: int, action: Callable[[], None]) -> Iterator[None]:
    """Act at the n-th end of a round or iteration, or before a file is moved."""
    count = 0

    def tick(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == moment:
            action()

    place = "os.fsync" if while_writing else "hedgerow.progress.Progress.update"
    with mock.patch(place, tick):
        yield


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def give_up() -> None:
    raise StopError


def check_others_are_refused(training: Training, fit: dict[str, Any], path: Path) -> None:
    """A checkpoint with other parameters or data is refused."""
    weights = {"sample_weight": [7.0] * len(training.case["data"]["lengths"])}
    for changes, data in (({"reg_lambda": 0.625}, {}), ({}, weights)):
        before = path.read_bytes()
        with pytest.raises(ValueError, match="belongs to another training run"):
            training.build(**changes).fit(
                training.X, training.y, checkpoint=Checkpoint(path), **fit | data
            )
        assert path.read_bytes() == before


KINDS = [Kind("metamorphic-checkpoint", stopped_trainings(), check_checkpoint, in_suite=3)]
