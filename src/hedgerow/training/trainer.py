"""Trainer: the interface of how one kind of model is trained, up to the first step."""

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
    """What turns parameters and labelled sequences into an `Update`.

    It is made of an estimator, whose parameters have been checked, an objective, and perhaps a
    model to go on from, ``init``. It serves one training: `learn` is called first, and one of
    `begin` and `resume` at last, which let go of the training sequences. ``Form`` is that of
    sequences to score, as for `Update`.

    Attributes
    ----------
    objective : TrainingObjective
        What the model is trained for.
    n_steps : int
        Maximum number of steps.
    n_before : int
        Number of steps of an initial model.
    extends : Model or None
        A model that training adds to: its columns and labels stay.
    history : mapping of str to lists
        Figures of the steps of that model.
    free : tuple of str
        Parameters that may change when a training is resumed: they do not touch earlier steps.
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
        """Learn how labels depend on each other, and what the columns are."""

    @abstractmethod
    def learnt_from(self, comm: Comm) -> str:
        """A digest of all that is learnt from but for the labels, on all workers."""

    @abstractmethod
    def prepare(self, sequences: Sequences) -> Form:
        """Sequences in the form that can be scored."""

    @abstractmethod
    def begin(self) -> AnyUpdate:
        """The update before its first step."""

    @abstractmethod
    def resume(self, state: State) -> AnyUpdate:
        """The update as a checkpoint has it; raises ModelFileError."""

    @abstractmethod
    def renew(self, seed: int, share: float) -> Trainer[Form, AnyUpdate]:
        """A trainer that begins anew on a small share of the data, random numbers from a seed.

        Its parameters are the same but for those that depend on how many data there are.
        """

    @abstractmethod
    def attributes(self, update: AnyUpdate, state: TrainingState) -> dict[str, Any]:
        """Attributes that only estimators of this kind have after training."""

    def queries(self, update: AnyUpdate) -> RelationalFeatures | None:
        """What finds the attributes of the model, if X holds facts."""
        return self.data.queries

    def explain_end(self, update: AnyUpdate) -> str | None:
        """A message if training did not come to a good end."""
        return None
