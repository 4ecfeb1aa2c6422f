"""Maximum margin: the hinge loss of whole sequences, and its subgradient.

For each sequence with the labels y, and the cost Delta(y', y) of the labels that another labelling
y' gets wrong, the loss is (Gross et al. 2006, Eq. 5)

    max(0, max_y' [Delta(y', y) + score(y')] - score(y)).

It is not smooth: if several labellings attain the maximum, the slopes are those of one of them.
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
from hedgerow.objectives.targets import Targets
from hedgerow.objectives.training_objective import (
    EdgeMemory,
    Measured,
    Slopes,
    TrainingObjective,
    evaluate_parts,
)
from hedgerow.trellis import Posteriors, Scores, flatten_edges, forward_backward, viterbi

__all__ = ["MaxMargin"]


@dataclass(frozen=True, eq=False)
class MaxMargin(TrainingObjective):
    """Structured hinge loss; its slopes are the counts of the worst labelling minus the true ones.

    With position weights, a cost is multiplied by the weight of its position relative to that of
    its sequence. The weight of a sequence multiplies its loss. All labels must be known, and their
    scores finite.

    Attributes
    ----------
    costs : LabelCosts
        The user's costs.
    by_code : (K + 1, K) or None
        See `LabelCosts.among`; None until the labels are known.
    """

    costs: LabelCosts
    by_code: NDArray[np.float64] | None = None
    decode = "viterbi"
    needs_all_labels = "objective='max_margin'"
    is_smooth = False

    def for_labels(self, labels: Labels) -> MaxMargin:
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
        """The hinge losses of all sequences."""
        assert targets.partial is None
        assert self.by_code is not None, "the labels are not known yet"
        nodes = np.empty_like(scores.nodes) if out is None else out
        factors = _cost_factors(targets)
        given = replace(targets, position_weights=None)
        np.multiply(self.by_code[given.codes], factors[:, None], out=nodes)
        nodes += scores.nodes
        worst = replace(given, codes=viterbi(replace(scores, nodes=nodes), n_threads=n_threads))

        sequences = np.repeat(np.arange(scores.n_sequences), np.diff(targets.offsets))
        costs = factors * self.by_code[given.codes, worst.codes]
        gains = _gains(scores, given, worst) + costs
        hinges = np.bincount(sequences, gains, scores.n_sequences).clip(min=0)
        if targets.sequence_weights is not None:
            hinges *= targets.sequence_weights
        # A sequence without a loss, for example because of its weight, has no slopes.
        worst = replace(worst, codes=np.where(hinges[sequences] > 0, worst.codes, given.codes))
        return Margin(targets.sum(hinges), scores, given, worst, n_threads)

    def evaluate(
        self, parts: Iterator[Scores], targets: Targets, *, decode: Decode, n_threads: int
    ) -> tuple[float, NDArray[np.int32]]:
        """The hinge loss, and labels predicted without costs."""
        return evaluate_parts(self._loss, parts, targets, decode=decode, n_threads=n_threads)

    def _loss(self, scores: Scores, targets: Targets, n_threads: int) -> ExactTotal:
        return self.measure(scores, targets, n_threads=n_threads).total


@dataclass(frozen=True, eq=False)
class Margin(Measured):
    """The true labellings, and those with the largest sum of score and cost."""

    total: ExactTotal
    """Sum of the hinges with their weights."""
    scores: Scores
    given: Targets
    worst: Targets
    n_threads: int

    @property
    def targets(self) -> Targets:  # type: ignore[override]
        """The true labellings."""
        return self.given

    @property
    def posteriors(self) -> Posteriors:  # type: ignore[override]
        """The posteriors of the scores, which the margin itself does not use."""
        weights = self.given.mean_weights
        return forward_backward(self.scores, weights=weights, n_threads=self.n_threads)

    def probabilities(self) -> NDArray[np.float64]:
        """The marginals."""
        return self.posteriors.marginals

    def arc_slopes(self) -> NDArray[np.float64]:
        """Counts of the worst labelling minus the true ones."""
        return self.targets.count(self.worst.arc_counts - self.given.arc_counts)

    def slopes(self, out: NDArray[np.float64] | None = None) -> Slopes:
        """Counts of the worst labelling minus the true ones."""
        nodes = np.empty_like(self.scores.nodes) if out is None else out
        edges = None if self.scores.edges is None else np.zeros(self.scores.edges.shape)
        nodes.fill(0.0)
        for labelled, sign in ((self.worst, 1.0), (self.given, -1.0)):
            _add_counts(nodes, labelled.codes, labelled.weights, sign)
            if edges is not None:
                by_edge = flatten_edges(edges)
                _add_counts(by_edge, labelled.edge_codes(edges), labelled.weights, sign)
        return Slopes(nodes, self.arc_slopes(), edges, self.given.bound)


def _cost_factors(targets: Targets) -> NDArray[np.float64]:
    """Factor of the costs at each position, (N,), without its sequence's weight."""
    if targets.position_weights is None:
        return np.ones(len(targets.codes))
    if targets.sequence_weights is None:
        return targets.position_weights
    # A sequence of weight 0 has no effect, whatever its costs.
    weights = np.where(targets.sequence_weights > 0, targets.sequence_weights, 1.0)
    factors: NDArray[np.float64] = targets.position_weights / np.repeat(
        weights, np.diff(targets.offsets)
    )
    return factors


def _gains(scores: Scores, given: Targets, worst: Targets) -> NDArray[np.float64]:
    """Difference between the scores of the worst and the true labels at each position, (N,).

    Only differences are summed: the scores themselves may be too large for differences to be
    accurate.
    """
    positions = np.arange(scores.n_positions)
    nodes = scores.nodes
    gains: NDArray[np.float64] = nodes[positions, worst.codes] - nodes[positions, given.codes]
    arcs = np.append(scores.arcs, 0.0)  # the last one is for positions without an incoming arc
    taken = [
        scores.trellis.arcs_taken(each.codes, each.offsets, each.parents) for each in (worst, given)
    ]
    gains += arcs[taken[0]] - arcs[taken[1]]
    if scores.edges is not None:
        edges = flatten_edges(scores.edges)
        better, known = (each.edge_codes(scores.edges) for each in (worst, given))
        inner = positions[known >= 0]
        gains[inner] += edges[inner, better[inner]]
        gains[inner] -= edges[inner, known[inner]]
    return gains


def _add_counts(
    counts: NDArray[np.float64],
    codes: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
    sign: float,
) -> None:
    """Add to ``counts`` (N, n_outputs) the weight of each position at its code; -1 adds nothing."""
    positions = np.flatnonzero(codes >= 0)
    counts[positions, codes[positions]] += sign if weights is None else sign * weights[positions]
