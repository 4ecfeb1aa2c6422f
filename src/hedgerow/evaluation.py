"""Evaluation: how a model in training does on data set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.labels import read_labels
from hedgerow.objectives import Targets, TrainingObjective
from hedgerow.sequences import Sequences
from hedgerow.training import TrainingSet
from hedgerow.trellis import Scores


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Labels of an ``eval_set``.

    Attributes
    ----------
    targets : Targets
        The labels.
    objective : TrainingObjective
        What the model is trained for.
    """

    targets: Targets
    objective: TrainingObjective

    @classmethod
    def read(
        cls,
        eval_set: Any,
        data: TrainingSet,
        read: Callable[[Any, Any], Sequences],
        *,
        missing_label: Any,
        objective: TrainingObjective,
    ) -> tuple[Evaluation, Sequences]:
        """Check an ``eval_set``; returns its X beside it, for the model to score.

        Parameters
        ----------
        eval_set
            (X, y) or (X, y, groups), as the user gave it.
        data
            What the model is trained on.
        read
            Turns X and groups into sequences, and checks them against those of training.
        missing_label
            A label that says that a label is not known.
        objective
            What the model is trained for.
        """
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
            raise ValueError("eval_set must be (X, y), or (X, y, groups) for a flat X")
        X, y, groups = eval_set if len(eval_set) == 3 else (*eval_set, None)
        try:
            sequences = read(X, groups)
            column = read_labels(y, sequences, missing_label=missing_label)
            if objective.needs_all_labels:
                column.require_all(sequences, objective.needs_all_labels)
            codes = data.labels.encode(column, sequences)
            if data.grammar.constraints is not None:
                data.grammar.constraints.check(codes, sequences, data.labels)
            if not (codes >= 0).any():
                raise ValueError("every label of y is missing; at least one is needed")
        except (TypeError, ValueError) as error:
            raise type(error)(f"in eval_set: {error}") from error
        return cls(Targets(sequences.offsets, codes, data.trellis), objective), sequences

    def measure(self, parts: Iterable[Scores], n_threads: int) -> dict[str, float]:
        """Loss a labelled position, and share of those labelled right by default.

        ``parts`` are the scores of all sequences, in one or more runs of consecutive ones.
        """
        loss, codes = self.objective.evaluate(iter(parts), self.targets, n_threads=n_threads)
        n_right, n_known = int(np.sum(codes == self.targets.codes)), self.targets.n_known
        return {"eval_loss": loss / n_known, "eval_accuracy": n_right / n_known}
