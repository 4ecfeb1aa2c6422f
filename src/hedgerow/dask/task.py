"""Tasks: the work of one worker in training a model together with the others."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from distributed import get_worker

from hedgerow.comm import ALONE, Comm, XGBoostComm
from hedgerow.dask.culprit import name_culprit
from hedgerow.dask.group_check import check_groups_apart
from hedgerow.dask.local_data import LocalData, Reader
from hedgerow.dask.partitions import Part
from hedgerow.data_warning import collect_warnings
from hedgerow.training.stopping import Step

if TYPE_CHECKING:
    from hedgerow.estimator import Estimator

__all__ = ["Event", "Figures", "Job", "Outcome", "common_warnings", "read_parts", "train_model"]

Figures = dict[str, float]
# A report of a worker: its address, and the figures of a step, or None once it is connected.
Event = tuple[str, Figures | None]


@dataclass(frozen=True, eq=False)
class Job:
    """What all workers need for training.

    Attributes
    ----------
    crf : Estimator
        The ordinary estimator, a copy of which each worker fits.
    reader : Reader
        How each worker reads its data.
    arguments : dict
        Further arguments of the estimator's method `fit`.
    topic : str
        Dask topic on which workers report that they are connected, and the first worker reports
        its progress.
    """

    crf: Estimator
    reader: Reader
    arguments: Mapping[str, Any]
    topic: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of training on one worker.

    Attributes
    ----------
    fitted : dict
        Attributes of the fitted estimator; empty except for the first worker.
    warnings : list
        Messages of warnings and their categories.
    """

    fitted: dict[str, Any]
    warnings: list[tuple[str, type[Warning]]]


def common_warnings(outcomes: Sequence[Outcome]) -> list[tuple[str, type[Warning]]]:
    """Warnings that all workers issue; others may be due to a worker's part of the data."""
    found = dict.fromkeys(outcomes[0].warnings)
    return [each for each in found if all(each in outcome.warnings for outcome in outcomes)]


def read_parts(
    reader: Reader, names: Sequence[str], rows: Sequence[Any], is_alone: bool
) -> LocalData:
    """Read the partitions of one worker, given by their names and rows, see `Part`."""
    with _portable_errors():
        if not is_alone:
            import_module("xgboost")  # takes seconds, while no other worker is waiting
        return reader.read([Part(*each) for each in zip(names, rows, strict=True)])


def train_model(job: Job, data: LocalData, connection: Mapping[str, Any] | None) -> Outcome:
    """Train on the data of one worker.

    `connection` has the arguments of XGBoost's communicator; None for a single worker.
    """
    connecting: AbstractContextManager[Comm] = nullcontext(ALONE)
    if connection is not None:
        connecting = XGBoostComm.connect(connection)
    with _portable_errors(), collect_warnings() as collected, connecting as comm:
        worker = get_worker()
        here: Event = (worker.address, None)
        worker.log_event(job.topic, here)
        fitted = _train(job, data, comm)
    return Outcome(fitted if comm.rank == 0 else {}, collected)


@contextmanager
def _portable_errors() -> Iterator[None]:
    """Replace errors that cannot be sent to another process by errors that can."""
    try:
        yield
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            kinds = (kind for kind in (ValueError, TypeError, OSError) if isinstance(error, kind))
            raise next(kinds, RuntimeError)(str(error)) from None
        raise


def _train(job: Job, data: LocalData, comm: Comm) -> dict[str, Any]:
    crf, worker = copy(job.crf), get_worker()
    crf.set_params(verbose=0)
    if crf.n_jobs is None:
        crf.set_params(n_jobs=worker.state.nthreads)
    if comm.rank == 0:
        callbacks = (*(crf.callbacks or ()), _Reporter(worker, job.topic))
        crf.set_params(callbacks=callbacks)
    check_groups_apart(data, comm)
    raw = data.raw
    given = {"sample_weight": raw.sample_weight, "parents": raw.parents}
    try:
        crf.fit(raw.X, raw.y, comm=comm, **given, **job.arguments)
    except (ValueError, TypeError) as error:
        named = name_culprit(error, data.portions, crf.read_labelled)
        if named is error:
            raise
        raise named from error
    parameters = crf.get_params(deep=False)
    return {
        name: value
        for name, value in vars(crf).items()
        if name not in parameters and name != "seen_groups_"
    }


class _Reporter:
    """A callback that sends the figures of every step to the client."""

    def __init__(self, worker: Any, topic: str) -> None:
        self._worker = worker
        self._topic = topic

    def __call__(self, step: Step) -> None:
        event: Event = (self._worker.address, dict(step.figures))
        self._worker.log_event(self._topic, event)
