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
        gradients: NDArray[np.float64],
        curvatures: NDArray[np.float32],
        *,
        trim: float,
        scales: NDArray[np.float64] | None = None,
        selected: NDArray[np.uint8] | None = None,
        negative_ratio: float = 0.0,
        codes: NDArray[np.int32] | None = None,
        key: int = 0,
        n_threads: int,
    ) -> None: ...
    @staticmethod
    def of_lists(
        offsets: NDArray[np.int64],
        positions: NDArray[np.int32],
        gradients: NDArray[np.float32],
        curvatures: NDArray[np.float32],
    ) -> Examples: ...
    def of_output(
        self, output: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]: ...

def count_right(
    probabilities: NDArray[np.float64], codes: NDArray[np.int32], n_threads: int
) -> int: ...

class GrowthRules:
    def __init__(
        self,
        *,
        max_leaves: int,
        max_depth: int,
        min_child_weight: float,
        min_split_gain: float,
        reg_lambda: float,
        max_step: float,
        learning_rate: float,
        colsample_bytree: float = 1.0,
        colsample_bynode: float = 1.0,
    ) -> None: ...

def grow_trees(
    data: TreeData, examples: Examples, rules: GrowthRules, key: int, n_threads: int
) -> Forest: ...
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
def fill_curvatures(
    probabilities: NDArray[np.float64],
    gammas: NDArray[np.float32],
    scales: NDArray[np.float64] | None,
    out: NDArray[np.float32],
    n_threads: int,
) -> None: ...

class Forest:
    def __init__(
        self, arrays: dict[str, NDArray[Any]], n_outputs: int, n_columns: int | None = None
    ) -> None: ...
    @staticmethod
    def join(n_outputs: int, parts: list[Forest]) -> Forest: ...
    @property
    def round_offsets(self) -> NDArray[np.int64]: ...
    @property
    def tree_offsets(self) -> NDArray[np.int64]: ...
    @property
    def outputs(self) -> NDArray[np.int32]: ...
    @property
    def tree_weights(self) -> NDArray[np.float64]: ...
    @property
    def columns(self) -> NDArray[np.int32]: ...
    @property
    def offsets(self) -> NDArray[np.int32]: ...
    @property
    def cuts(self) -> NDArray[np.uint8]: ...
    @property
    def missing_left(self) -> NDArray[np.uint8]: ...
    @property
    def sets(self) -> NDArray[np.int32]: ...
    @property
    def lefts(self) -> NDArray[np.int32]: ...
    @property
    def values(self) -> NDArray[np.float32]: ...
    @property
    def gains(self) -> NDArray[np.float32]: ...
    @property
    def weights(self) -> NDArray[np.float32]: ...
    @property
    def left_sets(self) -> NDArray[np.uint8]: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def n_rounds(self) -> int: ...
    def scaled(self, factor: float) -> Forest: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def add_scores(
        self,
        bins: Bins,
        scores: NDArray[np.float64],
        out: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...
