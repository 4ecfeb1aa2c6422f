"""The F-measure of labels, made smooth: expected counts instead of counts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.exact_sums import SumGrid
from hedgerow.labels import Labels
from hedgerow.metrics.known_chunks import look_like_chunks
from hedgerow.objectives.labelwise import Labels as Codes
from hedgerow.objectives.labelwise import Marginals, Weights
from hedgerow.objectives.targets import Targets
from hedgerow.parameters import check_choice, plain_value

__all__ = ["F1", "F1Average"]

F1Average = Literal["macro", "micro"]

# The label of positions outside of chunks, whose F1 is not of interest.
OUTSIDE = "O"


@dataclass(frozen=True)
class F1:
    """F1 with expected counts instead of counts, times the total weight of all positions.

    For a label k that n_k positions have, with p_t(k) its probability at position t,

        F_k = 2 sum_{t: y_t = k} p_t(k) / (n_k + sum_t p_t(k)),

    2 TP / (2 TP + FN + FP) with the counts that are expected if labels are drawn at random from the
    marginals. The more certain these are, the closer it is to the F1 of the most probable labels.
    Positions whose label is not known are ignored.

    Parameters
    ----------
    labels : tuple of labels or None
        The labels to include. None: all; if they look like chunks (B-NP, I-NP, O), all but O.
    average : {"macro", "micro"}
        "macro": the mean of F_k over the labels that occur. "micro": one F1 from the sums of all
        counts; for all labels this is the expected accuracy.
    """

    labels: tuple[Any, ...] | None = None
    average: F1Average = "macro"
    codes: tuple[int, ...] | None = field(default=None, compare=False, repr=False)
    """Codes of the labels to include, ascending; None: all, or the labels are not known yet."""

    def __post_init__(self) -> None:
        check_choice("average", self.average, ("macro", "micro"))

    @classmethod
    def read(cls, labels: Any, average: Any) -> F1:
        """Check the parameters ``f1_labels`` and ``f1_average``, before the labels are known."""
        check_choice("f1_average", average, ("macro", "micro"))
        plain = plain_value("f1_labels", labels)
        if plain is None:
            return cls(None, average)
        if not isinstance(plain, list) or not plain:
            raise ValueError(f"f1_labels is {plain!r}; expected a list of labels, or None for all")
        for place, label in enumerate(plain):
            if label in plain[:place]:
                raise ValueError(f"f1_labels has the label {label!r} twice; give it once")
        return cls(tuple(plain), average)

    def for_labels(self, labels: Labels) -> F1:
        """The same objective with the codes of the labels that are included."""
        names = self.labels
        if names is None:
            if not look_like_chunks(labels.classes):
                return self
            names = tuple(label for label in labels.classes.tolist() if label != OUTSIDE)
        return replace(self, codes=tuple(sorted(labels.read_codes(list(names), "f1_labels"))))

    def value(self, marginals: Marginals, labels: Codes, weights: Weights) -> float:
        """F1, times the total weight of all positions."""
        return self._value(self._count(marginals, labels, weights, _Positions.alone(weights)))

    def gradient(self, marginals: Marginals, labels: Codes, weights: Weights) -> Marginals:
        """w_t c (2 [y_t = k] - F_k) / (n_k + sum_t p_t(k)), w_t being the weight of position t.

        c is the total weight of all positions, for "macro" divided by the number of labels in the
        mean. For "micro", F_k, n_k and the sum are those of all included labels together.
        """
        counts = self._count(marginals, labels, weights, _Positions.alone(weights))
        return self._gradient(counts, marginals, labels, weights)

    def value_of(self, marginals: Marginals, targets: Targets) -> float:
        """The value over all workers."""
        everywhere = _Positions(targets.bound, targets.comm)
        return self._value(self._count(marginals, targets.codes, targets.known_weights, everywhere))

    def gradient_of(self, marginals: Marginals, targets: Targets) -> Marginals:
        """The gradient with respect to the marginals of this worker."""
        weights, everywhere = targets.known_weights, _Positions(targets.bound, targets.comm)
        counts = self._count(marginals, targets.codes, weights, everywhere)
        return self._gradient(counts, marginals, targets.codes, weights)

    @staticmethod
    def _value(counts: _Counts) -> float:
        return float(counts.weight * counts.scores.mean()) if len(counts.totals) else 0.0

    @staticmethod
    def _gradient(
        counts: _Counts, marginals: Marginals, labels: Codes, weights: Weights
    ) -> Marginals:
        rates = counts.weight / (max(len(counts.totals), 1) * counts.totals)
        slopes, by_right = np.zeros_like(marginals), np.zeros(marginals.shape[1])
        slopes[:, counts.codes] = np.multiply.outer(-weights, rates * counts.scores)
        by_right[counts.codes] = 2 * rates
        slopes[np.arange(len(labels)), labels] += weights * by_right[labels]
        return slopes

    def _count(
        self, marginals: Marginals, labels: Codes, weights: Weights, everywhere: _Positions
    ) -> _Counts:
        assert self.labels is None or self.codes is not None, "the labels are not known yet"
        n_labels, known, grid = marginals.shape[1], labels.clip(min=0), SumGrid(everywhere.bound)
        own = marginals[np.arange(len(labels)), known]
        codes = np.arange(n_labels) if self.codes is None else np.array(self.codes)
        sums = [
            np.bincount(known, grid.round(weights * own), n_labels),
            np.bincount(known, grid.round(weights), n_labels),
            grid.round(weights[:, None] * marginals).sum(axis=0),
        ]
        sums = list(grid.share(np.stack(sums), everywhere.comm))
        weight = float(sums[1].sum())
        counts = [each[codes] for each in sums]
        if self.average == "micro":
            counts = [each.sum(keepdims=True) for each in counts]
        right, observed, predicted = counts
        occurs = observed > 0
        chosen = codes[np.broadcast_to(occurs, codes.shape)]
        return _Counts(chosen, right[occurs], (observed + predicted)[occurs], weight)


class _Positions(NamedTuple):
    """Upper bound on counts over all positions, and the workers that hold the positions."""

    bound: float
    comm: Comm

    @classmethod
    def alone(cls, weights: Weights) -> _Positions:
        """The positions of a single worker."""
        return cls(float(weights.max(initial=0.0)) * len(weights), ALONE)


@dataclass(frozen=True, eq=False)
class _Counts:
    """The labels that are included, and expected counts of each of them, or one for all of them."""

    codes: NDArray[np.int64]
    right: NDArray[np.float64]
    totals: NDArray[np.float64]
    """Number of true labels plus expected number of predicted ones; more than 0."""
    weight: float
    """Total weight of all positions."""

    @property
    def scores(self) -> NDArray[np.float64]:
        """F1 of each label, or of all together."""
        return 2 * self.right / self.totals
