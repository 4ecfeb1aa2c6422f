"""Softmax margin: the likelihood with the costs of mistakes added to the scores.

For each sequence with the labels y, and the cost Delta(y', y) of another labelling y', the loss is
(Gimpel and Smith 2010)

    log sum_y' exp(score(y') + Delta(y', y)) - score(y),

the hinge loss of `hedgerow.objectives.max_margin` with a softmax instead of the maximum. The cost
is a sum over positions, so this is the negative log-likelihood for scores of nodes with the costs
added: convex, smooth, and an upper bound on the cost of the labelling with the largest score. Its
slopes are the expected counts with these scores minus the observed ones, and its curvature is their
covariance, so bounds on the curvature hold with the mixing rates of the same scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.decoding import Decode
from hedgerow.exact_sums import ExactTotal
from hedgerow.labels import Labels
from hedgerow.objectives.label_costs import LabelCosts
from hedgerow.objectives.likelihood import Likelihood, negative_log_likelihood
from hedgerow.objectives.targets import Targets
from hedgerow.objectives.training_objective import (
    EdgeMemory,
    Measured,
    TrainingObjective,
    evaluate_parts,
)
from hedgerow.trellis import Scores

__all__ = ["SoftmaxMargin"]

LIKELIHOOD = Likelihood()


@dataclass(frozen=True, eq=False)
class SoftmaxMargin(TrainingObjective):
    """Negative log-likelihood with costs added to the scores of wrong labels.

    Positions with an unknown label have no costs. The weight of a sequence multiplies its loss.
    With position weights the loss is the sum of -w_t log P(y_t | labels before t), where P is
    computed from the scores with the costs of all positions added.

    Attributes
    ----------
    costs : LabelCosts
        The user's costs.
    by_code : (K + 1, K) or None
        See `LabelCosts.among`; None until the labels are known.
    """

    costs: LabelCosts
    by_code: NDArray[np.float64] | None = None
    decode = None
    needs_warm_start = False
    has_unit_slopes = True
    adds_costs = True

    def for_labels(self, labels: Labels) -> SoftmaxMargin:
        """The same objective with the costs by code."""
        return replace(self, by_code=self.costs.among(labels))

    def measure(
        self,
        scores: Scores,
        targets: Targets,
        *,
        n_threads: int,
        out: NDArray[np.float64] | None = None,
        mixing: bool = False,
        memory: EdgeMemory | None = None,
    ) -> Measured:
        """What the likelihood measures, for scores with costs."""
        return LIKELIHOOD.measure(
            self._add_costs(scores, targets),
            targets,
            n_threads=n_threads,
            out=out,
            mixing=mixing,
            memory=memory,
        )

    def evaluate(
        self, parts: Iterator[Scores], targets: Targets, *, decode: Decode, n_threads: int
    ) -> tuple[float, NDArray[np.int32]]:
        """The loss with costs, and labels predicted without costs."""
        return evaluate_parts(self._loss, parts, targets, decode=decode, n_threads=n_threads)

    def _loss(self, scores: Scores, targets: Targets, n_threads: int) -> ExactTotal:
        return negative_log_likelihood(self._add_costs(scores, targets), targets, n_threads)

    def _add_costs(self, scores: Scores, targets: Targets) -> Scores:
        """A copy with costs, so that the scores themselves are unchanged."""
        assert self.by_code is not None, "the labels are not known yet"
        nodes = self.by_code[targets.codes]
        nodes += scores.nodes
        return replace(scores, nodes=nodes)
