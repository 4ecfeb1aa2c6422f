"""Evaluation: how a model in training does on data set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import trellis
from hedgerow.decoding import decode_marginals
from hedgerow.labels import Constraints, read_labels
from hedgerow.objectives import (
    Choice,
    Objective,
    Targets,
    log_likelihoods,
    max_margin,
    measure_loss,
)
from hedgerow.sequences import Sequences
from hedgerow.training import TrainingSet
from hedgerow.trellis import Potentials


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Labels of an ``eval_set``.

    Attributes
    ----------
    offsets : (S + 1,) int64
        Where its sequences begin and end.
    codes : (N,) int32
        Label of each position, -1 if it is not known.
    n_labels : int
        Number of labels, K.
    constraints : Constraints or None
        What is forbidden.
    objective : Choice
        What the model is trained for.
    """

    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    n_labels: int
    constraints: Constraints | None
    objective: Choice

    @classmethod
    def read(
        cls,
        eval_set: Any,
        data: TrainingSet,
        read: Callable[[Any, Any], Sequences],
        *,
        missing_label: Any,
        objective: Choice,
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
            if objective == "max_margin":
                column.require_all(sequences, "objective='max_margin' compares whole labellings")
            codes = data.labels.encode(column, sequences)
            if data.grammar.constraints is not None:
                data.grammar.constraints.check(codes, sequences, data.labels)
            if not (codes >= 0).any():
                raise ValueError("every label of y is missing; at least one is needed")
        except (TypeError, ValueError) as error:
            raise type(error)(f"in eval_set: {error}") from error
        n_labels, constraints = len(data.labels.classes), data.grammar.constraints
        return cls(sequences.offsets, codes, n_labels, constraints, objective), sequences

    def measure(self, parts: Iterable[Potentials], n_threads: int) -> dict[str, float]:
        """Loss a labelled position, and share of those labelled right by default.

        ``parts`` are the scores of all sequences, in one or more runs of consecutive ones.
        """
        if isinstance(self.objective, str):
            loss, n_right = self._measure_labellings(parts, n_threads)
        else:
            loss, n_right = self._measure_marginals(self.objective, parts, n_threads)
        n_known = int(np.sum(self.codes >= 0))
        return {"eval_loss": loss / n_known, "eval_accuracy": n_right / n_known}

    def _measure_labellings(self, parts: Iterable[Potentials], n_threads: int) -> tuple[float, int]:
        """Loss, and number of labels that are right in the most probable labellings."""
        loss, n_right, begin = 0.0, 0, 0
        for part in parts:
            codes = self.codes[begin : begin + part.n_positions]
            targets = Targets(part.offsets, codes, self.n_labels, part.automaton)
            if self.objective == "max_margin":
                loss += max_margin(part, targets, n_threads=n_threads).loss
            else:
                loss -= float(log_likelihoods(part, targets, n_threads=n_threads).sum())
            n_right += int(np.sum(trellis.viterbi(part, n_jobs=n_threads) == codes))
            begin += part.n_positions
        return loss, n_right

    def _measure_marginals(
        self, objective: Objective, parts: Iterable[Potentials], n_threads: int
    ) -> tuple[float, int]:
        """Loss, and number of labels that are right in the light of their marginals."""
        marginals = np.empty((len(self.codes), self.n_labels))
        begin = 0
        for part in parts:
            out = marginals[begin : begin + part.n_positions]
            trellis.forward_backward(part, pairs=None, out=out, n_jobs=n_threads)
            begin += part.n_positions
        targets = Targets(self.offsets, self.codes, self.n_labels)
        loss = measure_loss(objective, marginals, targets)
        best = decode_marginals(marginals, self.offsets, self.constraints, n_jobs=n_threads)
        return loss, int(np.sum(best == self.codes))
