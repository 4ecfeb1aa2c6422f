"""Workers that train together: how sequences are divided among them does not matter."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from abuse.kind import Case, Kind
from abuse.metamorphic.answers import file_of
from abuse.training import Training
from abuse.trainings import trainings
from hedgerow.comm import Comm, ThreadComm

__all__ = ["KINDS", "fit_together"]


@st.composite
def divided_trainings(draw: st.DrawFn) -> Case:
    """Trainings, and how many workers there are."""
    case = draw(trainings(based=True))
    case["n_workers"] = draw(st.integers(2, 4))
    return case


def check_workers(case: Case) -> None:
    """All workers get the model file of one worker with all sequences, or the same error."""
    training = Training.of(case)
    n_sequences = len(case["data"]["lengths"])
    n_workers = min(case["n_workers"], n_sequences)
    places = np.random.default_rng(case["data"]["seed"]).permutation(n_sequences)
    fit = training.start(random_state=0)
    try:
        found = fit_together(training, np.array_split(places, n_workers), fit)
    except ValueError as error:
        is_refused = f"{n_workers} workers train the model together" in str(error)
        if not is_refused and str(error) != refusal_of(training, fit):
            raise
        return
    alone = training.build(random_state=0).fit(training.X, training.y, **fit)
    assert found == [file_of(alone)] * n_workers


def refusal_of(training: Training, fit: dict[str, Any]) -> str:
    """The error of training on one worker; empty if there is none."""
    try:
        training.build(random_state=0).fit(training.X, training.y, **fit)
    except ValueError as error:
        return str(error)
    return ""


def fit_together(training: Training, division: Any, fit: dict[str, Any]) -> list[bytes]:
    """Model files of workers that have some of the sequences each, by their numbers.

    ``fit`` contains the arguments of `fit` in addition to X and y.
    """
    parts = training.parts()

    def work(comm: Comm) -> bytes:
        places = division[comm.rank]
        own = training.having([parts[place] for place in places])
        same = {name: fit[name] for name in ("eval_set", "init") if name in fit}
        given = own.fit_parameters | same
        X = own.X
        if training.case["data"]["form"] == "grouped":  # draws depend on the names of groups
            X = X.assign(group=np.repeat(places, own.case["data"]["lengths"]))
        crf = training.build(random_state=0)
        return file_of(crf.fit(X, own.y, comm=comm, **given))

    return ThreadComm.run(len(division), work)


KINDS = [Kind("metamorphic-workers", divided_trainings(), check_workers, in_suite=4)]
