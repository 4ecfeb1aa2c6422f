"""Objectives that are functions of the marginals, and the simple ones: sums over positions.

Any smooth function of the marginals can be an objective. Let g be its gradient with respect to the
marginals. Its gradient with respect to the scores is the derivative of the marginals along the
direction g, since the Jacobian of the marginals is the covariance matrix of the labels, which is
symmetric. `hedgerow.trellis.tangent` computes this derivative in one pass. For the objectives
below, Gross et al. (2006), Eqs. 11 to 22, compute the same with special recurrences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.exact_sums import ExactTotal
from hedgerow.objectives.targets import Targets

__all__ = [
    "Accuracy",
    "ExpectedAccuracy",
    "Objective",
    "Pointwise",
    "find_direction",
    "measure_loss",
]

Marginals = NDArray[np.float64]
Labels = NDArray[np.int32]
Weights = NDArray[np.float64]

# Smaller probabilities are replaced by this one, so that logarithm and inverse are finite.
SMALLEST_PROBABILITY = 1e-300


@runtime_checkable
class Objective(Protocol):
    """Interface of a custom objective: a smooth function of the marginals, to be maximised.

    Both methods receive ``marginals`` (N, K), the probabilities of the labels at all positions;
    ``labels`` (N,), codes in the order of ``classes_``, with -1 where the label is not known; and
    ``weights`` (N,), the weight of each position, 0 where the label is not known. They must not
    modify these arrays. The value may be any function of all marginals; in `hedgerow.LinearCRF` a
    penalty is subtracted from it, so it should grow with the number of positions, as a
    log-likelihood does.

    If the value is a sum over positions, add a third method, ``terms``, with the same arguments,
    which returns what each position adds to the value, (N,). The result then does not depend on the
    order of the sequences, and several workers can train the model together.

    With a `hedgerow.Checkpoint` an objective is identified by the name of its class and by its
    state: what ``get_params()`` returns, if there is such a method; otherwise the fields of a
    dataclass, except those with ``compare=False``; otherwise its attributes. These may be numbers,
    strings, bools, None, NumPy arrays, dataclasses, functions defined at the top level of a module
    (compared by name), and lists and dicts of these; anything else raises an error if there is a
    checkpoint. Custom objectives are not saved in model files.

    Examples
    --------
    The Brier score, squared errors of the probabilities, whose gradient is simple:

    >>> import numpy as np
    >>> from hedgerow import LinearCRF
    >>> class Brier:
    ...     def misses(self, marginals, labels):
    ...         return marginals - (labels[:, None] == np.arange(marginals.shape[1]))
    ...     def value(self, marginals, labels, weights):
    ...         return -np.sum(weights[:, None] * self.misses(marginals, labels) ** 2)
    ...     def gradient(self, marginals, labels, weights):
    ...         return -2 * weights[:, None] * self.misses(marginals, labels)
    >>> X = [[{"a": 1}, {"b": 1}, {"a": 1}], [{"b": 1}, {"a": 1}]]
    >>> y = [["yes", "no", "yes"], ["no", "no"]]
    >>> crf = LinearCRF(objective=Brier()).fit(X, y)
    >>> [labels.tolist() for labels in crf.predict(X)]
    [['yes', 'no', 'yes'], ['no', 'yes']]
    """

    def value(self, marginals: Marginals, labels: Labels, weights: Weights) -> float:
        """The value for these marginals; greater is better."""
        ...

    def gradient(self, marginals: Marginals, labels: Labels, weights: Weights) -> Marginals:
        """The gradient with respect to each marginal, (N, K)."""
        ...


@dataclass(frozen=True)
class Pointwise:
    """Sum of log p(y_t): pointwise log-likelihood (Kakade et al. 2002)."""

    def value(self, marginals: Marginals, labels: Labels, weights: Weights) -> float:
        """Sum of the logarithms."""
        return float(np.sum(self.terms(marginals, labels, weights)))

    def terms(self, marginals: Marginals, labels: Labels, weights: Weights) -> Marginals:
        """The logarithm at each position."""
        return weights * np.log(self._probabilities(marginals, labels))

    def gradient(self, marginals: Marginals, labels: Labels, weights: Weights) -> Marginals:
        """1 / p(y_t) at the label y_t."""
        slopes = np.zeros_like(marginals)
        slopes[np.arange(len(labels)), labels] = weights / self._probabilities(marginals, labels)
        return slopes

    @staticmethod
    def _probabilities(marginals: Marginals, labels: Labels) -> Marginals:
        return _of_labels(marginals, labels).clip(min=SMALLEST_PROBABILITY)


@dataclass(frozen=True)
class ExpectedAccuracy:
    """Sum of p(y_t): the expected number of correct labels if they are drawn from the marginals."""

    def value(self, marginals: Marginals, labels: Labels, weights: Weights) -> float:
        """Sum of the probabilities."""
        return float(np.sum(self.terms(marginals, labels, weights)))

    def terms(self, marginals: Marginals, labels: Labels, weights: Weights) -> Marginals:
        """The probability at each position."""
        return weights * _of_labels(marginals, labels)

    def gradient(self, marginals: Marginals, labels: Labels, weights: Weights) -> Marginals:
        """1 at the label y_t."""
        slopes = np.zeros_like(marginals)
        slopes[np.arange(len(labels)), labels] = weights
        return slopes


@dataclass(frozen=True)
class Accuracy:
    """Sum of Q(p(y_t) - max over other labels), with Q(x) = 1 / (1 + exp(-sharpness x)).

    These are Eqs. 9 and 10 of Gross et al. (2006).
    The larger the sharpness, the closer it is to the number of positions whose true label is the
    most probable one.
    """

    sharpness: float

    def value(self, marginals: Marginals, labels: Labels, weights: Weights) -> float:
        """Number of correct labels, smoothed."""
        return float(np.sum(self.terms(marginals, labels, weights)))

    def terms(self, marginals: Marginals, labels: Labels, weights: Weights) -> Marginals:
        """The value of each position."""
        terms = np.empty(len(labels))
        _core.fill_accuracy_terms(marginals, labels, weights, self.sharpness, terms)
        return terms

    def gradient(self, marginals: Marginals, labels: Labels, weights: Weights) -> Marginals:
        """Q'(margin) at the label y_t, where margin = p(y_t) - max_{k != y_t} p(k).

        At the label k with this maximum it is -Q'(margin), shared equally if there are several.
        """
        slopes = np.empty_like(marginals)
        _core.fill_accuracy_gradient(marginals, labels, weights, self.sharpness, slopes)
        return slopes


def _of_labels(marginals: Marginals, labels: Labels) -> Marginals:
    """Marginal of each position's true label; of any label if it is not known."""
    found: Marginals = marginals[np.arange(len(labels)), labels]
    return found


