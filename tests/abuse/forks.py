"""Forks while other threads of the library are running: the child can still use the library."""

import multiprocessing
import os
import pickle
import threading
from typing import Any

from hypothesis import strategies as st

from abuse.answers import answer
from abuse.children import fork, join
from abuse.kind import Case, Kind
from abuse.moments import act_at, count_moments
from abuse.threads import fast_switches, neutral_bytes
from abuse.training import Training
from abuse.trainings import trainings

__all__ = ["KINDS"]

WORK = ["fit", "predict"]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """The action of one thread, the moment at which another forks, and the action of the child."""
    return {
        "training": draw(trainings(based=True)),
        "work": draw(st.sampled_from(WORK)),
        "moment": draw(st.none() | st.floats(0, 0.999)),  # None: any, inside the core too
        "child": draw(st.sampled_from(WORK)),
        "n_jobs": draw(st.integers(1, 3)),
    }


def check(case: Case) -> None:
    """Parent and child get the same results as without the fork."""
    training = Training.of(case["training"])
    model = pickle.dumps(training.fit())
    expected = {work: run(work, training, model, 1) for work in WORK}

    def compare(work: str, n_jobs: int) -> None:
        assert run(work, training, model, n_jobs) == expected[work]

    def work() -> None:
        compare(case["work"], case["n_jobs"])

    def child() -> None:
        compare(case["child"], case["n_jobs"])

    if case["moment"] is None:
        fork_at_any_moment(work, child)
    else:
        n_moments, _ = count_moments(work)
        fork_at_moment(int(case["moment"] * n_moments), work, child)


def run(work: str, training: Training, model: bytes, n_jobs: int) -> bytes:
    """Bytes of a new model, or of the predictions of a pickled one."""
    if work == "fit":
        return neutral_bytes(training.fit(n_jobs=n_jobs))
    return answer("marginals", pickle.loads(model).set_params(n_jobs=n_jobs), training)


def fork_at_moment(moment: int, work: Any, child: Any) -> None:
    """The working thread is paused while the main thread forks."""
    reached, forked, errors = threading.Event(), threading.Event(), []

    def act() -> None:
        reached.set()
        forked.wait()

    def target() -> None:
        try:
            act_at(moment, act, work)
        except BaseException as error:
            errors.append(error)
        reached.set()

    thread = threading.Thread(target=target)
    thread.start()
    reached.wait()
    number = fork(child)
    forked.set()
    thread.join()
    join(number)
    if errors:
        raise errors[0]


def fork_at_any_moment(work: Any, child: Any) -> None:
    """Two threads keep working while the main thread forks repeatedly."""
    end, errors = threading.Event(), []

    def target() -> None:
        try:
            while not end.is_set():
                work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=target) for _ in range(2)]
    with fast_switches():
        for thread in threads:
            thread.start()
        children = [fork(child) for _ in range(3)]
        end.set()
        for thread in threads:
            thread.join()
    for number in children:
        join(number)
    if errors:
        raise errors[0]


@st.composite
def pool_cases(draw: st.DrawFn) -> Case:
    """A round of boosting after which a pool of forked processes is used."""
    return {
        "training": draw(trainings(("TreeCRF",))),
        "round": draw(st.integers(1, 3)),
        "n_jobs": draw(st.integers(1, 3)),
    }


def check_pool(case: Case) -> None:
    """A callback trains the same model in the processes of a pool."""
    training = Training.of(case["training"])
    expected = neutral_bytes(training.fit())
    results = []

    def callback(told: Any) -> None:
        if told.number == min(case["round"], training.case["parameters"]["n_rounds"]):
            with multiprocessing.get_context("fork").Pool(2) as pool:
                calls = [(case["training"], case["n_jobs"])] * 3
                results.extend(pool.starmap(fit_in_child, calls, chunksize=1))

    model = training.fit(callbacks=[callback], n_jobs=case["n_jobs"])
    model.set_params(callbacks=None)
    assert neutral_bytes(model) == expected
    assert all(result == expected for result in results)


def fit_in_child(case: Case, n_jobs: int) -> bytes:
    """Bytes of a model that is trained in a process of a pool."""
    return neutral_bytes(Training.of(case).fit(n_jobs=n_jobs))


KINDS = (
    [
        Kind("concurrency-fork", cases(), check, in_suite=2),
        Kind("concurrency-pool", pool_cases(), check_pool, in_suite=2, share=0.5),
    ]
    if hasattr(os, "fork")
    else []
)
