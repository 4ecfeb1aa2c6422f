"""The likelihood: the probability of the labels of a sequence as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.decoding import Decode
from hedgerow.exact_sums import ExactTotal
from hedgerow.objectives.targets import Targets
from hedgerow.objectives.training_objective import (
    EdgeCounts,
    EdgeMemory,
    Measured,
    PairCounts,
    Slopes,
    TrainingObjective,
    evaluate_parts,
)
from hedgerow.trellis import (
    NoPathError,
    Pairs,
    Posteriors,
    Scores,
    flatten_edges,
    forward_backward,
    log_likelihood,
    log_z,
    weighted_forward_backward,
)
from hedgerow.trellis.posteriors import allocate
from hedgerow.trellis.tree_graph import inference

__all__ = ["Likelihood", "log_likelihoods", "negative_log_likelihood"]


class Likelihood(TrainingObjective):
    """Log-likelihood of the known labels.

    The loss is its negative, whose slopes are expected minus observed counts. If some labels are
    not known, the likelihood is that of the known ones, summed over all labellings that agree with
    them, and "observed" counts are the expected counts of these labellings.
    """

    decode = None
    needs_warm_start = False
    has_unit_slopes = True

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
        """Negative log-likelihood, and the expected counts from which its gradient is computed."""
        posteriors = _posteriors(scores, targets, n_threads, out, mixing=mixing, memory=memory)
        assert posteriors.log_likelihoods is not None
        partial, given = targets.partial, None
        if partial is not None:
            weights = targets.sequence_weights
            given = forward_backward(
                partial.restrict(scores),
                pairs="sum" if scores.edges is None else "each",
                weights=None if weights is None else weights[partial.sequences],
                n_threads=n_threads,
            )
            posteriors.log_likelihoods[partial.sequences] = (
                given.log_z - posteriors.log_z[partial.sequences]
            )
        log_likelihoods = posteriors.log_likelihoods
        if targets.position_weights is None and targets.sequence_weights is not None:
            log_likelihoods = log_likelihoods * targets.sequence_weights
        total = targets.sum(-log_likelihoods)
        return Expectations(total, posteriors, given, scores, targets, n_threads)

    def evaluate(
        self, parts: Iterator[Scores], targets: Targets, *, decode: Decode, n_threads: int
    ) -> tuple[float, NDArray[np.int32]]:
        """The loss by forward passes, and the predicted labels."""
        return evaluate_parts(
            negative_log_likelihood, parts, targets, decode=decode, n_threads=n_threads
        )


@dataclass(eq=False)
class Expectations(Measured):
    """Expected counts with and without the known labels."""

    total: ExactTotal
    """Negative log-likelihood of the known labels, summed with their weights."""
    posteriors: Posteriors
    """Over all labellings. With position weights, marginals and arc sums are weighted counts."""
    given: Posteriors | None
    """Over the labellings that agree with the known labels, for partially labelled sequences."""
    scores: Scores
    targets: Targets
    n_threads: int
    has_marginals: bool = True
    """Whether the marginals are still there: slopes of the nodes may overwrite them."""
    has_pairs: bool = True
    """Whether the pairs are still there: slopes of the edges overwrite them."""

    def probabilities(self) -> NDArray[np.float64]:
        """The marginals; with position weights, they need a separate pass."""
        if self.targets.position_weights is None:
            assert self.has_marginals, "the slopes have overwritten the marginals"
            return self.posteriors.marginals
        return forward_backward(self.scores, pairs=None, n_threads=self.n_threads).marginals

    def drop_mixing(self) -> None:
        self.posteriors = replace(self.posteriors, mixing=None)

    def edge_probabilities(self) -> NDArray[np.float64]:
        """Marginals of the edges; with position weights, they need a separate pass."""
        posteriors = self.posteriors
        if self.targets.position_weights is not None:
            posteriors = forward_backward(self.scores, pairs="each", n_threads=self.n_threads)
        assert self.has_pairs, "the slopes have overwritten the marginals"
        assert posteriors.pairs is not None
        return posteriors.pairs

    def edge_counts(self) -> EdgeCounts | PairCounts | None:
        """Expected and observed counts of edges.

        None if some labels are not known, or if positions of a sequence have different weights.
        """
        targets, pairs = self.targets, self.posteriors.pairs
        if self.posteriors.by_label is not None:
            return PairCounts(self.posteriors.by_label, targets.pair_codes.copy())
        if targets.partial is not None or targets.position_weights is not None:
            return None
        assert pairs is not None
        by_edge = flatten_edges(pairs)
        return EdgeCounts(by_edge, targets.edge_codes(pairs).copy(), targets.weights)

    def observed_codes(self) -> NDArray[np.int32] | None:
        """All labels, if all are known and no position has a weight."""
        targets = self.targets
        return targets.codes if targets.partial is None and targets.weights is None else None

    def arc_slopes(self) -> NDArray[np.float64]:
        """Expected minus observed counts."""
        assert self.posteriors.arc_sums is not None
        slopes = self.posteriors.arc_sums - self.targets.arc_counts
        if self.given is not None:
            assert self.given.arc_sums is not None
            slopes -= self.given.arc_sums
        return self.targets.count(slopes)

    def slopes(self, out: NDArray[np.float64] | None = None) -> Slopes:
        """Expected minus observed counts; without ``out``, they overwrite the marginals."""
        assert self.has_pairs, "slopes may be called only once"
        nodes, edges, targets = self.posteriors.marginals, self.posteriors.pairs, self.targets
        if out is None or np.may_share_memory(nodes, out):
            self.has_marginals = False
        else:
            np.copyto(out, nodes)
            nodes = out
        self.has_pairs = False
        if targets.partial is not None:
            assert self.given is not None
            positions = targets.partial.positions
            nodes[positions] -= self.given.marginals
            if edges is not None and self.given.pairs is not None:
                edges[positions] -= self.given.pairs
        if targets.position_weights is None and targets.weights is not None:
            nodes *= targets.weights[:, None]
            if edges is not None:
                flatten_edges(edges)[...] *= targets.weights[:, None]
        full = targets.full_codes
        _core.subtract_observed(nodes, full, targets.weights, self.n_threads)
        if edges is not None:
            taken = np.where(full >= 0, targets.edge_codes(edges), np.int32(-1))
            by_edge = flatten_edges(edges)
            _core.subtract_observed(by_edge, taken, targets.weights, self.n_threads)
        return Slopes(nodes, self.arc_slopes(), edges, targets.bound)


def negative_log_likelihood(scores: Scores, targets: Targets, n_threads: int) -> ExactTotal:
    """Negative log-likelihood of all sequences, summed with their weights.

    It takes only forward passes, unless positions have weights.
    """
    if targets.position_weights is not None:
        found = _posteriors(scores, targets, n_threads, None).log_likelihoods
        assert found is not None
    else:
        found = log_likelihoods(scores, targets, n_threads=n_threads)
        if targets.sequence_weights is not None:
            found *= targets.sequence_weights
    return ExactTotal.of(-found, targets.bound)


def log_likelihoods(scores: Scores, targets: Targets, *, n_threads: int) -> NDArray[np.float64]:
    """Log-likelihood of each sequence's known labels, (S,); -inf if no labelling agrees."""
    codes = targets.codes.clip(min=0)
    found = log_likelihood(scores, codes, n_threads=n_threads)
    partial = targets.partial
    if partial is not None:
        restricted = _log_z_or_nothing(partial.restrict(scores), n_threads)
        found[partial.sequences] = (
            restricted - log_z(scores, n_threads=n_threads)[partial.sequences]
        )
    return found


