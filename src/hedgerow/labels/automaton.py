"""The label automaton: from label patterns to states and arcs.

The states are the empty string, every label, and every proper prefix of a pattern; after any labels
the automaton is in the state that is their longest suffix. A state has an arc for a label if its
string with this label appended is itself a state or a pattern; the arc stands for that string. A
state without its own arc for a label uses the arc of its longest suffix that has one. The states
are the forward-state set of Ye et al. (2009). Since arcs are explicit here, their backward-state
set and its corrections are not needed.

Strings are numbered by length, then by (number of the string without its last label, last label),
so that all operations work on whole arrays, length by length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.labels.patterns import Patterns
from hedgerow.lazy import LazyAttributes, lazy

__all__ = ["Automaton", "PatternArcs", "pair_automaton"]


class PatternArcs(NamedTuple):
    """The arcs whose strings end in each of P patterns."""

    offsets: NDArray[np.int64]
    """(P + 1,) where the arcs of each pattern begin and end."""
    arcs: NDArray[np.int32]
    """(M,) numbers of arcs, or j * K + k for the label pairs of a first-order chain."""


@dataclass(frozen=True, eq=False)
class Automaton(LazyAttributes):
    """An automaton over K labels with A arcs, and P patterns that have scores.

    Attributes
    ----------
    n_labels : int
        Number of labels, K.
    arc_offsets : (L + 1,) int64
        Arcs ``arc_offsets[n - 1]`` to ``arc_offsets[n]`` stand for strings of n labels.
    sources, targets : (A,) int32
        States that an arc leaves and leads to; state 0 is the empty string.
    labels : (A,) int32
        Last label of each arc's string.
    links : (A,) int32
        Arc of the longest proper suffix that is an arc; -1 for strings of one label.
    failures, last_labels : (S,) int32
        Longest proper suffix that is a state, and last label, of each state; -1 for state 0.
    pattern_arcs : (P,) int32
        Arc that stands for each pattern.

    Examples
    --------
    >>> import numpy as np
    >>> automaton = Automaton.build(2, [(0, 1), (1, 0, 1)])
    >>> automaton.n_states, automaton.n_arcs
    (4, 5)
    >>> automaton.arc_scores([2.0, 0.5]).tolist()  # of the strings 0, 1, 01, 10, 101
    [0.0, 0.0, 2.0, 0.0, 2.5]
    """

    n_labels: int
    arc_offsets: NDArray[np.int64]
    sources: NDArray[np.int32]
    labels: NDArray[np.int32]
    targets: NDArray[np.int32]
    links: NDArray[np.int32]
    failures: NDArray[np.int32]
    last_labels: NDArray[np.int32]
    pattern_arcs: NDArray[np.int32]

    @classmethod
    def build(cls, n_labels: int, patterns: Patterns | Iterable[Sequence[int]]) -> Automaton:
        """Build the automaton of patterns of label codes."""
        if not isinstance(patterns, Patterns):
            patterns = Patterns.of(patterns)
        arc_offsets, parents, labels, pattern_arcs = _number_strings(n_labels, patterns)
        links = _find_links(n_labels, arc_offsets, parents, labels)

        n_arcs = len(labels)
        is_state = np.zeros(n_arcs, dtype=np.bool_)
        is_state[:n_labels] = True
        is_state[parents[n_labels:]] = True
        n_states = int(is_state.sum()) + 1
        states = np.full(n_arcs, -1, dtype=np.int32)  # state of an arc's complete string
        states[is_state] = np.arange(1, n_states, dtype=np.int32)
        targets = states.copy()
        for first, last in pairwise(arc_offsets[1:]):
            part = targets[first:last]
            missing = part < 0
            part[missing] = targets[links[first:last][missing]]

        failures = np.full(n_states, -1, dtype=np.int32)
        failures[1:] = np.append(targets, np.int32(0))[links[is_state]]
        last_labels = np.full(n_states, -1, dtype=np.int32)
        last_labels[1:] = labels[is_state]
        sources = np.append(states, np.int32(0))[parents]
        return cls(
            n_labels,
            arc_offsets,
            sources,
            labels,
            targets,
            links,
            failures,
            last_labels,
            pattern_arcs,
        )

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return len(self.failures)

    @property
    def n_arcs(self) -> int:
        """Number of arcs, A."""
        return len(self.labels)

    @lazy
    def program(self) -> _core.Automaton:
        """The automaton in the format of the kernels."""
        return _core.Automaton(
            self.n_labels,
            self.failures,
            self.last_labels,
            self.sources,
            self.labels,
            self.targets,
            self.links,
        )

    def arc_scores(self, pattern_scores: ArrayLike) -> NDArray[np.float64]:
        """Score of each arc, (A,): the sum over the patterns that are suffixes of its string.

        ``pattern_scores`` is (P,); -inf forbids a pattern.
        """
        scores = np.zeros(self.n_arcs)
        np.add.at(scores, self.pattern_arcs, np.asarray(pattern_scores, dtype=np.float64))
        for first, last in pairwise(self.arc_offsets[1:]):
            scores[first:last] += scores[self.links[first:last]]
        return scores

    def pattern_sums(self, arc_sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each pattern the sum over the arcs whose strings end in it, (..., A) to (..., P).

        For probabilities of arcs, the sums are the probabilities of patterns, since a labelling
        ends in a pattern if and only if the string of its last arc does.
        """
        sums = np.array(arc_sums, dtype=np.float64).reshape(-1, self.n_arcs)
        for last, first in pairwise(self.arc_offsets[:0:-1]):
            for row in sums:
                part = np.bincount(self.links[first:last], row[first:last], minlength=first)
                row[:first] += part
        shape = (*np.shape(arc_sums)[:-1], len(self.pattern_arcs))
        return sums[:, self.pattern_arcs].reshape(shape)

    def pattern_members(self, n_patterns: int) -> PatternArcs:
        """The arcs that `pattern_sums` adds up for each of the first patterns."""
        arcs = np.arange(self.n_arcs, dtype=np.int32)
        members, suffixes = [arcs], [arcs]
        while len(arcs):
            links = self.links[suffixes[-1]]
            arcs = members[-1][links >= 0]
            members.append(arcs)
            suffixes.append(links[links >= 0])
        suffix = np.concatenate(suffixes)
        by_suffix = np.concatenate(members)[np.argsort(suffix, kind="stable")]
        ends = np.cumsum(np.bincount(suffix, minlength=self.n_arcs))
        wanted = self.pattern_arcs[:n_patterns]
        counts = np.diff(ends, prepend=0)[wanted]
        offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        places = np.arange(offsets[-1]) + np.repeat(ends[wanted] - offsets[1:], counts)
        return PatternArcs(offsets, by_suffix[places])

    def labels_before(self) -> NDArray[np.int32]:
        """Labels before the last one of each arc's string, nearest first, (A, L - 1); -1: none."""
        # The first, and so the shortest, of all arcs that lead to a state represents its string.
        own_arcs = np.zeros(self.n_states, dtype=np.int64)
        reached, first = np.unique(self.targets, return_index=True)
        own_arcs[reached] = first
        shorter = self.sources[own_arcs]  # state of a state's string without its last label
        shorter[0] = 0
        columns, states = [], self.sources
        for _ in range(len(self.arc_offsets) - 2):
            columns.append(self.last_labels[states])
            states = shorter[states]
        return np.stack(columns, axis=1) if columns else np.empty((self.n_arcs, 0), np.int32)

    def arcs_taken(
        self,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        parents: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int32]:
        """Arc into each position of labelled sequences, (N,); -1 where a label is not known."""
        arcs = np.empty(len(codes), dtype=np.int32)
        self.program.fill_arcs_taken(codes, offsets, parents, arcs)
        return arcs


