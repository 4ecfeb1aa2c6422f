"""Training for a function of the marginals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.decoding import Decode, decode_marginals
from hedgerow.exact_sums import ExactTotal, SumGrid, exact_sum
from hedgerow.labels import Labels
from hedgerow.objectives.f_measure import F1
from hedgerow.objectives.labelwise import Accuracy, Objective, find_direction, measure_loss
from hedgerow.objectives.targets import Targets
from hedgerow.objectives.training_objective import (
    EdgeMemory,
    Measured,
    Part,
    Slopes,
    TrainingObjective,
)
from hedgerow.trellis import Posteriors, Scores, forward_backward, tangent, viterbi

__all__ = ["OfMarginals"]

# Training for accuracy begins with this share of the sharpness, which is then doubled.
FIRST_SHARE = 1 / 8


@dataclass(frozen=True, eq=False)
class OfMarginals(TrainingObjective):
    """Minus the value of a function of all marginals."""

    objective: Objective
    decode = "marginal"

    def for_labels(self, labels: Labels) -> OfMarginals:
        """The same objective; F1 gets the codes of the labels that it includes."""
        if not isinstance(self.objective, F1):
            return self
        return OfMarginals(self.objective.for_labels(labels))

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
        """The loss, and the marginals that it depends on."""
        weights = targets.mean_weights
        posteriors = forward_backward(scores, weights=weights, out=out, n_threads=n_threads)
        total = measure_loss(self.objective, posteriors.marginals, targets)
        return Marginals(total, posteriors, self.objective, scores, targets, n_threads)

    def evaluate(
        self, parts: Iterator[Scores], targets: Targets, *, decode: Decode, n_threads: int
    ) -> tuple[float, NDArray[np.int32]]:
        """The loss, which depends on all marginals, and predicted labels."""
        marginals = np.empty((len(targets.codes), targets.n_labels))
        begin, codes = 0, [np.empty(0, np.int32)]
        for scores in parts:
            out = marginals[begin : begin + scores.n_positions]
            forward_backward(scores, pairs=None, out=out, n_threads=n_threads)
            begin += scores.n_positions
            if decode == "viterbi":
                codes.append(viterbi(scores, n_threads=n_threads))
        loss = measure_loss(self.objective, marginals, targets)
        if decode == "marginal":
            codes.append(
                decode_marginals(
                    marginals,
                    targets.offsets,
                    targets.trellis.constraints,
                    parents=targets.parents,
                    n_threads=n_threads,
                )
            )
        return loss.value, np.concatenate(codes)

    def measure_parts(
        self,
        parts: Sequence[Part],
        targets: Targets,
        *,
        n_threads: int,
        mixing: bool = False,
        memory: EdgeMemory | None = None,
    ) -> Iterator[tuple[Part, Measured]]:
        """Measure part by part; all marginals are computed before any slope.

        The function may depend on all of them.
        """
        marginals = np.empty((len(targets.codes), targets.n_labels))
        ends = accumulate((len(part.targets.codes) for part in parts), initial=0)
        places = [slice(*ends) for ends in pairwise(ends)]
        for part, place in zip(parts, places, strict=True):
            scores = part.scores()
            forward_backward(scores, pairs=None, out=marginals[place], n_threads=n_threads)
        loss = measure_loss(self.objective, marginals, targets)
        direction = _centre(find_direction(self.objective, marginals, targets), marginals)
        bound = _bound_slopes(targets, marginals, direction)
        if targets.comm.rank > 0:
            loss = ExactTotal(0.0, 0.0)  # the loss is that of all workers: the first counts it
        for part, place in zip(parts, places, strict=True):
            if len(parts) > 1:  # those of a single part are still available
                scores = part.scores()
            yield (
                part,
                MarginalsOfPart(
                    loss,
                    scores,
                    marginals[place],
                    direction[place],
                    bound,
                    part.targets,
                    n_threads,
                ),
            )
            loss = ExactTotal(0.0, 0.0)  # already counted

    @property
    def warm_fifths(self) -> int:
        """How many fifths of the rounds are warm-up rounds: four for F1, otherwise one.

        F1 learns frequent labels slowly, so the warm-up rounds have to learn them.
        """
        return 4 if isinstance(self.objective, F1) else 1

    @property
    def has_kinks(self) -> bool:
        """Accuracy has kinks where two wrong labels tie, and may be maximal at one of them."""
        return isinstance(self.objective, Accuracy)

    def stages(self) -> list[TrainingObjective]:
        """Smoother accuracies first.

        "Gradually increasing" the sharpness while starting from the last solution is the advice of
        Gross et al. (2006), footnote 3.
        """
        if not isinstance(self.objective, Accuracy):
            return [self]
        found: list[TrainingObjective] = []
        share = FIRST_SHARE
        while share <= 1:
            found.append(OfMarginals(Accuracy(share * self.objective.sharpness)))
            share *= 2
        return found


@dataclass(frozen=True, eq=False)
class Marginals(Measured):
    """Marginals, and the value of a function of them."""

    total: ExactTotal
    posteriors: Posteriors
    objective: Objective
    scores: Scores
    targets: Targets
    n_threads: int

    def probabilities(self) -> NDArray[np.float64]:
        """The marginals."""
        return self.posteriors.marginals

    def edge_probabilities(self) -> NDArray[np.float64]:
        """Marginals of the edges, computed in a separate pass."""
        return _find_pairs(self.scores, self.n_threads)

    def arc_slopes(self) -> NDArray[np.float64]:
        """Minus the derivative of the arcs' expected counts along the gradient."""
        return self.slopes().arcs

    def slopes(self, out: NDArray[np.float64] | None = None) -> Slopes:
        """Minus the derivative of the marginals along the gradient with respect to them."""
        marginals = self.posteriors.marginals
        direction = _centre(find_direction(self.objective, marginals, self.targets), marginals)
        bound = _bound_slopes(self.targets, marginals, direction)
        found = _find_slopes(self.scores, bound, marginals, direction, out, self.n_threads)
        return replace(found, arcs=SumGrid(bound).share(found.arcs, self.targets.comm))


