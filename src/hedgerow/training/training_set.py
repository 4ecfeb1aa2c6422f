"""Training sets: what every CRF has to know of its data, but for X, before it can be trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.encode.group_column import check_group_column
from hedgerow.encode.suspects import warn_of_suspects
from hedgerow.labels import Constraints, Grammar, LabelColumn, Labels, read_constraints, read_labels
from hedgerow.objectives import Targets, TrainingObjective
from hedgerow.parameters import check_choice, check_number, plain_value
from hedgerow.seen_groups import SeenGroups
from hedgerow.sequences import Schema, Sequences
from hedgerow.training.pattern_penalty import (
    PatternLambda,
    check_pattern_lambda,
    pattern_penalties,
)
from hedgerow.trellis import Trellis
from hedgerow.weighting import class_weights, read_sample_weight


class LabelParameters(Protocol):
    """An estimator, as far as its parameters are about labels; `LinearCRF` explains them."""

    order: int
    min_pattern_count: int
    pattern_lambda: PatternLambda
    label_patterns: Any
    constraints: str | None
    allowed: Any
    forbidden: Any
    start_labels: Any
    end_labels: Any
    missing_label: Any
    group_column: str | int | None
    class_weight: Mapping[Any, float] | str | None
    verbose: int

    def build_trellis(self, grammar: Grammar) -> Trellis:
        """The trellis of a grammar."""


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What is known of the training data but for their attributes, which are let go early.

    Attributes
    ----------
    schema : Schema
        What the columns of X are.
    index : StringIndex
        Names of the attributes.
    labels : Labels
        The classes.
    grammar : Grammar
        How the labels depend on each other.
    trellis : Trellis
        The trellis of the grammar.
    targets : Targets
        Labels of the positions, and how much each of them counts.
    pattern_penalties : (P,) or None
        Strength of the L2 penalty of each label pattern, if they have one of their own.
    seen_groups : SeenGroups
        How X was cut into sequences, and which they are.
    """

    schema: Schema
    index: _core.StringIndex
    labels: Labels
    grammar: Grammar
    trellis: Trellis
    targets: Targets
    pattern_penalties: NDArray[np.float64] | None
    seen_groups: SeenGroups


def check_label_parameters(crf: LabelParameters) -> None:
    """Raise ValueError for a parameter that is wrong whatever the data are."""
    if not isinstance(crf.verbose, bool):
        check_number("verbose", crf.verbose, minimum=0, integer=True)
    check_number("order", crf.order, minimum=0, integer=True)
    check_number("min_pattern_count", crf.min_pattern_count, minimum=0, integer=True)
    for name, default in (("order", 1), ("min_pattern_count", 0)):
        value = getattr(crf, name)
        if crf.label_patterns is not None and value != default:
            raise ValueError(
                f"{name} is {value} and label_patterns are given; these take the place of the "
                "patterns that order and min_pattern_count find: leave one of them out"
            )
    check_pattern_lambda(crf.pattern_lambda)
    check_group_column(crf.group_column)
    if isinstance(crf.class_weight, str):
        check_choice("class_weight", crf.class_weight, ("balanced", None))
    elif not isinstance(crf.class_weight, Mapping | None):
        raise ValueError(
            f"class_weight is of type {type(crf.class_weight).__name__}; expected a dict of "
            "weights by label, 'balanced' or None"
        )


def read_training_set(
    crf: LabelParameters,
    sequences: Sequences,
    index: _core.StringIndex,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    objective: TrainingObjective,
    has_edges: bool = False,
    labels: Labels | None = None,
) -> TrainingSet:
    """Read labels and weights, and learn what the labels are and which patterns they form.

    Parameters
    ----------
    crf
        The estimator, whose parameters say how to read them.
    sequences, index
        X, and the names of its attributes.
    y, sample_weight
        As the user gave them.
    objective
        What the model is trained for.
    has_edges
        Whether label pairs have scores that differ from position to position.
    labels
        The classes, if they are known already and y must have no others.
    """
    warn_of_suspects(sequences, type(crf).__name__)
    column = read_labels(y, sequences, missing_label=crf.missing_label)
    if objective.needs_all_labels:
        column.require_all(sequences, objective.needs_all_labels)
    if labels is None:
        labels, codes = Labels.learn(column)
    else:
        column.require_any()
        codes = labels.encode(column, sequences)
    grammar = Grammar.learn(
        labels,
        codes,
        sequences.offsets,
        order=int(crf.order),
        min_pattern_count=int(crf.min_pattern_count),
        label_patterns=plain_value("label_patterns", crf.label_patterns),
        constraints=_read_constraints(crf, labels, codes, sequences),
        has_edges=has_edges,
    )
    weight = read_sample_weight(sample_weight, sequences)
    if weight.by_position is not None:
        column.require_all(sequences, "sample_weight weighs every row on its own")
    position_weights = _read_class_weight(crf, labels, column, codes, sequences)
    if position_weights is None:
        position_weights = weight.by_position
    elif (of_positions := weight.of_positions(sequences)) is not None:
        position_weights *= of_positions
    trellis = crf.build_trellis(grammar)
    targets = Targets(sequences.offsets, codes, trellis, weight.by_sequence, position_weights)
    penalties = pattern_penalties(crf.pattern_lambda, grammar.patterns, targets)
    seen = SeenGroups.of(sequences)
    return TrainingSet(sequences.schema, index, labels, grammar, trellis, targets, penalties, seen)


def _read_constraints(
    crf: LabelParameters, labels: Labels, codes: NDArray[np.int32], sequences: Sequences
) -> Constraints | None:
    constraints = read_constraints(
        labels,
        constraints=crf.constraints,
        allowed=plain_value("allowed", crf.allowed),
        forbidden=plain_value("forbidden", crf.forbidden),
        start_labels=plain_value("start_labels", crf.start_labels),
        end_labels=plain_value("end_labels", crf.end_labels),
    )
    if constraints is not None:
        constraints.check(codes, sequences, labels)
    return constraints


def _read_class_weight(
    crf: LabelParameters,
    labels: Labels,
    column: LabelColumn,
    codes: NDArray[np.int32],
    sequences: Sequences,
) -> NDArray[np.float64] | None:
    """Weight of each position by its label, (N,), or None if all count the same."""
    if crf.class_weight is None:
        return None
    column.require_all(sequences, "class_weight weighs the label of every position")
    return class_weights(plain_value("class_weight", crf.class_weight), labels, codes)[codes]
