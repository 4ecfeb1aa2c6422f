"""The likelihood: the probability of the labels of a sequence, as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.objectives.slopes import Slopes
from hedgerow.objectives.targets import Targets
from hedgerow.trellis import (
    NoPathError,
    Pairs,
    Posteriors,
    Potentials,
    forward_backward,
    log_likelihood,
    log_z,
    weighted_forward_backward,
)

__all__ = ["Expectations", "expect", "likelihood", "log_likelihoods"]


@dataclass(frozen=True, eq=False)
class Expectations:
    """A loss, and what is expected of the labels with and without knowing them."""

    loss: float
    """Negative log-likelihood of the known labels, weights included."""
    posteriors: Posteriors
    """Of all labellings. With position weights their marginals and arc sums are weighted counts."""
    given: Posteriors | None
    """Of the labellings that agree with the known labels, for partially labelled sequences."""

    def arc_slopes(self, targets: Targets) -> NDArray[np.float64]:
        """How the loss changes with the scores of the arcs: expected minus observed counts."""
        assert self.posteriors.arc_sums is not None
        slopes = self.posteriors.arc_sums - targets.arc_counts
        if self.given is not None:
            assert self.given.arc_sums is not None
            slopes -= self.given.arc_sums
        return slopes


def expect(
    potentials: Potentials,
    targets: Targets,
    *,
    n_threads: int,
    out: NDArray[np.float64] | None = None,
) -> Expectations:
    """Negative log-likelihood, and the expected counts that its slopes are made of.

    Where labels are not known the likelihood is that of the known ones, the sum over all labellings
    that agree with them. ``out`` (N, K), where given, receives the marginals.
    """
    posteriors = _posteriors(potentials, targets, n_threads, out)
    assert posteriors.log_likelihoods is not None
    partial, given = targets.partial, None
    if partial is not None:
        weights = targets.sequence_weights
        given = forward_backward(
            partial.restrict(potentials),
            pairs="sum" if potentials.edges is None else "each",
            weights=None if weights is None else weights[partial.sequences],
            n_jobs=n_threads,
        )
        posteriors.log_likelihoods[partial.sequences] = (
            given.log_z - posteriors.log_z[partial.sequences]
        )
    log_likelihoods = posteriors.log_likelihoods
    if targets.position_weights is None and targets.sequence_weights is not None:
        log_likelihoods = log_likelihoods * targets.sequence_weights
    return Expectations(-float(log_likelihoods.sum()), posteriors, given)


def likelihood(
    potentials: Potentials,
    targets: Targets,
    *,
    n_threads: int,
    out: NDArray[np.float64] | None = None,
) -> Slopes:
    """Negative log-likelihood; its slopes are expected minus observed counts, p - mu.

    Where labels are not known "observed" is what is expected of the labellings that agree with the
    known ones. ``out`` (N, K), where given, receives the slopes of the nodes.
    """
    expected = expect(potentials, targets, n_threads=n_threads, out=out)
    nodes, edges = expected.posteriors.marginals, expected.posteriors.pairs
    if targets.partial is not None:
        assert expected.given is not None
        positions = targets.partial.positions
        nodes[positions] -= expected.given.marginals
        if edges is not None and expected.given.pairs is not None:
            edges[positions] -= expected.given.pairs
    if targets.position_weights is None and targets.weights is not None:
        nodes *= targets.weights[:, None]
        if edges is not None:
            edges *= targets.weights[:, None, None]
    full = targets.full_codes
    _subtract_observed(nodes, full, targets.weights)
    if edges is not None:
        pair_codes = np.where(full >= 0, targets.pair_codes, -1)
        _subtract_observed(edges.reshape(len(edges), -1), pair_codes, targets.weights)
    return Slopes(expected.loss, nodes, expected.arc_slopes(targets), edges)


def log_likelihoods(
    potentials: Potentials, targets: Targets, *, n_threads: int
) -> NDArray[np.float64]:
    """Log-likelihood of each sequence's known labels, (S,); -inf where they cannot be completed."""
    codes = targets.codes.clip(min=0)
    found = log_likelihood(potentials, codes, n_jobs=n_threads)
    partial = targets.partial
    if partial is not None:
        restricted = _log_z_or_nothing(partial.restrict(potentials), n_threads)
        found[partial.sequences] = (
            restricted - log_z(potentials, n_jobs=n_threads)[partial.sequences]
        )
    return found


def _log_z_or_nothing(potentials: Potentials, n_threads: int) -> NDArray[np.float64]:
    """Log Z of each sequence, -inf where there is no labelling."""
    try:
        return log_z(potentials, n_jobs=n_threads)
    except NoPathError:
        if potentials.n_sequences == 1:
            return np.array([-np.inf])
        half = potentials.n_sequences // 2
        parts = potentials.part(slice(0, half)), potentials.part(slice(half, None))
        return np.concatenate([_log_z_or_nothing(part, n_threads) for part in parts])


def _posteriors(
    potentials: Potentials, targets: Targets, n_threads: int, out: NDArray[np.float64] | None
) -> Posteriors:
    pairs: Pairs = "sum" if potentials.edges is None else "each"
    if targets.position_weights is not None:
        return weighted_forward_backward(
            potentials,
            targets.codes,
            targets.position_weights,
            pairs=pairs,
            out=out,
            n_jobs=n_threads,
        )
    return forward_backward(
        potentials,
        # A label that is not known counts for nothing here: any code will do.
        labels=targets.codes if targets.partial is None else targets.codes.clip(min=0),
        pairs=pairs,
        weights=targets.sequence_weights,
        out=out,
        n_jobs=n_threads,
    )


def _subtract_observed(
    expected: NDArray[np.float64],
    codes: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
) -> None:
    """Subtract from expected counts (N, n_outputs) what was observed; code -1 is nothing."""
    positions = np.flatnonzero(codes >= 0)
    observed = 1.0 if weights is None else weights[positions]
    expected[positions, codes[positions]] -= observed
