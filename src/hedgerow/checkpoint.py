"""Checkpoints: a training that was ended from outside goes on where it was.

A checkpoint is written as a model file is: safetensors, JSON and a digest, whole or not at all. It
holds what the training needs to go on, and what tells whether it is the same training: the kind of
estimator, its parameters, and digests of its data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hedgerow import persist, version
from hedgerow.atomic_write import check_place, remove_leftovers
from hedgerow.description import describe, show
from hedgerow.lock import Lock
from hedgerow.parameters import check_number
from hedgerow.state import ModelFileError, State, expecting

__all__ = ["Checkpoint", "Identity", "Record", "check_checkpoint"]

TrainingState = TypeVar("TrainingState")

# Parameters that do not change what is learnt; of a base model the fingerprint is compared.
FREE = frozenset({"n_jobs", "verbose", "callbacks", "base"})
ADVICE = "delete the file to begin anew, or pass another path"


class Checkpoint:
    """Where a training is kept, so that it can go on after a kill.

    Pass it to ``fit(..., checkpoint=...)``. If the file exists, training resumes from it, else it
    begins. What comes out is the same model, bit for bit, as without an interruption. The file
    stays when training is over; it is for the same estimator, parameters and data only. Parameters
    are the same if they mean the same: a set of labels is a sorted list of them, 1 is 1.0. For
    what objectives are compared by, see `hedgerow.objectives.Objective`.
    One training at a time can use it: any other is refused with a BlockingIOError.

    Parameters
    ----------
    path : str or path
        The file. It is replaced as a whole: there is a valid one at any moment.
    every : int, default 10
        It is written after every so many rounds of `TreeCRF`, or iterations of `LinearCRF`, and at
        the end.

    Examples
    --------
    >>> import tempfile
    >>> from hedgerow import Checkpoint, LinearCRF
    >>> X, y = [[{"word": "the"}, {"word": "man"}]], [["D", "N"]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     crf = LinearCRF().fit(X, y, checkpoint=Checkpoint(f"{folder}/training", every=5))
    >>> crf.predict(X)[0].tolist()
    ['D', 'N']
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 10) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path is of type {type(path).__name__}; expected that of a file")
        check_number("every", every, minimum=1, integer=True)
        self.path = Path(path)
        self.every = int(every)

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, every={self.every})"


def check_checkpoint(checkpoint: Any) -> None:
    """Raise TypeError for what is no checkpoint."""
    if not isinstance(checkpoint, (Checkpoint, type(None))):
        raise TypeError(
            f"checkpoint is {checkpoint!r}; expected a hedgerow.Checkpoint, made from the path of "
            "a file"
        )


@dataclass(frozen=True)
class Identity:
    """What makes a training the one that it is.

    Attributes
    ----------
    estimator : str
        Its class.
    parameters : mapping
        Those it was made with that have a say in what is learnt, described when it began: objects
        may change while they are used.
    fingerprints : dict
        Digests of what it learns from, None for what is not given.
    free : collection of str
        Parameters that may change while it goes on, since they do not touch what was learnt so far.
    """

    estimator: str
    parameters: Mapping[str, Any]
    fingerprints: dict[str, str | None]
    free: Collection[str] = ()

    @classmethod
    def of(
        cls, estimator: Any, fingerprints: dict[str, str | None], free: Collection[str] = ()
    ) -> Identity:
        """The identity of a training of `estimator` that is about to begin or to go on."""
        parameters = {
            name: describe(name, value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in FREE
        }
        return cls(type(estimator).__name__, parameters, fingerprints, free)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "version": version.__version__,
            "estimator": self.estimator,
            "parameters": dict(self.parameters),
            "fingerprints": self.fingerprints,
        }

    def difference(self, kept: Mapping[str, Any]) -> str | None:
        """How the training that a file is of differs from this one; None if it does not."""
        mine = json.loads(json.dumps(self.to_json()))
        for name, what in (("version", "hedgerow"), ("estimator", "a")):
            if kept[name] != mine[name]:
                return f"it was written by {what} {kept[name]} and this is {what} {mine[name]}"
        changes = [
            f"{name} was {show(kept['parameters'][name])} and is {show(value)} now"
            for name, value in mine["parameters"].items()
            if name not in self.free and value != kept["parameters"][name]
        ]
        if not changes:  # else the data may be others for no other reason
            changes = [
                _tell_data_apart(name, kept["fingerprints"][name], now)
                for name, now in mine["fingerprints"].items()
                if now != kept["fingerprints"][name]
            ]
        return ", ".join(changes) or None


class Record:
    """The checkpoint of one training, which is the only one to use it within a ``with``."""

    def __init__(self, checkpoint: Checkpoint, identity: Identity) -> None:
        self._path = checkpoint.path
        self._every = checkpoint.every
        self._identity = identity
        self._n_written: int | None = None

    def __enter__(self) -> Record:
        """Lock the file; raises OSError if another training uses it or it cannot be written."""
        check_place(self._path)
        self._lock = Lock.acquire(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def read(self, unpack: Callable[[State], TrainingState]) -> TrainingState | None:
        """The training state, as `unpack` reads it; None if the training has not begun.

        Raises ModelFileError if the file is damaged, ValueError if it is of another training.
        """
        path = self._path
        if self._lock.is_safe:
            remove_leftovers(path)
        if not path.exists():
            return None
        try:
            kind, state = persist.read(path.read_bytes())
            if kind != persist.CHECKPOINT:
                raise ModelFileError(f"it holds a {kind}, not a checkpoint")
            with expecting("whose training it is"):
                difference = self._identity.difference(state.metadata["identity"])
            if difference is not None:
                raise ValueError(
                    f"the checkpoint {str(path)!r} is of another training: {difference}; {ADVICE}"
                )
            return unpack(state)
        except ModelFileError as error:
            raise ModelFileError(
                f"cannot resume from the checkpoint {str(path)!r}: {error}; {ADVICE}"
            ) from error

    def check_limit(self, name: str, limit: int, n_done: int) -> None:
        """Raise ValueError if more was done than the parameter `name` now allows."""
        if n_done > limit:
            raise ValueError(
                f"the checkpoint {str(self._path)!r} is after {n_done} rounds or iterations and "
                f"{name} is {limit} now; raise it, or {ADVICE}"
            )

    def note(self, n_done: int, pack: Callable[[], State], *, last: bool = False) -> None:
        """Write the training state if it is due after so many steps, or at the last one."""
        if n_done != self._n_written and (last or n_done % self._every == 0):
            if not self._lock.is_held:
                raise RuntimeError(
                    f"the checkpoint {str(self._path)!r} belongs to the process that this one was "
                    "forked from, which continues the training; end this one with os._exit"
                )
            identity = State({}, {"identity": self._identity.to_json()})
            persist.write(self._path, persist.CHECKPOINT, identity | pack())
            self._n_written = n_done


def _tell_data_apart(name: str, before: str | None, now: str | None) -> str:
    if before is None:
        return f"{name} was not given and is given now"
    if now is None:
        return f"{name} was given and is not given now"
    return f"{name} is not what it was"