@dataclass(frozen=True, eq=False)
class MarginalsOfPart(Measured):
    """Marginals of some sequences, and their part of the gradient of a function of all marginals.

    Attributes
    ----------
    total : ExactTotal
        For the first part of the first worker, the loss of all parts of all workers; otherwise 0.
    marginals, direction : (N, K)
        Marginals of these sequences, and the gradient of the function with respect to them.
    bound : float
        Upper bound on sums of slopes over all sequences.
    """

    total: ExactTotal
    scores: Scores
    marginals: NDArray[np.float64]
    direction: NDArray[np.float64]
    bound: float
    targets: Targets
    n_threads: int

    @property
    def posteriors(self) -> Posteriors:  # type: ignore[override]
        """The posteriors of the scores, computed in a separate pass."""
        weights = self.targets.mean_weights
        return forward_backward(self.scores, weights=weights, n_threads=self.n_threads)

    def probabilities(self) -> NDArray[np.float64]:
        """The marginals."""
        return self.marginals

    def edge_probabilities(self) -> NDArray[np.float64]:
        """Marginals of the edges, computed in a separate pass."""
        return _find_pairs(self.scores, self.n_threads)

    def arc_slopes(self) -> NDArray[np.float64]:
        """Minus the derivative of the arcs' expected counts along the gradient."""
        return self.slopes().arcs

    def slopes(self, out: NDArray[np.float64] | None = None) -> Slopes:
        """Minus the derivative of the marginals along the gradient with respect to them."""
        return _find_slopes(
            self.scores, self.bound, self.marginals, self.direction, out, self.n_threads
        )


def _find_pairs(scores: Scores, n_threads: int) -> NDArray[np.float64]:
    """Marginals of the edges, in their shape."""
    pairs = forward_backward(scores, pairs="each", n_threads=n_threads).pairs
    assert pairs is not None
    return pairs


def _find_slopes(
    scores: Scores,
    bound: float,
    marginals: NDArray[np.float64],
    direction: NDArray[np.float64],
    out: NDArray[np.float64] | None,
    n_threads: int,
) -> Slopes:
    """Minus the derivative of the marginals along a direction: the loss is minus the value."""
    tangents = tangent(
        replace(scores, bound=bound),
        marginals,
        direction,
        pairs="sum" if scores.edges is None else "each",
        out=out,
        n_threads=n_threads,
    )
    assert tangents.arc_sums is not None
    for slopes in (tangents.marginals, tangents.arc_sums, tangents.pairs):
        if slopes is not None and bound > 0:
            np.negative(slopes, out=slopes)
        elif slopes is not None:  # they are 0, except for rounding errors
            slopes.fill(0.0)
    return Slopes(tangents.marginals, tangents.arc_sums, tangents.pairs, bound)


def _centre(direction: NDArray[np.float64], marginals: NDArray[np.float64]) -> NDArray[np.float64]:
    """A direction minus its mean at each position, weighted by the marginals.

    Derivatives of probabilities along it are the same.
    """
    means = np.einsum("tk,tk->t", marginals, direction)
    centred: NDArray[np.float64] = direction - means[:, None]
    return centred


def _bound_slopes(
    targets: Targets, marginals: NDArray[np.float64], direction: NDArray[np.float64]
) -> float:
    """Upper bound on derivatives of expected counts along a centred direction: `Scores.bound`.

    The derivative of a probability is the covariance of the event and V, the sum of the direction
    along a labelling. The parts of V from before and after a position are added separately; each
    is at most the sum, over the sequence, of the mean absolute value of the direction.
    """
    sizes = np.einsum("tk,tk->t", marginals, np.abs(direction))
    lengths = np.diff(targets.offsets)
    return exact_sum(np.repeat(lengths, lengths) * sizes, targets.comm)
