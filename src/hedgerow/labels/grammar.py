"""Grammar: which label patterns have weights, and which labels may follow which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.labels.classes import Labels
from hedgerow.labels.constraints import Constraints
from hedgerow.labels.patterns import Patterns
from hedgerow.lazy import LazyAttributes, lazy

__all__ = ["Grammar"]


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
        The constraints.
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
        parents: NDArray[np.int32] | None = None,
        order: int,
        min_pattern_count: int,
        label_patterns: Any,
        constraints: Constraints | None,
        has_edges: bool,
        more: Patterns | None = None,
        comm: Comm = ALONE,
    ) -> Grammar:
        """Find the patterns that have weights.

        Parameters
        ----------
        labels, codes, offsets
            The classes, and the labels of the training sequences, -1 where unknown.
        parents
            Where in its sequence the parent of each position is, (N,), -1 for a root; None for
            chains.
        order, min_pattern_count, label_patterns
            See the estimators.
        constraints, has_edges
            See the attributes.
        more
            Further patterns that have weights.
        comm
            The workers; patterns are counted in the labels of all of them.
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
            patterns = Patterns.seen(
                codes,
                offsets,
                order,
                parents=parents,
                n_labels=n_labels,
                min_count=min_count,
                comm=comm,
            )
        if more is not None and (unseen := patterns.find(more) < 0).any():
            patterns = patterns.join(more.select(unseen))
        return cls(n_labels, patterns, constraints, has_edges)

    def pairs(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The patterns that are pairs: code j * K + k and weight of each."""
        offsets = self.patterns.offsets
        short = np.diff(offsets) == 2
        first = offsets[:-1][short]
        labels = self.patterns.labels
        return labels[first] * np.int32(self.n_labels) + labels[first + 1], weights[short]

    @lazy
    def allowed_pairs(self) -> NDArray[np.bool_]:
        """(K, K) pairs that are allowed."""
        if self.constraints is None:
            return np.ones((self.n_labels, self.n_labels), dtype=np.bool_)
        return self.constraints.allowed

    @lazy
    def forbidden_pairs(self) -> NDArray[np.int32]:
        """Pairs that are forbidden, (n, 2)."""
        return np.argwhere(~self.allowed_pairs).astype(np.int32)

    @property
    def pair_codes(self) -> NDArray[np.int32]:
        """Code of each pattern that is a pair, j * K + k."""
        return self.pairs(np.empty(len(self.patterns)))[0]
