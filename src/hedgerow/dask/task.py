"""Task: what one worker of a cluster does to train a model together with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributed import get_worker

from hedgerow.comm import ALONE, Comm, WorkerError, XGBoostComm
from hedgerow.dask.culprit import name_culprit
from hedgerow.dask.group_check import check_groups_apart
from hedgerow.dask.local_data import Reader
from hedgerow.dask.partitions import Part
from hedgerow.training.stopping import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.estimator import Estimator

__all__ = ["Job", "Outcome", "run_task"]


@dataclass(frozen=True, eq=False)
class Job:
    """What all workers have to know.

    Attributes
    ----------
    crf : Estimator
        An ordinary estimator that is not fitted yet.
    reader : Reader
        How its data are read.
    arguments : dict
        Further arguments of its method `fit`.
    topic : str
        Where the first worker reports its progress.
    """

    crf: Estimator
    reader: Reader
    arguments: Mapping[str, Any]
    topic: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """How it went on one worker.

    Attributes
    ----------
    fitted : dict or None
        Attributes of the fitted estimator; only of the first worker.
    error : Exception or None
        Why it failed.
    """

    fitted: dict[str, Any] | None = None
    error: Exception | None = None

    @property
    def is_consequence(self) -> bool:
        """Whether it failed because another worker did."""
        return isinstance(self.error, WorkerError)


def run_task(
    job: Job, names: Sequence[str], rows: Sequence[Any], collective: Mapping[str, Any] | None
) -> Outcome:
    """Train on the partitions of one worker, given by their names and rows, see `Part`.

    Errors are returned, not raised: the client finds out which one caused the others.
    `collective` has the arguments of XGBoost's communicator; None for one worker alone.
    """
    parts = [Part(*each) for each in zip(names, rows, strict=True)]
    try:
        with _connect(collective) as comm:
            fitted = _train(job, parts, comm)
            return Outcome(fitted if comm.rank == 0 else None)
    except Exception as error:
        return Outcome(error=error)


@contextmanager
def _connect(collective: Mapping[str, Any] | None) -> Iterator[Comm]:
    if collective is None:
        yield ALONE
        return
    import xgboost
    from xgboost.collective import CommunicatorContext

    try:
        with xgboost.config_context(verbosity=0), CommunicatorContext(**collective):
            yield XGBoostComm()
    except xgboost.core.XGBoostError as error:
        raise WorkerError(f"the workers could not be connected: {error}") from error


def _train(job: Job, parts: Sequence[Part], comm: Comm) -> dict[str, Any]:
    crf, worker = copy(job.crf), get_worker()
    crf.set_params(verbose=0)
    if crf.n_jobs is None:
        crf.set_params(n_jobs=worker.state.nthreads)
    own_callbacks = tuple(crf.callbacks or ())
    if comm.rank == 0:
        crf.set_params(callbacks=(*own_callbacks, _Reporter(worker, job.topic)))
    data = job.reader.read(parts)
    check_groups_apart(data, comm)
    raw = data.raw
    given = {"sample_weight": raw.sample_weight, "parents": raw.parents}
    try:
        crf.fit(raw.X, raw.y, comm=comm, **given, **job.arguments)
    except (ValueError, TypeError) as error:
        raise name_culprit(error, data.portions, crf.read_labelled) from error
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
        self._worker.log_event(self._topic, (step.number, dict(step.figures)))
