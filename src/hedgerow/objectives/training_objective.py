"""Training objectives: from scores, via marginals, to a loss and its gradient.

This is the interface between models and objectives: a model provides scores, receives the gradient
of the loss with respect to these scores, and knows nothing else about the objective.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.decoding import Decode, decode_scores
from hedgerow.exact_sums import ExactTotal
from hedgerow.labels import Labels
from hedgerow.objectives.targets import Targets
from hedgerow.trellis import PairsByLabel, Posteriors, Scores

__all__ = [
    "EdgeCounts",
    "EdgeMemory",
    "Measured",
    "PairCounts",
    "ScoredPart",
    "Slopes",
    "TrainingObjective",
    "evaluate_parts",
]

AnyFloat = TypeVar("AnyFloat", np.float32, np.float64)


@dataclass(frozen=True, eq=False)
class Slopes:
    """The gradient of a loss with respect to the scores."""

    nodes: NDArray[np.float64]
    """(N, K)"""
    arcs: NDArray[np.float64]
    """In the shape of the arcs of the trellis."""
    edges: NDArray[np.float64] | None
    """In the shape of the edges, (N, K, K) or (N, A), if the scores have any."""
    bound: float
    """Upper bound on sums of slopes over all workers.

    Slopes of arcs are multiples of a unit that it determines, see `hedgerow.exact_sums`.
    """


@dataclass(frozen=True, eq=False)
class EdgeCounts:
    """Counts of edges: the slopes are expected minus observed counts, times the weights."""

    expected: NDArray[np.float64]
    """(N, E)"""
    observed: NDArray[np.int32]
    """(N,) the edge that the labels take into each position, -1 if none."""
    weights: NDArray[np.float64] | None
    """(N,) weight of each position; None is 1."""


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Counts of label pairs, if there are many labels and all positions have the weight 1."""

    expected: PairsByLabel
    observed: NDArray[np.int32]
    """(N,) the pair that the labels take into each position, -1 if none."""


class EdgeMemory:
    """Memory for the marginals of edges, which one part after another reuses.

    Only `PairsByLabel` are not overwritten: they are kept for all parts, and parts must come in
    order.

    Parameters
    ----------
    counts
        Whether `Measured.edge_counts` will be called: slopes and marginals of edges are then not
        needed, unless it returns None.
    n_positions
        Number of positions in all parts.
    trim
        See `PairsByLabel.trim`.
    """

    def __init__(self, *, counts: bool, n_positions: int, trim: float) -> None:
        self.counts, self.n_positions, self.trim = counts, n_positions, trim
        self._bytes = np.empty(0, np.uint8)
        self._probs = np.empty((0, 0, 0), np.float32)
        self._n_done, self._learns = 0, False

    def begin(self, *, learns: bool) -> None:
        """Begin a pass over all parts.

        Unless trees learn from this pass, the pairs by label are left unchanged.
        """
        self._n_done, self._learns = 0, learns

    def next_pairs(self, n_positions: int, n_labels: int) -> PairsByLabel | None:
        """Arrays for the pairs by label of the next part; None if trees do not learn from it."""
        if not self._learns:
            return None
        first, self._n_done = self._n_done, self._n_done + n_positions
        if not len(self._probs):
            self._probs = np.empty((n_labels, self.n_positions, n_labels + 1), np.float32)
        return PairsByLabel(self._probs, np.empty(n_positions), first, self.trim)

    def borrow(self, shape: tuple[int, ...], dtype: type[AnyFloat]) -> NDArray[AnyFloat]:
        """An array that may be used until the next call."""
        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if len(self._bytes) < n_bytes:
            self._bytes = np.empty(n_bytes, np.uint8)
        return self._bytes[:n_bytes].view(dtype).reshape(shape)


class Measured(ABC):
    """The loss at some scores, and what its gradient is computed from.

    Slopes are computed on demand: if a step turns out to be too long, they are not needed.
    """

    total: ExactTotal
    """The loss, summed over all positions with their weights."""
    targets: Targets
    """The true labels, and their weights."""
    scores: Scores
    """What was measured: the scores of the model, or those with costs added."""
    posteriors: Posteriors
    """Probabilities of the labels, given these scores."""

    @property
    def loss(self) -> float:
        """The loss, summed over all positions with their weights."""
        return self.total.value

    @abstractmethod
    def probabilities(self) -> NDArray[np.float64]:
        """Marginals of the labels, (N, K); not available after `slopes`."""

    @property
    def arc_sums(self) -> NDArray[np.float64]:
        """Expected number of times each arc is taken, in the sequences of all workers."""
        sums = self.posteriors.arc_sums
        assert sums is not None
        return self.targets.count(sums)

    def drop_mixing(self) -> None:
        """Free the memory of the mixing rates, if there are any."""
        return

    def edge_probabilities(self) -> NDArray[np.float64]:
        """Marginals of the edges, in their shape; not available after `slopes`."""
        raise NotImplementedError(f"{type(self).__name__} has no marginals of edges")

    def edge_counts(self) -> EdgeCounts | PairCounts | None:
        """Counts from which the slopes of the edges are computed; None if there are none."""
        return None

    def observed_codes(self) -> NDArray[np.int32] | None:
        """Labels, (N,), if the slopes of the nodes are the marginals minus 1 at these labels."""
        return None

    @abstractmethod
    def arc_slopes(self) -> NDArray[np.float64]:
        """Gradient of the loss with respect to the scores of the arcs."""

    @abstractmethod
    def slopes(self, out: NDArray[np.float64] | None = None) -> Slopes:
        """Gradient of the loss with respect to all scores; may be called only once.

        ``out`` (N, K) receives the slopes of the nodes. Without it, they may overwrite the
        marginals of the nodes. The slopes of the edges may always overwrite those of the edges.
        """


