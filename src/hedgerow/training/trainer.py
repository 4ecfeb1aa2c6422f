"""Trainer: the interface for training one kind of model, up to the first step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from hedgerow.comm import Comm
from hedgerow.model import Model
from hedgerow.objectives import TrainingObjective
from hedgerow.relational import RelationalFeatures
from hedgerow.sequences import Sequences
from hedgerow.state import State
from hedgerow.training.labelled import Labelled
from hedgerow.training.state import TrainingState
from hedgerow.training.training_set import TrainingSet
from hedgerow.training.update import Update

__all__ = ["Trainer"]

Form = TypeVar("Form")
AnyUpdate = TypeVar("AnyUpdate", bound=Update[Any])


class Trainer(ABC, Generic[Form, AnyUpdate]):
    """Turns parameters and labelled sequences into an `Update`.

    It is made from an estimator, whose parameters have been checked, an objective, and possibly an
    initial model, ``init``. It is used for one training run: `learn` is called first, and either
    `begin` or `resume` last, which release the training sequences. ``Form`` is the form of
    sequences to score, as for `Update`.

    Attributes
    ----------
    objective : TrainingObjective
        The objective.
    n_steps : int
        Maximum number of steps.
    n_before : int
        Number of steps of an initial model.
    extends : Model or None
        A model that training extends: its columns and labels are kept.
    history : mapping of str to lists
        History of the steps of that model.
    free : tuple of str
        Parameters that may change when training is resumed, because they do not affect earlier
        steps.
    data : TrainingSet
        What `learn` returned.
    """

    objective: TrainingObjective
    n_steps: int
    n_before: int = 0
    extends: Model | None = None
    history: Mapping[str, list[float]]
    free: tuple[str, ...]
    data: TrainingSet

    @abstractmethod
    def learn(self, labelled: Labelled) -> TrainingSet:
        """Learn label patterns and columns."""

    @abstractmethod
    def learnt_from(self, comm: Comm) -> str:
        """A digest of X, and of the lengths and parents of its sequences, on all workers."""

    @abstractmethod
    def prepare(self, sequences: Sequences) -> Form:
        """Sequences in the form that can be scored."""

    @abstractmethod
    def begin(self) -> AnyUpdate:
        """The update before its first step."""

    @abstractmethod
    def resume(self, state: State) -> AnyUpdate:
        """The update from a checkpoint; raises ModelFileError."""

    @abstractmethod
    def renew(self, seed: int, share: float) -> Trainer[Form, AnyUpdate]:
        """A new trainer for a small share of the data, with random numbers from a seed.

        Its parameters are the same except for those that depend on the amount of data.
        """

    @abstractmethod
    def attributes(self, update: AnyUpdate, state: TrainingState) -> dict[str, Any]:
        """Attributes that only estimators of this kind have after training."""

    def queries(self, update: AnyUpdate) -> RelationalFeatures | None:
        """What turns facts into attributes of the model, if X contains facts."""
        return self.data.queries

    def explain_end(self, update: AnyUpdate) -> str | None:
        """A message if training did not converge."""
        return None
