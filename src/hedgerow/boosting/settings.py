"""Settings of a boosting run: parameters of `TreeCRF`, checked and with defaults filled in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.boosting.column_rules import (
    InteractionConstraints,
    MonotoneConstraints,
    check_column_parameters,
)
from hedgerow.parameters import check_choice, check_number, read_random_state
from hedgerow.threads import count_threads
from hedgerow.training.label_parameters import LabelParameters
from hedgerow.trees.columns import check_max_bins
from hedgerow.trees.learner import GrowthRules
from hedgerow.trees.missing import METHODS, MissingMethod
from hedgerow.trees.sampling import NegativeWeight, Sampling

__all__ = [
    "CurvatureKind",
    "DirectionKind",
    "SamplingMethod",
    "Settings",
    "TransitionStep",
    "Transitions",
    "TreeParameters",
    "check_tree_parameters",
    "read_window",
]

CurvatureKind = Literal["mixing", "exact", "length"]
DirectionKind = Literal["steepest", "conjugate"]
TransitionStep = Literal["auto", "bound", "exact"]
Transitions = Literal["weights", "trees"]
SamplingMethod = Literal["uniform", "gradient_based"]

# Weights of label patterns are optimised once in this many rounds: trees change little in between.
EXACT_EVERY = 8


@dataclass(frozen=True)
class ExactRounds:
    """The rounds that optimise the weights of label patterns: one in every `EXACT_EVERY`.

    Every round takes one step of these weights; after it, these rounds also optimise them.

    Attributes
    ----------
    n_labels : int
        Only if the longest pattern has at least this many labels.
    first : int
        Only from this round on, counted from 1. If weights are optimised while trees are still
        weak, they absorb what the trees should learn.
    """

    n_labels: int
    first: int

    def include(self, number: int, longest: int) -> bool:
        """Whether a round is one of them, with patterns of at most this many labels."""
        return longest >= self.n_labels and number >= self.first and number % EXACT_EVERY == 0


# See `TreeCRF`; `benchmarks/pattern_weights.py` compares them.
EXACT_ROUNDS: dict[TransitionStep, ExactRounds] = {
    "auto": ExactRounds(n_labels=3, first=32),
    "bound": ExactRounds(n_labels=sys.maxsize, first=1),
    "exact": ExactRounds(n_labels=2, first=1),
}

# Default shape of trees, chosen with `benchmarks/defaults.py` among many settings on up to thirteen
# tasks.
USUAL_DEPTH = 10
USUAL_LEAVES = 31
LOG_MAX_LEAVES = 15
MAX_LEAVES = 1 << LOG_MAX_LEAVES
MAX_REACH = 255
# Maximum number of literals of a query: its unique name is found by trying all their orders.
MAX_LITERALS = 6
# There are so many ways to split previous labels that some fit by chance. Of 0, 3, 10, 30 and 100,
# 0 and 100 were worse on one fold of the data set letters, or on protein; 20 lies within the range
# of the rest.
LABEL_LAMBDA = 20.0
# Learning rate of a line search. Of 0.1, 0.3 and 1 it had the lowest test loss on letters,
# phonemes, stress marks and protein: see `benchmarks/search_directions.py`.
SEARCHED_RATE = 0.1
LARGEST_RATE = 1e6  # its product with a leaf value is still finite


class TreeParameters(LabelParameters, Protocol):
    """The parameters of an estimator that are about trees; documented in `TreeCRF`."""

    n_rounds: int
    learning_rate: float | None
    max_depth: int | None
    max_leaves: int | None
    min_child_weight: float
    min_split_gain: float
    reg_lambda: float
    max_step: float | None
    max_bins: int
    window: int | tuple[int, int]
    ancestors: int
    colsample_bytree: float
    colsample_bynode: float
    monotone_constraints: MonotoneConstraints
    interaction_constraints: InteractionConstraints
    newton: bool
    curvature: CurvatureKind
    direction: DirectionKind
    line_search: bool | None
    transitions: Transitions
    transition_step: TransitionStep
    trim: float | None
    subsample: float
    sampling_method: SamplingMethod
    stratified: bool
    negative_ratio: float
    negative_weight: NegativeWeight
    warm_rounds: int | None
    n_jobs: int | None
    random_state: Any
    missing: MissingMethod
    max_literals: int


@dataclass(frozen=True)
class Settings:
    """The parameters of `hedgerow.TreeCRF`, which documents them."""

    learning_rate: float
    reg_lambda: float
    max_step: float
    newton: bool
    curvature: CurvatureKind
    direction: DirectionKind
    line_search: bool
    exact_rounds: ExactRounds
    """Which rounds optimise the weights of label patterns, instead of taking only one step."""
    max_depth: int
    min_child_weight: float
    growth_rules: GrowthRules
    """Limits on the growth of a tree, including the two above."""
    sampling: Sampling
    """What the rounds learn from."""
    draws: bool
    """Whether rounds draw random samples.

    If so, training continues after a round that learns nothing, since the next has another sample.
    """
    n_threads: int
    column_rules: _core.ColumnRules | None = None
    """Monotone and interaction constraints; None: there are none."""

    @property
    def have_directions(self) -> bool:
        """Whether rounds have directions, or just add trees: see `Rounds`."""
        return self.line_search or self.direction == "conjugate"

    @property
    def n_direction_arrays(self) -> int:
        """Number of arrays, each of the size of the scores, that directions need.

        The direction, the slopes, and for conjugate directions the slopes of the previous round.
        """
        return self.have_directions * (3 if self.direction == "conjugate" else 2)

    @classmethod
    def read(
        cls,
        crf: TreeParameters,
        n_labels: int,
        column_rules: _core.ColumnRules | None = None,
        fills: NDArray[np.uint8] | None = None,
    ) -> Settings:
        """Fill in the defaults of the parameters, which have been checked.

        ``fills`` are the bins, one for each column, that replace missing values, if any.
        """
        rate, trim, seed = crf.learning_rate, crf.trim, crf.random_state
        is_conjugate = crf.direction == "conjugate"
        line_search = is_conjugate if crf.line_search is None else bool(crf.line_search)
        if rate is None and line_search:
            # Directions are conjugate only if each step goes to the minimum along its direction.
            rate = 1.0 if is_conjugate else SEARCHED_RATE
        elif rate is None:
            rate = 0.3 if crf.newton else 1.0
        if trim is None:
            trim = min(0.02, 0.5 / n_labels)
        if not isinstance(seed, (int, np.integer)):
            seed = read_random_state(seed).randint(np.iinfo(np.int32).max)
        max_depth, max_leaves = crf.max_depth, crf.max_leaves
        if max_depth is None and max_leaves is None:
            max_depth, max_leaves = USUAL_DEPTH, USUAL_LEAVES
        max_depth = MAX_LEAVES if max_depth is None else min(int(max_depth), MAX_LEAVES)
        if max_leaves is None:
            max_leaves = 1 << min(max_depth, LOG_MAX_LEAVES)
        of_all: dict[str, Any] = {
            "max_depth": max_depth,
            "min_child_weight": float(crf.min_child_weight),
            "learning_rate": float(rate),
            "reg_lambda": float(crf.reg_lambda),
            "max_step": np.inf if crf.max_step is None else float(crf.max_step),
        }
        is_by_gradient = crf.sampling_method == "gradient_based"
        least_share = min(crf.subsample, crf.colsample_bytree, crf.colsample_bynode)
        return cls(
            **of_all,
            newton=bool(crf.newton),
            curvature=crf.curvature,
            direction=crf.direction,
            line_search=line_search,
            exact_rounds=EXACT_ROUNDS[crf.transition_step],
            growth_rules=GrowthRules(
                **of_all,
                max_leaves=int(max_leaves),
                min_split_gain=float(crf.min_split_gain),
                colsample_bytree=float(crf.colsample_bytree),
                colsample_bynode=float(crf.colsample_bynode),
                label_lambda=LABEL_LAMBDA if crf.newton else 0.0,
                missing=crf.missing,
                fills=fills,
            ),
            sampling=Sampling(
                float(trim),
                1.0 if is_by_gradient else float(crf.subsample),
                float(crf.negative_ratio) if crf.stratified else 0.0,
                int(seed),
                float(crf.subsample) if is_by_gradient else 1.0,
                crf.negative_weight,
            ),
            draws=bool(crf.stratified or least_share < 1),
            n_threads=count_threads(crf.n_jobs),
            column_rules=column_rules,
        )


def check_tree_parameters(crf: TreeParameters) -> None:
    """Raise ValueError or TypeError for an invalid parameter of trees or rounds."""
    check_number("n_rounds", crf.n_rounds, minimum=1, integer=True)
    check_number("max_depth", crf.max_depth, minimum=1, integer=True, optional=True)
    check_number(
        "max_leaves", crf.max_leaves, minimum=1, maximum=MAX_LEAVES, integer=True, optional=True
    )
    for name in ("min_child_weight", "min_split_gain", "reg_lambda"):
        check_number(name, getattr(crf, name), minimum=0)
    check_number("trim", crf.trim, minimum=0, optional=True)
    for name in ("colsample_bytree", "colsample_bynode", "subsample"):
        check_number(name, getattr(crf, name), above=0, maximum=1)
    check_number("learning_rate", crf.learning_rate, above=0, maximum=LARGEST_RATE, optional=True)
    check_number("max_step", crf.max_step, above=0, optional=True)
    check_choice("sampling_method", crf.sampling_method, ("uniform", "gradient_based"))
    check_number("negative_ratio", crf.negative_ratio, above=0)
    check_choice("negative_weight", crf.negative_weight, ("unbiased", "none", "balanced"))
    check_column_parameters(crf.monotone_constraints, crf.interaction_constraints)
    check_max_bins(crf.max_bins)
    read_window(crf.window)
    check_number("ancestors", crf.ancestors, minimum=0, maximum=MAX_REACH, integer=True)
    for name in ("newton", "stratified"):
        check_choice(name, getattr(crf, name), (True, False))
    check_choice("curvature", crf.curvature, ("mixing", "exact", "length"))
    check_choice("direction", crf.direction, ("steepest", "conjugate"))
    check_choice("line_search", crf.line_search, (None, True, False))
    check_choice("transitions", crf.transitions, ("weights", "trees"))
    if crf.transitions == "trees" and crf.order == 0:
        raise ValueError(
            "order is 0 and transitions is 'trees', whose trees split on previous labels; set "
            "order to 1 or more, or transitions='weights'"
        )
    check_choice("missing", crf.missing, METHODS)
    check_number("max_literals", crf.max_literals, minimum=1, maximum=MAX_LITERALS, integer=True)
    check_choice("transition_step", crf.transition_step, tuple(EXACT_ROUNDS))
    check_number("warm_rounds", crf.warm_rounds, minimum=0, integer=True, optional=True)
    read_random_state(crf.random_state)


def read_window(window: Any) -> tuple[int, int]:
    """Number of positions that a window covers before and after its own."""
    is_pair = isinstance(window, (tuple, list)) or np.ndim(window) == 1
    sides = tuple(window) if is_pair else (window, window)
    are_numbers = all(
        isinstance(side, (int, np.integer)) and not isinstance(side, bool) for side in sides
    )
    if len(sides) != 2 or not are_numbers or min(sides) < 0 or max(sides) > MAX_REACH:
        raise ValueError(
            f"window is {window!r}; expected an integer from 0 to {MAX_REACH}, the number of "
            "positions on either side, or a pair of them, (before, after)"
        )
    return int(sides[0]), int(sides[1])
