"""Callbacks and objectives that raise, return invalid values, or train a model themselves."""

import gc
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from abuse.answers import model_bytes
from abuse.kind import Case, Kind
from abuse.training import Training
from abuse.trainings import trainings
from hedgerow.boosting.booster import Booster
from hedgerow.descent.loss import LinearLoss

__all__ = ["KINDS"]

NONSENSE: dict[str, Any] = {
    "None": lambda good: None,
    "text": lambda good: "nonsense",
    "NaN": lambda good: good * np.nan,
    "infinity": lambda good: good + np.inf,
    "complex": lambda good: good * 1j,
    "one too many": lambda good: np.append(good, 1.0),
    "list": lambda good: [good, good],
    "object": lambda good: object(),
}
RAISED = {error.__name__: error for error in (KeyError, KeyboardInterrupt, SystemExit, MemoryError)}
WHAT = [*RAISED, *NONSENSE, "fit another", "fit itself"]


class Planned:
    """Expected accuracy, also usable as a callback, with an action at one of its calls."""

    def __init__(self, place: str, n_before: int, happen: Any) -> None:
        self.place, self.n_before, self.happen = place, n_before, happen

    def _visit(self, place: str, good: Any) -> Any:
        if place != self.place:
            return good
        self.n_before -= 1
        return self.happen(good) if self.n_before == -1 else good

    def value(self, marginals: Any, labels: Any, weights: Any) -> Any:
        own = marginals[np.arange(len(labels)), labels]
        return self._visit("value", float(np.sum(weights * own)))

    def gradient(self, marginals: Any, labels: Any, weights: Any) -> Any:
        slopes = np.zeros_like(marginals)
        slopes[np.arange(len(labels)), labels] = weights
        return self._visit("gradient", slopes)

    def __call__(self, told: Any) -> Any:
        return self._visit("callback", None)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """What happens at which call of a callback or an objective."""
    training = draw(trainings(warm=False))
    is_tree = training["estimator"] == "TreeCRF"
    place = draw(st.sampled_from(["value", "gradient"] + ["callback"] * is_tree))
    what = draw(
        st.sampled_from([*RAISED, "fit another", "fit itself"] if place == "callback" else WHAT)
    )
    training["parameters"]["reg_alpha" if not is_tree else "trim"] = 0.0
    return {
        "training": training,
        "place": place,
        "what": what,
        "n_before": draw(st.integers(0, 4)),
        "fitted": draw(st.booleans()),
        "n_jobs": draw(st.integers(1, 3)),
    }


def check(case: Case) -> None:
    """The exception is propagated unchanged, and nothing of the training remains in memory."""
    training, name = Training.of(case["training"]), "objective"
    quiet: Any = Planned(case["place"], -1, None)
    if case["place"] == "callback":
        name, quiet = "callbacks", None
    expected = model_bytes(training.fit(**{name: quiet}))
    raised: list[BaseException] = []
    trainings_seen: list[weakref.ref[Any]] = []

    def happen(good: Any) -> Any:
        trainings_seen.extend(find_trainings())
        if case["what"] in NONSENSE:
            raised.append(AssertionError("a ValueError or TypeError was expected"))
            return NONSENSE[case["what"]](good)
        if case["what"] in RAISED:
            raised.append(RAISED[case["what"]]("planned"))
            raise raised[0]
        other = estimator if case["what"] == "fit itself" else training.build()
        fit(other, training, **{name: quiet}, n_jobs=1)
        assert model_bytes(other) == expected
        return good

    loud: Any = Planned(case["place"], case["n_before"], happen)
    loud = [loud] if name == "callbacks" else loud
    estimator = training.build(**{name: quiet})
    if case["fitted"]:
        fit(estimator, training)
    estimator.set_params(**{name: loud}, n_jobs=case["n_jobs"])
    before, n_threads = dict(vars(estimator)), count_threads()
    gc.freeze()  # existing objects need not be collected, which takes time
    try:
        fit(estimator, training)
    except BaseException as error:
        if not is_expected(error, raised, case["what"]):
            raise
    else:
        assert not raised, f"{case['what']} went by without an error"
        before = dict(vars(estimator))
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is before[name] for name in before)
    raised.clear()
    gc.collect()
    gc.unfreeze()
    assert count_threads() == n_threads
    assert not [training for training in trainings_seen if training() is not None]
    fit(estimator, training, **{name: quiet}, n_jobs=1)
    assert model_bytes(estimator) == expected


def is_expected(error: BaseException, raised: list[BaseException], what: str) -> bool:
    """Whether this error is expected after the action: the message says where it happened."""
    if what in NONSENSE:
        return (
            bool(raised) and isinstance(error, ValueError | TypeError) and "Planned" in str(error)
        )
    return bool(raised) and error is raised[0]


def fit(estimator: Any, training: Training, **parameters: Any) -> None:
    """Change some parameters, and train."""
    estimator.set_params(**parameters).fit(training.X, training.y, **training.fit_parameters)


def count_threads() -> int:
    """Threads of this process, including those of the core."""
    tasks = Path("/proc/self/task")
    return len(os.listdir(tasks)) if tasks.exists() else threading.active_count()


def find_trainings() -> list[weakref.ref[Any]]:
    """The objects that hold the data of the running training runs."""
    frame, found = sys._getframe(), []
    while frame is not None:
        holder = frame.f_locals.get("self")
        if isinstance(holder, Booster | LinearLoss):
            found.append(weakref.ref(holder))
        frame = frame.f_back
    return found


KINDS = [Kind("concurrency-exceptions", cases(), check, in_suite=4)]
