"""Update: the interface of what learns, one step after another."""

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

    ``Form`` is that of sequences to score: what the update turns them into before the first step.
    """

    n_threads: int
    """Number of threads."""

    @property
    @abstractmethod
    def n_done(self) -> int:
        """Number of steps so far; those of an initial model may be among them."""

    @property
    @abstractmethod
    def n_warm(self) -> int:
        """How many of the first steps only prepare the others: training is not stopped in them."""

    @property
    @abstractmethod
    def has_learnt(self) -> bool:
        """Whether there is something to evaluate: steps, or an initial model."""

    @abstractmethod
    def advance(self) -> bool:
        """Do one step; False if there is none left."""

    @abstractmethod
    def figures(self) -> dict[str, float]:
        """What the last step gave on the training data: ``loss``, and others."""

    @abstractmethod
    def score(self, sequences: Form) -> Iterable[Scores]:
        """Scores of other sequences after the last step, in runs of consecutive ones."""

    @abstractmethod
    def score_kept(self, sequences: Form) -> Iterable[Scores]:
        """Scores of other sequences by what was kept, in runs of consecutive ones."""

    @abstractmethod
    def keep(self) -> None:
        """Keep what is learnt so far, whatever later steps bring."""

    @abstractmethod
    def potentials(self) -> tuple[Potential, ...]:
        """What was kept."""

    @property
    @abstractmethod
    def loss(self) -> float:
        """The training loss of what was kept."""

    @abstractmethod
    def pack(self) -> State:
        """All of it, for a checkpoint."""
