"""What several workers must agree on, and what is not supported with several workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hedgerow.comm import Comm, WorkerError
from hedgerow.objectives import OfMarginals, TrainingObjective
from hedgerow.objectives.labelwise import OfAllPositions, SumOverPositions
from hedgerow.relational import Atoms
from hedgerow.state import State

__all__ = ["check_agreement", "check_same_arguments", "check_shareable"]

# Parameters, and those of their values that need the examples of all workers at once.
REFUSED: dict[str, tuple[Any, ...]] = {
    "transitions": ("trees",),
    "missing": ("fractional", "surrogate"),
    "device": ("cuda",),
}


def check_shareable(crf: Any, objective: TrainingObjective, *, X: Any, comm: Comm) -> None:
    """Raise ValueError for settings that are supported only with a single worker."""
    if comm.size == 1:
        return
    where = f"{comm.size} workers train the model together"
    for name, values in REFUSED.items():
        value = getattr(crf, name, None)
        if any(value is refused or (value == refused and value) for refused in values):
            raise ValueError(f"{name} is {value!r}, but {where}; it needs a single worker")
    if crf.queries is not None:
        raise ValueError(
            f"queries is set, but {where} and would find different queries; transform X with a "
            "fitted RelationalFeatures first, and leave queries out"
        )
    if Atoms.are_in(X):
        raise ValueError(
            f"X holds facts, but {where} and would find different queries; use a fitted "
            "RelationalFeatures to transform X first"
        )
    if isinstance(objective, OfMarginals) and not isinstance(
        objective.objective, SumOverPositions | OfAllPositions
    ):
        raise ValueError(
            f"the objective {type(objective.objective).__name__} has no method named 'terms', but "
            f"{where}, and workers can only add up what each position contributes; give it a "
            "method terms(marginals, labels, weights) that returns these contributions"
        )


def check_same_arguments(arguments: Mapping[str, Any], comm: Comm) -> None:
    """Raise ValueError unless all workers call `fit` with the same arguments given."""
    if comm.size == 1:
        return
    given = np.array([int(value is not None) for value in arguments.values()])
    anywhere, nowhere = comm.max(np.stack([given, 1 - given]))
    for name, here, there in zip(arguments, anywhere, nowhere, strict=True):
        if here and there:
            raise ValueError(
                f"{name} is given on one worker and not on another; all workers must call fit with "
                "the same arguments"
            )


def check_agreement(pack: Callable[[], State], step: int, comm: Comm) -> None:
    """Raise WorkerError unless all workers have learned the same, to the last bit.

    ``pack`` returns what this worker has learned.
    """
    if comm.size == 1:
        return
    digest, state = hashlib.sha256(), pack()
    for name in sorted(state.tensors):
        digest.update(name.encode())
        digest.update(state.tensors[name].tobytes())
    mine = np.frombuffer(digest.digest(), np.int64)
    largest, smallest = comm.max(np.stack([mine, ~mine]))
    if np.any(largest != ~smallest):
        found = comm.gather(digest.hexdigest())
        other = next(rank for rank, each in enumerate(found) if each != found[0])
        raise WorkerError(
            f"after step {step} the models of worker {other} and worker 0 differ, because their "
            "machines round floating-point numbers differently; use the same kind of processor and "
            "the same versions of hedgerow and NumPy on all"
        )
