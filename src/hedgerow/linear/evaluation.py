"""Evaluation: how a model in training does on data set aside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow import trellis
from hedgerow.encode import check_schema, encode
from hedgerow.labels import read_labels
from hedgerow.linear.attributes import attribute_rows
from hedgerow.linear.training_set import TrainingSet
from hedgerow.linear.weights import LinearWeights
from hedgerow.objectives import Targets, log_likelihoods
from hedgerow.sequences import check_finite


class Evaluation:
    """An ``eval_set``, read once: (X, y) or (X, y, groups)."""

    def __init__(
        self,
        eval_set: tuple[Any, ...],
        data: TrainingSet,
        *,
        model: str,
        missing_label: Any,
        n_threads: int,
    ) -> None:
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
            raise ValueError("eval_set must be (X, y), or (X, y, groups) for a flat X")
        try:
            self._read(*eval_set, data=data, model=model, missing_label=missing_label)
        except (TypeError, ValueError) as error:
            raise type(error)(f"in eval_set: {error}") from error
        self.n_threads = n_threads

    def _read(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        *,
        data: TrainingSet,
        model: str,
        missing_label: Any,
    ) -> None:
        sequences = encode(X, groups, data.index, grow=False)
        check_schema(data.schema, sequences.schema, model)
        check_finite(sequences, model)
        # Attributes have the names of the columns used to fit, also if X has none or others.
        sequences = replace(sequences, schema=data.schema)
        self.offsets = sequences.offsets
        self.rows = attribute_rows(sequences, data.index)
        column = read_labels(y, sequences, missing_label=missing_label)
        self.codes = data.labels.encode(column, sequences)
        if data.grammar.constraints is not None:
            data.grammar.constraints.check(self.codes, sequences, data.labels)
        self.n_known = int(np.sum(self.codes >= 0))
        if not self.n_known:
            raise ValueError("every label of y is missing; at least one is needed")

    def measure(self, weights: LinearWeights) -> dict[str, float]:
        """Negative log-likelihood a labelled position, and share of those labelled right."""
        loss, n_right, begin = 0.0, 0, 0
        for part in weights.potentials(self.rows, self.offsets, self.n_threads):
            codes = self.codes[begin : begin + part.n_positions]
            targets = Targets(part.offsets, codes, len(weights.biases), part.automaton)
            best = trellis.viterbi(part, n_jobs=self.n_threads)
            loss -= float(log_likelihoods(part, targets, n_threads=self.n_threads).sum())
            n_right += int(np.sum(best == codes))
            begin += len(codes)
        return {"eval_loss": loss / self.n_known, "eval_accuracy": n_right / self.n_known}