@runtime_checkable
class SumOverPositions(Objective, Protocol):
    """An objective whose value is a sum over positions.

    Such a sum does not depend on the order of the sequences, and can be computed by several
    workers.
    """

    def terms(self, marginals: Marginals, labels: Labels, weights: Weights) -> Marginals:
        """What each position adds to the value, (N,)."""
        ...


@runtime_checkable
class OfAllPositions(Objective, Protocol):
    """An objective that sums counts over all workers itself."""

    def value_of(self, marginals: Marginals, targets: Targets) -> float:
        """The value for the marginals of all workers."""
        ...

    def gradient_of(self, marginals: Marginals, targets: Targets) -> Marginals:
        """The gradient with respect to each marginal of this worker, (N, K)."""
        ...


def measure_loss(objective: Objective, marginals: Marginals, targets: Targets) -> ExactTotal:
    """Minus the objective's value."""
    if isinstance(objective, SumOverPositions):
        terms = objective.terms(_locked(marginals), targets.codes, targets.known_weights)
        return targets.sum(-np.asarray(terms, np.float64))
    if isinstance(objective, OfAllPositions):
        value = objective.value_of(_locked(marginals), targets)
        return ExactTotal.of(np.array([-value]), targets.bound)
    value = objective.value(_locked(marginals), targets.codes, targets.known_weights)
    if not _is_numeric(value) or np.ndim(value) != 0 or not np.isfinite(value):
        raise ValueError(
            f"{type(objective).__name__}.value returned {value!r}; expected a finite number"
        )
    return ExactTotal(-float(value), 0.0)


def find_direction(objective: Objective, marginals: Marginals, targets: Targets) -> Marginals:
    """The gradient of the objective with respect to the marginals, (N, K).

    The derivative of the marginals along it, see `hedgerow.trellis.tangent`, is the gradient with
    respect to the scores.
    """
    if isinstance(objective, OfAllPositions):
        return objective.gradient_of(_locked(marginals), targets)
    returned = objective.gradient(_locked(marginals), targets.codes, targets.known_weights)
    name = f"{type(objective).__name__}.gradient"
    if not _is_numeric(returned):
        raise TypeError(
            f"{name} returned {returned!r}; expected an array of numbers, of the shape of the "
            f"marginals, {marginals.shape}"
        )
    gradient: Marginals = np.asarray(returned, np.float64)
    if gradient.shape != marginals.shape:
        raise ValueError(
            f"{name} returned an array of shape {gradient.shape}; expected the shape of the "
            f"marginals, {marginals.shape}"
        )
    if not np.isfinite(gradient.sum()) and not np.isfinite(gradient).all():
        position, label = np.argwhere(~np.isfinite(gradient))[0].tolist()
        raise ValueError(
            f"{name} returned {gradient[position, label]} at position {position}, label {label}; "
            "expected finite numbers"
        )
    return gradient


def _is_numeric(returned: Any) -> bool:
    """Whether it is a real number, or an array of real numbers."""
    try:
        return np.asarray(returned).dtype.kind in "biuf"
    except (TypeError, ValueError):  # such as a list of lists of different lengths
        return False


def _locked(array: Marginals) -> Marginals:
    """A read-only view of the array."""
    view = array.view()
    view.flags.writeable = False
    return view
