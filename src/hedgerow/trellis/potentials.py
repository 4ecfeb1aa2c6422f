"""Potentials: scores of sequences, and how kernels take them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.labels.automaton import Automaton, pair_automaton

__all__ = [
    "Potentials",
    "Scores",
    "count_threads",
    "over_automaton",
    "read_codes",
    "read_weights",
]

# More than any machine has cores.
MOST_THREADS = 10_000


@dataclass(frozen=True, eq=False)
class Potentials:
    """Scores of some consecutive sequences.

    Attributes
    ----------
    nodes : (N, K)
        Scores of the labels at each position.
    arcs : (K, K), or (A,) with an automaton
        Scores of the arcs, the same at every position.
    offsets : (S + 1,) int64
        Where the sequences begin and end.
    edges : (N, K, K) or None
        Scores of label pairs that differ from position to position.
    automaton : Automaton or None
        What the arcs belong to; None is a first-order chain.
    """

    nodes: NDArray[np.float64]
    arcs: NDArray[np.float64]
    offsets: NDArray[np.int64]
    edges: NDArray[np.float64] | None = None
    automaton: Automaton | None = None

    @property
    def n_positions(self) -> int:
        """Number of positions, N."""
        return len(self.nodes)

    @property
    def n_labels(self) -> int:
        """Number of labels, K."""
        return int(self.nodes.shape[1])

    @property
    def n_sequences(self) -> int:
        """Number of sequences, S."""
        return len(self.offsets) - 1

    def part(self, sequences: slice) -> Potentials:
        """Only some consecutive sequences."""
        first, stop, _ = sequences.indices(self.n_sequences)
        begin, end = int(self.offsets[first]), int(self.offsets[stop])
        return replace(
            self,
            nodes=self.nodes[begin:end],
            offsets=self.offsets[first : stop + 1] - begin,
            edges=None if self.edges is None else self.edges[begin:end],
        )


def count_threads(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means: None all cores, -1 all cores, -2 all but one, and so on."""
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    else:
        n_cores = os.cpu_count() or 1
    if n_jobs is None:
        return n_cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(
            f"n_jobs is {n_jobs!r}; expected a positive number of threads, None or -1 for all "
            "cores, or -2 for all but one"
        )
    if n_jobs > MOST_THREADS:
        raise ValueError(f"n_jobs is {n_jobs}; expected at most {MOST_THREADS} threads")
    return int(n_jobs) if n_jobs > 0 else max(1, n_cores + 1 + int(n_jobs))


def read_codes(labels: ArrayLike, n_labels: int) -> NDArray[np.int32]:
    """Label codes, (N,), as the kernels want them: integers from 0 to ``n_labels - 1``."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ValueError(
            f"labels must have an entry for each position, (N,); they have shape {given.shape}"
        )
    codes = _whole_numbers(given, np.dtype(np.int32))
    if codes is None or (len(codes) and not 0 <= codes.min() <= codes.max() < n_labels):
        position, label = next(
            (position, label)
            for position, label in enumerate(given.tolist())
            if not (isinstance(label, Real) and label in range(n_labels))
        )
        raise ValueError(
            f"labels must be integers from 0 to n_labels - 1 = {n_labels - 1}; got {label!r} at "
            f"position {position}"
        )
    return codes


def read_weights(weights: ArrayLike) -> NDArray[np.float64]:
    """Weights as the kernels want them."""
    numbers = np.ascontiguousarray(weights, dtype=np.float64)
    if not np.isfinite(numbers).all():
        where = np.flatnonzero(~np.isfinite(numbers))[0]
        raise ValueError(
            f"weight {where} is {numbers.ravel()[where]}; weights must be finite numbers"
        )
    return numbers


def _whole_numbers(given: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any] | None:
    """The same numbers as integers, None where they are not the same."""
    if given.dtype == kind:
        return np.ascontiguousarray(given)
    try:
        with np.errstate(invalid="ignore"):
            numbers = given.astype(kind)
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if np.array_equal(numbers, given) else None


def over_automaton(potentials: Potentials) -> Potentials:
    """The same scores, over the automaton of all label pairs if they are of first order."""
    if potentials.automaton is not None:
        return potentials
    automaton = pair_automaton(potentials.n_labels)
    arcs = automaton.arc_scores(np.ravel(potentials.arcs))
    return replace(potentials, arcs=arcs, automaton=automaton)


class Scores:
    """Potentials as the kernels want them."""

    def __init__(self, potentials: Potentials) -> None:
        self.potentials = potentials
        edges = potentials.edges
        offsets = _whole_numbers(np.asarray(potentials.offsets), np.dtype(np.int64))
        if offsets is None:
            raise ValueError(f"offsets are {potentials.offsets}; expected whole numbers")
        self.arguments: tuple[Any, ...] = (
            np.ascontiguousarray(potentials.nodes, dtype=np.float64),
            np.ascontiguousarray(potentials.arcs, dtype=np.float64),
            None if edges is None else np.ascontiguousarray(edges, dtype=np.float64),
            offsets,
        )
        if potentials.automaton is not None:
            self.arguments = (potentials.automaton.program, *self.arguments)

    def bind(
        self, chain_kernel: Callable[..., None] | None, automaton_kernel: Callable[..., None]
    ) -> Callable[..., None]:
        """The kernel for first-order chains or that for automata, with the scores filled in."""
        kernel = automaton_kernel if self.potentials.automaton is not None else chain_kernel
        assert kernel is not None
        return partial(kernel, *self.arguments)
