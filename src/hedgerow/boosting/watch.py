"""Watch: how trees in training do on data set aside, round by round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.boosting.booster import Boosted, score_positions
from hedgerow.boosting.loop import Evaluate
from hedgerow.evaluation import Evaluation
from hedgerow.sequences import Sequences
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest
from hedgerow.trellis import Scores

__all__ = ["watch"]


def watch(
    watched: tuple[Evaluation, Sequences] | None,
    columns: Columns,
    start: Boosted,
    n_threads: int,
) -> Evaluate:
    """Figures on data set aside, as a function of the trees of one round after the other.

    `start` is the model that the first of them is added to. Without data there are no figures.
    """
    if watched is None:
        return lambda trees, weights: {}
    evaluation, sequences = watched
    bins, targets = columns.bins(sequences, n_threads), evaluation.targets
    trellis = targets.trellis
    scores = score_positions(start.forest, bins, targets, n_threads)

    def measure(trees: Forest, weights: NDArray[np.float64]) -> dict[str, float]:
        trees.add_scores(bins, scores, scores, n_threads)
        part = Scores(scores, trellis.arc_scores(weights), targets.offsets, trellis)
        return evaluation.measure([part], n_threads)

    return measure
