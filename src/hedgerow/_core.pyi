from typing import Any

import numpy as np
from numpy.typing import NDArray

def release_memory() -> None: ...

class NoPathError(ValueError): ...

def fill_posteriors(
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    labels: NDArray[np.int32] | None,
    log_z: NDArray[np.float64] | None,
    log_likelihoods: NDArray[np.float64] | None,
    marginals: NDArray[np.float64] | None,
    pair_sums: NDArray[np.float64] | None,
    pairs: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    n_threads: int,
) -> None: ...
def fill_weighted_posteriors(
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    labels: NDArray[np.int32],
    weights: NDArray[np.float64],
    log_likelihoods: NDArray[np.float64],
    marginals: NDArray[np.float64],
    pair_sums: NDArray[np.float64] | None,
    pairs: NDArray[np.float64] | None,
    n_threads: int,
) -> None: ...
def fill_viterbi(
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    labels: NDArray[np.int32],
    n_threads: int,
) -> None: ...

class Automaton:
    n_terms: int
    def __init__(
        self,
        n_labels: int,
        failures: NDArray[np.int32],
        last_labels: NDArray[np.int32],
        sources: NDArray[np.int32],
        labels: NDArray[np.int32],
        targets: NDArray[np.int32],
        links: NDArray[np.int32],
    ) -> None: ...
    def fill_arcs_taken(
        self, labels: NDArray[np.int32], offsets: NDArray[np.int64], arcs: NDArray[np.int32]
    ) -> None: ...

def fill_automaton_posteriors(
    automaton: Automaton,
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    labels: NDArray[np.int32] | None,
    log_z: NDArray[np.float64] | None,
    log_likelihoods: NDArray[np.float64] | None,
    marginals: NDArray[np.float64] | None,
    arc_sums: NDArray[np.float64] | None,
    arc_marginals: NDArray[np.float64] | None,
    pairs: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    n_threads: int,
) -> None: ...
def fill_weighted_automaton_posteriors(
    automaton: Automaton,
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    labels: NDArray[np.int32],
    weights: NDArray[np.float64],
    log_likelihoods: NDArray[np.float64],
    marginals: NDArray[np.float64],
    arc_sums: NDArray[np.float64] | None,
    pairs: NDArray[np.float64] | None,
    n_threads: int,
) -> None: ...
def fill_automaton_viterbi(
    automaton: Automaton,
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    labels: NDArray[np.int32],
    n_threads: int,
) -> None: ...
def fill_k_best(
    automaton: Automaton,
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    labels: NDArray[np.int32],
    counts: NDArray[np.int64],
    losses: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def fill_samples(
    automaton: Automaton,
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    uniforms: NDArray[np.float64],
    labels: NDArray[np.int32],
    n_threads: int,
) -> None: ...

class Scorer:
    def __init__(
        self,
        weight_offsets: NDArray[np.int64],
        weight_outputs: NDArray[np.int32],
        n_outputs: int,
        weights: NDArray[np.float64],
        biases: NDArray[np.float64] | None,
    ) -> None: ...
    def fill_scores(
        self,
        offsets: NDArray[np.int64],
        attributes: NDArray[np.int32],
        values: NDArray[np.float64] | None,
        scores: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...

class AttributeBlocks:
    def __init__(
        self,
        offsets: NDArray[np.int64],
        attributes: NDArray[np.int32],
        values: NDArray[np.float64] | None,
        n_attributes: int,
    ) -> None: ...
    def fill_scores(
        self,
        weight_offsets: NDArray[np.int64],
        weight_outputs: NDArray[np.int32],
        weights: NDArray[np.float64],
        biases: NDArray[np.float64] | None,
        scores: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...
    def add_gradient(
        self,
        weight_offsets: NDArray[np.int64],
        weight_outputs: NDArray[np.int32],
        residuals: NDArray[np.float64],
        gradient: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...

def build_seen_pairs(
    offsets: NDArray[np.int64],
    attributes: NDArray[np.int32],
    n_attributes: int,
    outputs: NDArray[np.int32],
    n_outputs: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...

class InverseHessian:
    def __init__(self, n_weights: int, memory: int) -> None: ...
    def push(
        self, step: NDArray[np.float64], change: NDArray[np.float64], n_threads: int
    ) -> None: ...
    def clear(self) -> None: ...
    def fill_direction(
        self, gradient: NDArray[np.float64], direction: NDArray[np.float64], n_threads: int
    ) -> None: ...

class StringIndex:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def find(self, name: str) -> int: ...
    def add(self, name: str) -> int: ...
    def names(self) -> list[str]: ...
    def to_arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
    @staticmethod
    def from_arrays(text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> StringIndex: ...

def walk_items(
    sequences: list[Any], index: StringIndex, grow: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]: ...
