"""Schedule: the objective of each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.objectives import Likelihood, TrainingObjective

__all__ = ["ROUNDS_PER_STAGE", "Schedule"]

LIKELIHOOD = Likelihood()

# Number of rounds of each stage but the last.
ROUNDS_PER_STAGE = 20


@dataclass(frozen=True)
class Schedule:
    """Rounds for the likelihood first, then some for each objective in turn.

    It depends only on the number of a round, so that training can be interrupted and resumed.

    Attributes
    ----------
    warm_rounds : int
        Number of rounds for the likelihood.
    stages : sequence of TrainingObjective
        Objectives of the others; none: all rounds are for the likelihood.
    """

    warm_rounds: int = 0
    stages: Sequence[TrainingObjective] = ()

    def objective_of(self, number: int) -> TrainingObjective:
        """The objective of the round after `number` rounds."""
        if not self.stages or number < self.warm_rounds:
            return LIKELIHOOD
        stage = (number - self.warm_rounds) // ROUNDS_PER_STAGE
        return self.stages[min(stage, len(self.stages) - 1)]

    def changes_at(self, number: int) -> bool:
        """Whether the round after `number` rounds has a different objective from the one before."""
        return number > 0 and self.objective_of(number) is not self.objective_of(number - 1)

    def changes_after(self, number: int) -> bool:
        """Whether a later round has another objective."""
        return bool(self.stages) and self.objective_of(number) is not self.stages[-1]
