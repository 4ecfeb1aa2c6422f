"""Watch: how weights in training do on data set aside."""

from __future__ import annotations

from collections.abc import Callable

from hedgerow import _core
from hedgerow.evaluation import Evaluation
from hedgerow.linear.attributes import attribute_rows
from hedgerow.linear.weights import LinearWeights
from hedgerow.sequences import Sequences

__all__ = ["Evaluate", "watch"]

# Figures on data set aside, given the weights.
Evaluate = Callable[[LinearWeights], dict[str, float]]


def watch(
    watched: tuple[Evaluation, Sequences] | None, index: _core.StringIndex, n_threads: int
) -> Evaluate:
    """Figures on data set aside, as a function of the weights; without data there are none."""
    if watched is None:
        return lambda weights: {}
    evaluation, sequences = watched
    rows = attribute_rows(sequences, index)

    def measure(weights: LinearWeights) -> dict[str, float]:
        parts = weights.scores(rows, evaluation.targets.offsets, n_threads)
        return evaluation.measure(parts, n_threads)

    return measure
