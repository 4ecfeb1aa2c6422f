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
    patterns: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]] | None,
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
def fill_tangents(
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    offsets: NDArray[np.int64],
    marginals: NDArray[np.float64],
    node_moves: NDArray[np.float64],
    arc_moves: NDArray[np.float64] | None,
    marginal_slopes: NDArray[np.float64],
    pair_sum_slopes: NDArray[np.float64] | None,
    pair_slopes: NDArray[np.float64] | None,
    refused: NDArray[np.uint8],
    n_threads: int,
) -> None: ...
def fill_mixing(
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    offsets: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    node_gammas: NDArray[np.float32],
    edge_gammas: NDArray[np.float32] | None,
    pair_curvature: NDArray[np.float64] | None,
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
    patterns: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]] | None,
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
def fill_automaton_tangents(
    automaton: Automaton,
    nodes: NDArray[np.float64],
    arcs: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    marginals: NDArray[np.float64],
    node_moves: NDArray[np.float64],
    arc_moves: NDArray[np.float64] | None,
    wanted: NDArray[np.uint8] | None,
    marginal_slopes: NDArray[np.float64],
    arc_sum_slopes: NDArray[np.float64] | None,
    arc_slopes: NDArray[np.float64] | None,
    pair_slopes: NDArray[np.float64] | None,
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
    @property
    def is_empty(self) -> bool: ...
    def to_arrays(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]: ...
    def restore(
        self,
        steps: NDArray[np.float32],
        changes: NDArray[np.float32],
        products: NDArray[np.float64],
    ) -> None: ...
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
def fill_bins(
    values: NDArray[np.float64],
    cut_offsets: NDArray[np.int64],
    cuts: NDArray[np.float64],
    bins: NDArray[np.uint8],
    n_threads: int,
) -> None: ...
def fill_entry_bins(
    values: NDArray[np.float64],
    columns: NDArray[np.int32],
    cut_offsets: NDArray[np.int64],
    cuts: NDArray[np.float64],
    bins: NDArray[np.uint8],
    n_threads: int,
) -> None: ...

class Bins:
    def __init__(
        self,
        dense: NDArray[np.uint8],
        entry_offsets: NDArray[np.int64] | None,
        attributes: NDArray[np.int32] | None,
        attribute_bins: NDArray[np.uint8] | None,
        n_bins: NDArray[np.int32],
        default_bins: NDArray[np.uint8],
        categorical: NDArray[np.uint8],
        offsets: NDArray[np.int64],
    ) -> None: ...

class TreeData:
    def __init__(self, bins: Bins, before: int, after: int) -> None: ...

class Examples:
    def __init__(
        self,
        expected: NDArray[np.float64],
        probabilities: NDArray[np.float64],
        expected_is_weighted: bool,
        codes: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
        scales: NDArray[np.float64] | None,
        partial_positions: NDArray[np.int64] | None,
        partial_observed: NDArray[np.float64] | None,
        gammas: NDArray[np.float32] | None,
        label_gammas: NDArray[np.float32] | None,
        gradients: NDArray[np.float64] | None,
        trim: float,
        selected: NDArray[np.uint8] | None,
        negative_ratio: float,
        key: int,
        n_threads: int,
    ) -> None: ...
    @staticmethod
    def of_lists(
        offsets: NDArray[np.int64],
        positions: NDArray[np.int32],
        gradients: NDArray[np.float32],
        curvatures: NDArray[np.float32],
    ) -> Examples: ...
    def of_label(
        self, label: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]: ...

def count_right(
    probabilities: NDArray[np.float64], codes: NDArray[np.int32], n_threads: int
) -> int: ...
def grow_trees(
    data: TreeData,
    examples: Examples,
    max_leaves: int,
    max_depth: int,
    min_child_weight: float,
    min_split_gain: float,
    reg_lambda: float,
    max_step: float,
    learning_rate: float,
    colsample_bytree: float,
    colsample_bynode: float,
    key: int,
    n_threads: int,
) -> dict[str, NDArray[Any]]: ...
def sum_accuracy(
    marginals: NDArray[np.float64],
    labels: NDArray[np.int32],
    weights: NDArray[np.float64],
    sharpness: float,
) -> float: ...
def fill_accuracy_gradient(
    marginals: NDArray[np.float64],
    labels: NDArray[np.int32],
    weights: NDArray[np.float64],
    sharpness: float,
    gradient: NDArray[np.float64],
) -> None: ...

class Forest:
    def __init__(
        self,
        tree_offsets: NDArray[np.int64],
        tree_labels: NDArray[np.int32],
        columns: NDArray[np.int32],
        offsets: NDArray[np.int32],
        cuts: NDArray[np.uint8],
        missing_left: NDArray[np.uint8],
        sets: NDArray[np.int32],
        lefts: NDArray[np.int32],
        values: NDArray[np.float32],
        left_sets: NDArray[np.uint8],
        n_dense: int,
        n_attributes: int,
        n_labels: int,
    ) -> None: ...
    def add_scores(
        self,
        bins: Bins,
        scores: NDArray[np.float64],
        out: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...