def _log_z_or_nothing(scores: Scores, n_threads: int) -> NDArray[np.float64]:
    """Log Z of each sequence, -inf if there is no labelling."""
    try:
        return log_z(scores, n_threads=n_threads)
    except NoPathError:
        if scores.n_sequences == 1:
            return np.array([-np.inf])
        half = scores.n_sequences // 2
        parts = scores.part(slice(0, half)), scores.part(slice(half, None))
        return np.concatenate([_log_z_or_nothing(part, n_threads) for part in parts])


def _posteriors(
    scores: Scores,
    targets: Targets,
    n_threads: int,
    out: NDArray[np.float64] | None,
    *,
    mixing: bool = False,
    memory: EdgeMemory | None = None,
) -> Posteriors:
    """Posteriors as from `forward_backward`, without repeating its checks of the targets."""
    pairs: Pairs = "sum" if scores.edges is None else "each"
    if targets.position_weights is not None:
        return weighted_forward_backward(
            scores,
            targets.codes,
            targets.position_weights,
            pairs=pairs,
            out=out,
            n_threads=n_threads,
        )
    kernels, by_label = inference(scores), None
    has_counts = targets.partial is None and targets.weights is None
    if memory is not None and memory.counts and has_counts and kernels.gives_pairs_by_label(scores):
        by_label = memory.next_pairs(scores.n_positions, scores.n_labels)
        pairs = "sum"
    empty = np.empty if memory is None else memory.borrow
    found = allocate(scores, pairs, out, likelihoods=True, empty=empty)
    found = replace(found, by_label=by_label)
    if mixing:
        found = replace(found, mixing=kernels.empty_mixing(scores))
    # An unknown label has no effect here: any code will do.
    codes = targets.codes if targets.partial is None else targets.codes.clip(min=0)
    kernels.fill_posteriors(scores, codes, targets.sequence_weights, found, n_threads)
    return Posteriors.of(found)
