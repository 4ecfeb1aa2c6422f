"""Parameters of an estimator that are about labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hedgerow.decoding import DECODERS, DecodeParameter
from hedgerow.encode import GivenParents, check_group_column
from hedgerow.encode.parents import ParentsFormat
from hedgerow.labels import Grammar
from hedgerow.parameters import check_choice, check_number
from hedgerow.potentials import Potential
from hedgerow.relational import RelationalFeatures
from hedgerow.training.pattern_penalty import PatternLambda, check_pattern_lambda
from hedgerow.trellis import Trellis

__all__ = ["LabelParameters", "check_label_parameters"]


class LabelParameters(Protocol):
    """The parameters of an estimator that are about labels; see `shared_parameters`."""

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
    parents_column: str | int | None
    parents_format: ParentsFormat
    queries: RelationalFeatures | None
    class_weight: Mapping[Any, float] | str | None
    decode: DecodeParameter
    verbose: int

    def build_trellis(self, grammar: Grammar) -> Trellis:
        """The trellis of a grammar."""

    def given_potentials(self) -> tuple[Potential, ...]:
        """Potentials that are not learned."""


def check_label_parameters(crf: LabelParameters) -> None:
    """Raise ValueError for a parameter that is invalid for any data."""
    check_choice("decode", crf.decode, ("auto", *DECODERS))
    if not isinstance(crf.verbose, bool):
        check_number("verbose", crf.verbose, minimum=0, integer=True)
    check_number("order", crf.order, minimum=0, integer=True)
    check_number("min_pattern_count", crf.min_pattern_count, minimum=0, integer=True)
    for name, default in (("order", 1), ("min_pattern_count", 0)):
        value = getattr(crf, name)
        if crf.label_patterns is not None and value != default:
            raise ValueError(
                f"{name} is {value} and label_patterns are given, which replace the patterns "
                "that order and min_pattern_count find: leave one of them out"
            )
    check_pattern_lambda(crf.pattern_lambda)
    check_group_column(crf.group_column)
    if not isinstance(crf.queries, RelationalFeatures | None):
        raise TypeError(
            f"queries is of type {type(crf.queries).__name__}; expected a "
            "hedgerow.relational.RelationalFeatures, which defines queries about facts"
        )
    GivenParents(None, crf.parents_column, crf.parents_format).check()
    if isinstance(crf.class_weight, str):
        check_choice("class_weight", crf.class_weight, ("balanced", None))
    elif not isinstance(crf.class_weight, Mapping | None):
        raise ValueError(
            f"class_weight is of type {type(crf.class_weight).__name__}; expected a dict of "
            "weights by label, 'balanced' or None"
        )
