"""Several threads at once: fits, predictions, files, each with the same result as alone."""

import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st

from abuse.answers import ASK, answer, model_bytes
from abuse.kind import Case, Kind
from abuse.training import Training
from abuse.trainings import trainings

__all__ = ["KINDS", "fast_switches"]

# Actions of a thread, with a model that all threads share, or with X and y.
ACTIONS = ["fit", "refit", "save", "pickle", *ASK]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One or two models, and the action of each thread on one of them."""
    actions = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1), st.integers(1, 3))
    return {
        "trainings": [draw(trainings(warm=False)), draw(trainings(warm=False))],
        "threads": [list(a) for a in draw(st.lists(actions, min_size=2, max_size=6))],
    }


def check(case: Case) -> None:
    """Every thread gets the same result as alone, bit for bit."""
    shared = [Training.of(part) for part in case["trainings"]]
    models = [training.fit() for training in shared]
    expected = [
        run(action, models[which], shared[which], n_jobs=1) for action, which, _ in case["threads"]
    ]
    models = [training.fit() for training in shared]  # no lazy attribute is computed yet
    calls = [
        lambda action=action, which=which, n_jobs=n_jobs: run(
            action, models[which], shared[which], n_jobs
        )
        for action, which, n_jobs in case["threads"]
    ]
    with fast_switches():
        assert run_at_once(calls) == expected


def run(action: str, model: Any, training: Training, n_jobs: int) -> bytes:
    """The result of an action."""
    if action == "fit":
        return neutral_bytes(training.fit(n_jobs=n_jobs))
    if action == "refit":  # an estimator that is already fitted
        again = pickle.loads(pickle.dumps(model)).set_params(n_jobs=n_jobs)
        return neutral_bytes(again.fit(training.X, training.y, **training.fit_parameters))
    if action == "save":
        return model_bytes(model)
    if action == "pickle":
        return model_bytes(pickle.loads(pickle.dumps(model)))
    return answer(action, model, training)


def neutral_bytes(model: Any) -> bytes:
    """Its file, whatever the number of threads was."""
    return model_bytes(model.set_params(n_jobs=1))


def run_at_once(calls: list[Callable[[], bytes]]) -> list[bytes]:
    """Results of calls that start at the same moment, each in its own thread."""
    begin = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def work(number: int, call: Callable[[], bytes]) -> None:
        try:
            begin.wait()
            results[number] = call()
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@contextmanager
def fast_switches() -> Iterator[None]:
    """Let Python switch threads much more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


KINDS = [Kind("concurrency-threads", cases(), check, in_suite=3)]
