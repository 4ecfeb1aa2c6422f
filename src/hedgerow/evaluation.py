"""Evaluation: how a model in training does on data set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import trellis
from hedgerow.labels import read_labels
from hedgerow.objectives import Targets, log_likelihoods
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
    """

    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    n_labels: int

    @classmethod
    def read(
        cls,
        eval_set: Any,
        data: TrainingSet,
        read: Callable[[Any, Any], Sequences],
        *,
        missing_label: Any,
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
        """
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
            raise ValueError("eval_set must be (X, y), or (X, y, groups) for a flat X")
        X, y, groups = eval_set if len(eval_set) == 3 else (*eval_set, None)
        try:
            sequences = read(X, groups)
            column = read_labels(y, sequences, missing_label=missing_label)
            codes = data.labels.encode(column, sequences)
            if data.grammar.constraints is not None:
                data.grammar.constraints.check(codes, sequences, data.labels)
            if not (codes >= 0).any():
                raise ValueError("every label of y is missing; at least one is needed")
        except (TypeError, ValueError) as error:
            raise type(error)(f"in eval_set: {error}") from error
        return cls(sequences.offsets, codes, len(data.labels.classes)), sequences

    def measure(self, parts: Iterable[Potentials], n_threads: int) -> dict[str, float]:
        """Negative log-likelihood a labelled position, and share of those labelled right.

        ``parts`` are the scores of all sequences, in one or more runs of consecutive ones.
        """
        loss, n_right, begin = 0.0, 0, 0
        for part in parts:
            codes = self.codes[begin : begin + part.n_positions]
            targets = Targets(part.offsets, codes, self.n_labels, part.automaton)
            best = trellis.viterbi(part, n_jobs=n_threads)
            loss -= float(log_likelihoods(part, targets, n_threads=n_threads).sum())
            n_right += int(np.sum(best == codes))
            begin += part.n_positions
        n_known = int(np.sum(self.codes >= 0))
        return {"eval_loss": loss / n_known, "eval_accuracy": n_right / n_known}