class ScoredPart(Protocol):
    """Some consecutive sequences of a training set."""

    @property
    def targets(self) -> Targets:
        """Their labels."""
        ...

    def scores(self) -> Scores:
        """Their scores; the arrays may be overwritten by the next call."""
        ...

    def empty_slopes(self) -> NDArray[np.float64]:
        """An array for the slopes of the nodes, (N, K), which other parts may overwrite."""
        ...


Part = TypeVar("Part", bound=ScoredPart)


class TrainingObjective(ABC):
    """The objective of training."""

    decode: ClassVar[Decode | None]
    """The decoder that suits models trained for it; None if either may be the better one."""
    needs_all_labels: ClassVar[str | None] = None
    """The setting that allows no missing labels, for a message; None if they may be missing."""
    is_smooth: ClassVar[bool] = True
    """Whether the loss is smooth enough for L-BFGS; a hinge loss is not."""
    needs_warm_start: ClassVar[bool] = True
    """Whether training should begin with the likelihood; not if the loss is smooth and convex."""
    has_unit_slopes: ClassVar[bool] = False
    """Whether slopes are at most 1 for each unit of weight, as those of the likelihood are."""
    adds_costs: ClassVar[bool] = False
    """Whether costs are added to the scores, so that probabilities are not those of the model."""

    @property
    def warm_fifths(self) -> int:
        """Number of fifths of the boosting rounds that are warm-up, unless `warm_rounds` is set."""
        return 1

    @property
    def has_kinks(self) -> bool:
        """Whether the minimum may be at a kink, although the loss is smooth almost everywhere."""
        return False

    def for_labels(self, labels: Labels) -> TrainingObjective:
        """The objective once the labels are known; raises ValueError if it does not fit them."""
        return self

    @abstractmethod
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
        """The loss at some scores. ``out`` (N, K), where given, receives the marginals.

        ``mixing`` says whether mixing rates will be needed too, which some objectives compute in
        the same pass, see `Posteriors.mixing`; ``memory`` may be used for marginals of edges.
        """

    @abstractmethod
    def evaluate(
        self, parts: Iterator[Scores], targets: Targets, *, decode: Decode, n_threads: int
    ) -> tuple[float, NDArray[np.int32]]:
        """The loss of an evaluation set, and the labels that a decoder predicts, (N,).

        ``parts`` are the scores of all sequences, in one or more runs of consecutive ones.
        """

    def measure_parts(
        self,
        parts: Sequence[Part],
        targets: Targets,
        *,
        n_threads: int,
        mixing: bool = False,
        memory: EdgeMemory | None = None,
    ) -> Iterator[tuple[Part, Measured]]:
        """Measure a training set part by part; totals and slopes of arcs add up.

        ``targets`` are those of all parts of this worker. Results must be used before the next
        part.
        """
        for part in parts:
            out = part.empty_slopes()
            measured = self.measure(
                part.scores(),
                part.targets,
                n_threads=n_threads,
                out=out,
                mixing=mixing,
                memory=memory,
            )
            yield part, measured

    def stages(self) -> list[TrainingObjective]:
        """Objectives to train for one after another: smoother ones first, this one last."""
        return [self]


def evaluate_parts(
    loss: Callable[[Scores, Targets, int], ExactTotal],
    parts: Iterator[Scores],
    targets: Targets,
    *,
    decode: Decode,
    n_threads: int,
) -> tuple[float, NDArray[np.int32]]:
    """The result of `TrainingObjective.evaluate`, for a loss that is a sum over sequences.

    ``loss`` is called with some sequences and ``n_threads``.
    """
    total, codes = ExactTotal(0.0, 0.0), [np.empty(0, np.int32)]
    for scores, part in targets.along(parts):
        total = total.plus(loss(scores, part, n_threads))
        codes.append(decode_scores(scores, decode, n_threads=n_threads))
    return total.share(targets.bound, targets.comm).value, np.concatenate(codes)
