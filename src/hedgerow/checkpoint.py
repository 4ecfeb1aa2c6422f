"""Checkpoints: an interrupted training run is resumed where it stopped.

A checkpoint is written like a model file: safetensors, JSON and a digest, atomically. It contains
the training state, and what identifies the training run: the kind of estimator, its parameters, and
digests of its data.
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

# Parameters that do not affect what is learned; a base model is compared by its fingerprint.
FREE = frozenset({"n_jobs", "verbose", "callbacks", "base"})
ADVICE = "delete the file to start again, or pass another path"


class Checkpoint:
    """A file for the training state, so that training can be resumed if the process is killed.

    Pass it to ``fit(..., checkpoint=...)``. If the file exists, training resumes from it; otherwise
    it starts from the beginning. The model is the same, bit for bit, as without an interruption.
    The file is kept when training is over; it can be used only with the same estimator, parameters
    and data, and the same version of hedgerow (`fit` lists the parameters that may change).
    Parameters are compared by value: a set of labels equals a sorted list of them, and 1 equals
    1.0. See `hedgerow.objectives.Objective` for how objectives are compared. Only one training run
    at a time can use it: any other raises a BlockingIOError.

    Parameters
    ----------
    path : str or path
        The file. It is written atomically, so there is a valid one at any moment.
    every : int, default 10
        Number of rounds of `TreeCRF`, or iterations of `LinearCRF`, between checkpoints. The file
        is also written at the end.

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
            raise TypeError(f"path is of type {type(path).__name__}; expected a file path")
        check_number("every", every, minimum=1, integer=True)
        self.path = Path(path)
        self.every = int(every)

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, every={self.every})"


def check_checkpoint(checkpoint: Any) -> None:
    """Raise TypeError if it is not a checkpoint."""
    if not isinstance(checkpoint, (Checkpoint, type(None))):
        raise TypeError(
            f"checkpoint is {checkpoint!r}; expected a hedgerow.Checkpoint, made from the path of "
            "a file"
        )


@dataclass(frozen=True)
class Identity:
    """What identifies a training run.

    Attributes
    ----------
    estimator : str
        Its class.
    parameters : mapping
        The parameters that affect what is learned, described when training began, since objects may
        change while they are used.
    fingerprints : dict
        Digests of the training data, None for what is not given.
    free : collection of str
        Parameters that may change when training is resumed, since they do not affect what was
        learned so far.
    """

    estimator: str
    parameters: Mapping[str, Any]
    fingerprints: dict[str, str | None]
    free: Collection[str] = ()

    @classmethod
    def of(
        cls, estimator: Any, fingerprints: dict[str, str | None], free: Collection[str] = ()
    ) -> Identity:
        """The identity of a training run of `estimator` that is about to begin or to be resumed."""
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
        """How the training run of a file differs from this one; None if it does not."""
        mine = json.loads(json.dumps(self.to_json()))
        for name, what in (("version", "hedgerow"), ("estimator", "a")):
            if kept[name] != mine[name]:
                return f"it was written by {what} {kept[name]} and this is {what} {mine[name]}"
        changes = [
            f"{name} was {show(kept['parameters'][name])} and is {show(value)} now"
            for name, value in mine["parameters"].items()
            if name not in self.free and value != kept["parameters"][name]
        ]
        if not changes:  # otherwise the data may differ for this reason alone
            changes = [
                _tell_data_apart(name, kept["fingerprints"][name], now)
                for name, now in mine["fingerprints"].items()
                if now != kept["fingerprints"][name]
            ]
        return ", ".join(changes) or None


class Record:
    """The checkpoint of one training run, locked within a ``with`` block."""

    def __init__(self, checkpoint: Checkpoint, identity: Identity) -> None:
        self._path = checkpoint.path
        self._every = checkpoint.every
        self._identity = identity
        self._n_written: int | None = None

    def __enter__(self) -> Record:
        """Lock the file; raises OSError if another training run uses it or it cannot be written."""
        check_place(self._path)
        self._lock = Lock.acquire(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def read(self, unpack: Callable[[State], TrainingState]) -> TrainingState | None:
        """The training state, read by `unpack`; None if training has not begun.

        Raises ModelFileError if the file is damaged, ValueError if it belongs to another training
        run.
        """
        path = self._path
        if self._lock.is_safe:
            remove_leftovers(path)
        if not path.exists():
            return None
        advice = ADVICE
        try:
            kind, state = persist.read(path.read_bytes())
            if kind != persist.CHECKPOINT:
                advice = "pass another path"  # nobody should delete a model
                raise ModelFileError(f"it holds a {kind}, not a checkpoint")
            with expecting("its description of the training run is not valid"):
                difference = self._identity.difference(state.metadata["identity"])
            if difference is not None:
                raise ValueError(
                    f"the checkpoint {str(path)!r} belongs to another training run: {difference}; "
                    f"{ADVICE}"
                )
            return unpack(state)
        except persist.ForeignFileError as error:
            raise ModelFileError(
                f"cannot resume from the checkpoint {str(path)!r}: the file was not written by "
                "hedgerow, or its beginning is damaged; pass another path, or delete the file if "
                "it is a checkpoint"
            ) from error
        except ModelFileError as error:
            raise ModelFileError(
                f"cannot resume from the checkpoint {str(path)!r}: {error}; {advice}"
            ) from error

    def check_limit(self, name: str, limit: int, n_done: int) -> None:
        """Raise ValueError if there are already more steps than the parameter `name` allows."""
        if n_done > limit:
            raise ValueError(
                f"the checkpoint {str(self._path)!r} has {n_done} rounds or iterations already, "
                f"but {name} is {limit}; increase it, or {ADVICE}"
            )

    def note(self, n_done: int, pack: Callable[[], State], *, last: bool = False) -> None:
        """Write the training state if it is due after this many steps, or at the last one."""
        if n_done != self._n_written and (last or n_done % self._every == 0):
            if not self._lock.is_held:
                raise RuntimeError(
                    f"the checkpoint {str(self._path)!r} belongs to the process that this one was "
                    "forked from, which continues training; end this one with os._exit"
                )
            identity = State({}, {"identity": self._identity.to_json()})
            persist.write(self._path, persist.CHECKPOINT, identity | pack())
            self._n_written = n_done


def _tell_data_apart(name: str, before: str | None, now: str | None) -> str:
    if before is None:
        return f"{name} was not given and is given now"
    if now is None:
        return f"{name} was given and is not given now"
    return f"{name} has changed"
