"""Update: the interface of a learning algorithm, one step after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from hedgerow.potentials import Potential
from hedgerow.state import State
from hedgerow.trellis import Scores

__all__ = ["Update"]

Form = TypeVar("Form")


class Update(ABC, Generic[Form]):
    """A model in training; a step is a round of boosting, or an iteration of a solver.

    ``Form`` is the form of sequences to score, into which they are converted before the first step.
    """

    n_threads: int
    """Number of threads."""

    @property
    @abstractmethod
    def n_done(self) -> int:
        """Number of steps so far, possibly including those of an initial model."""

    @property
    @abstractmethod
    def n_warm(self) -> int:
        """Number of warm-up steps, during which there is no early stopping."""

    @property
    @abstractmethod
    def has_learnt(self) -> bool:
        """Whether there is anything to evaluate: steps so far, or an initial model."""

    @abstractmethod
    def advance(self) -> bool:
        """Do one step; False if there is none left."""

    @abstractmethod
    def figures(self) -> dict[str, float]:
        """Metrics of the last step on the training data: ``loss``, and others."""

    @abstractmethod
    def score(self, sequences: Form) -> Iterable[Scores]:
        """Scores of other sequences after the last step, in runs of consecutive sequences."""

    @abstractmethod
    def score_kept(self, sequences: Form) -> Iterable[Scores]:
        """Scores of other sequences by the kept model, in runs of consecutive sequences."""

    @abstractmethod
    def keep(self) -> None:
        """Keep the current model, whatever later steps do."""

    @abstractmethod
    def potentials(self) -> tuple[Potential, ...]:
        """The kept model."""

    @property
    @abstractmethod
    def loss(self) -> float:
        """The training loss of the kept model."""

    @abstractmethod
    def pack(self) -> State:
        """The state, for a checkpoint."""
