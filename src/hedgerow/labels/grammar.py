"""Grammar: which label patterns have weights, and which labels may follow which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.labels.automaton import Automaton, PatternArcs
from hedgerow.labels.classes import Labels
from hedgerow.labels.constraints import Constraints
from hedgerow.labels.patterns import Patterns
from hedgerow.lazy import LazyAttributes, lazy

__all__ = ["Grammar"]

# The first-order kernel takes all K * K pairs at full speed; the automaton takes only those that
# are there, each in as much time as this many of the other's. Measured for posteriors (marginals
# and sums of pairs or arcs; one thread, CPU time, sequences of 40, random pairs, a quarter of all):
# 3.2 with K = 400 labels, 4.5 with 200, 5 with 100. With fewer labels the automaton's work per
# label outweighs its arcs: with 5 to 25 % of the pairs it takes 1.3 to 2 times as long as the
# first-order kernel for K = 45, and 2 to 2.5 times for K = 26.
COST_OF_ARC = 4


@dataclass(frozen=True, eq=False)
class Grammar(LazyAttributes):
    """How labels depend on each other.

    Attributes
    ----------
    n_labels : int
        Number of labels, K.
    patterns : Patterns
        Patterns of two or more labels; each has a weight.
    constraints : Constraints or None
        What is forbidden.
    has_edges : bool
        Whether label pairs also have scores that differ from position to position.
    """

    n_labels: int
    patterns: Patterns
    constraints: Constraints | None = None
    has_edges: bool = False

    @classmethod
    def learn(
        cls,
        labels: Labels,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        *,
        order: int,
        min_pattern_count: int,
        label_patterns: Any,
        constraints: Constraints | None,
        has_edges: bool,
    ) -> Grammar:
        """Find the patterns that get weights.

        Parameters
        ----------
        labels, codes, offsets
            The classes, and the labels of the training sequences, -1 where unknown.
        order, min_pattern_count, label_patterns
            As the estimators explain them.
        constraints, has_edges
            See the attributes.
        """
        n_labels = len(labels.classes)
        if label_patterns is not None:
            patterns = Patterns.read(label_patterns, labels)
        elif order == 1 and min_pattern_count == 0:
            patterns = Patterns.pairs(n_labels)
            if constraints is not None:
                patterns = patterns.select(constraints.allowed.ravel())
        else:
            min_count = max(1, min_pattern_count)
            patterns = Patterns.seen(codes, offsets, order, n_labels=n_labels, min_count=min_count)
        return cls(n_labels, patterns, constraints, has_edges)

    @lazy
    def automaton(self) -> Automaton | None:
        """What the arcs belong to; None where a first-order chain does it faster."""
        if self.patterns.longest <= 2:
            n_pairs = len(self.patterns) + len(self._forbidden)
            if self.has_edges or n_pairs * COST_OF_ARC >= self.n_labels**2:
                return None
        extra = [self._forbidden]
        if self.has_edges:
            extra.append(np.argwhere(self._allowed).astype(np.int32))
        rows = Patterns.from_rows(extra)
        patterns = Patterns(
            np.concatenate([self.patterns.offsets, self.patterns.offsets[-1] + rows.offsets[1:]]),
            np.concatenate([self.patterns.labels, rows.labels]),
        )
        return Automaton.build(self.n_labels, patterns)

    def arcs(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of the arcs, (K, K) or (A,), from the weights of the patterns, (P,)."""
        automaton = self.automaton
        if automaton is None:
            scores = np.where(self._allowed, 0.0, -np.inf)
            scores.ravel()[self._pair_codes] += weights
            return scores
        n_allowed = len(automaton.pattern_arcs) - len(weights) - len(self._forbidden)
        forbidden = np.full(len(self._forbidden), -np.inf)
        return automaton.arc_scores(np.concatenate([weights, forbidden, np.zeros(n_allowed)]))

    def pattern_scores(
        self, codes: NDArray[np.int32], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Sum of the weights of the patterns that end at each position of a labelling, (T,).

        What the constraints forbid has a weight of nothing here.
        """
        if self.automaton is None:
            pairs = np.zeros(self.n_labels**2)
            pairs[self._pair_codes] += weights
            scores = np.zeros(len(codes))
            scores[1:] = pairs[codes[:-1] * np.int64(self.n_labels) + codes[1:]]
            return scores
        n_others = len(self.automaton.pattern_arcs) - len(weights)
        arcs = self.automaton.arcs_taken(codes, np.array([0, len(codes)]))
        return self.automaton.arc_scores(np.concatenate([weights, np.zeros(n_others)]))[arcs]

    def pattern_sums(self, arc_sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the arcs that end in each pattern, (..., P), from those of the arcs.

        ``arc_sums`` is (..., K, K) or (..., A), whatever the arcs are.
        """
        if self.automaton is None:
            by_code = arc_sums.reshape(*arc_sums.shape[:-2], -1)
            sums: NDArray[np.float64] = by_code[..., self._pair_codes]
            return sums
        return self.automaton.pattern_sums(arc_sums)[..., : len(self.patterns)]

    @property
    def pattern_arcs(self) -> PatternArcs:
        """The arcs that `pattern_sums` adds up for each pattern."""
        n_patterns = len(self.patterns)
        if self.automaton is None:
            codes = self._pair_codes
            return PatternArcs(np.arange(n_patterns + 1, dtype=np.int64), codes)
        return self.automaton.pattern_members(n_patterns)

    def pairs(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Those patterns that are pairs: code j * K + k and weight of each."""
        offsets = self.patterns.offsets
        short = np.diff(offsets) == 2
        first = offsets[:-1][short]
        labels = self.patterns.labels
        return labels[first] * np.int32(self.n_labels) + labels[first + 1], weights[short]

    def restrict(self, nodes: NDArray[np.float64], offsets: NDArray[np.int64]) -> None:
        """Forbid, in place, labels that may not begin or end a sequence. ``nodes`` (N, K)."""
        if self.constraints is not None:
            self.constraints.restrict(nodes, offsets)

    @lazy
    def _allowed(self) -> NDArray[np.bool_]:
        """(K, K) pairs that are not forbidden."""
        if self.constraints is None:
            return np.ones((self.n_labels, self.n_labels), dtype=np.bool_)
        return self.constraints.allowed

    @lazy
    def _forbidden(self) -> NDArray[np.int32]:
        """(n, 2) forbidden pairs."""
        if self.constraints is None:
            return np.empty((0, 2), dtype=np.int32)
        return np.argwhere(~self.constraints.allowed).astype(np.int32)

    @lazy
    def _pair_codes(self) -> NDArray[np.int32]:
        """(P,) j * K + k of each pattern, if all are pairs."""
        return self.pairs(np.empty(len(self.patterns)))[0]