@lru_cache(maxsize=8)
def pair_automaton(n_labels: int) -> Automaton:
    """The automaton of all label pairs; its arcs are the K labels, then the pairs (j, k)."""
    return Automaton.build(n_labels, Patterns.pairs(n_labels))


def _number_strings(
    n_labels: int, patterns: Patterns
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """All labels and all prefixes of patterns: arc_offsets, parents, labels, pattern_arcs.

    The parent of a string is the string without its last label, -1 for a single label.
    """
    lengths = patterns.lengths
    arc_offsets = [0, n_labels]
    parents = [np.full(n_labels, -1, dtype=np.int32)]
    labels = [np.arange(n_labels, dtype=np.int32)]
    numbers = patterns.labels[patterns.offsets[:-1]].astype(np.int64)  # of the prefix so far
    for length in range(2, int(lengths.max(initial=1)) + 1):
        longer = np.flatnonzero(lengths >= length)
        last = patterns.labels[patterns.offsets[longer] + length - 1]
        keys, inverse = np.unique(numbers[longer] * n_labels + last, return_inverse=True)
        numbers[longer] = arc_offsets[-1] + inverse
        parents.append((keys // n_labels).astype(np.int32))
        labels.append((keys % n_labels).astype(np.int32))
        arc_offsets.append(arc_offsets[-1] + len(keys))
    return (
        np.array(arc_offsets, dtype=np.int64),
        np.concatenate(parents),
        np.concatenate(labels),
        numbers.astype(np.int32),
    )


def _find_links(
    n_labels: int,
    arc_offsets: NDArray[np.int64],
    parents: NDArray[np.int32],
    labels: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Longest proper suffix of each string that is one of the strings, -1 for a single label.

    A string is q k: its parent q, then the label k. Its suffixes are those of q followed by k, so
    the candidates are the links of q, one after another, and finally the empty string, which every
    label can follow.
    """
    keys = (parents.astype(np.int64) + 1) * n_labels + labels  # ascending, because of the numbering
    links = np.full(len(labels), -1, dtype=np.int32)
    for first, last in pairwise(arc_offsets[1:]):
        searching = np.arange(first, last)
        suffixes = links[parents[searching]]
        while len(searching):
            wanted = (suffixes.astype(np.int64) + 1) * n_labels + labels[searching]
            places = np.searchsorted(keys, wanted)
            found = keys[places.clip(max=len(keys) - 1)] == wanted
            links[searching[found]] = places[found]
            searching = searching[~found]
            suffixes = links[suffixes[~found]]
    return links
