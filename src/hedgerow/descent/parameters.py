"""Parameters of `LinearCRF` that are about weights and their training."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from hedgerow.linear.ancestor_attributes import MAX_ANCESTORS
from hedgerow.objectives import Objective, TrainingObjective
from hedgerow.parameters import (
    check_choice,
    check_number,
    check_prefix,
    plain_value,
    read_random_state,
)
from hedgerow.training.label_parameters import LabelParameters

__all__ = ["LinearParameters", "check_linear_parameters"]


class LinearParameters(LabelParameters, Protocol):
    """The parameters of an estimator that are about weights; documented in `LinearCRF`."""

    reg_lambda: float
    reg_alpha: float
    objective: str | Objective
    warm_iter: int | None
    max_iter: int
    tol: float | None
    min_count: int
    ancestors: int
    all_pairs: bool
    transition_attributes: bool | str
    pattern_attributes: bool | str
    n_jobs: int | None
    random_state: Any


def check_linear_parameters(crf: LinearParameters, objective: TrainingObjective) -> None:
    """Raise ValueError or TypeError for an invalid parameter of weights or iterations."""
    check_number("reg_lambda", crf.reg_lambda, minimum=0)
    check_number("reg_alpha", crf.reg_alpha, minimum=0)
    check_number("ancestors", crf.ancestors, minimum=0, maximum=MAX_ANCESTORS, integer=True)
    check_number("max_iter", crf.max_iter, minimum=1, integer=True)
    check_number("warm_iter", crf.warm_iter, minimum=0, integer=True, optional=True)
    check_number("tol", crf.tol, minimum=0, optional=True)
    check_number("min_count", crf.min_count, minimum=0, integer=True)
    check_choice("all_pairs", crf.all_pairs, (True, False))
    check_prefix("transition_attributes", crf.transition_attributes)
    check_prefix("pattern_attributes", crf.pattern_attributes)
    if crf.pattern_attributes:
        _check_pattern_attributes(crf)
    read_random_state(crf.random_state)
    if not objective.is_smooth:
        _check_margin_parameters(crf)


def _check_pattern_attributes(crf: LinearParameters) -> None:
    if crf.transition_attributes:
        raise ValueError(
            f"pattern_attributes is {crf.pattern_attributes!r} and transition_attributes is "
            f"{crf.transition_attributes!r}; label pairs are among the label patterns: leave out "
            "transition_attributes"
        )
    if crf.order == 0 and crf.label_patterns is None:
        raise ValueError(
            f"pattern_attributes is {crf.pattern_attributes!r} and order is 0, so there are no "
            "label patterns that attributes could score; pass an order of at least 1, or "
            "transition_attributes for weights on label pairs alone"
        )


def _check_margin_parameters(crf: LinearParameters) -> None:
    if crf.reg_alpha > 0:
        raise ValueError(
            f"reg_alpha is {crf.reg_alpha} and objective is 'max_margin', whose training "
            "has no L1 penalty; leave one of them out"
        )
    if crf.reg_lambda == 0:
        raise ValueError(
            f"reg_lambda is {crf.reg_lambda} and objective is 'max_margin', which needs a "
            "penalty; pass a reg_lambda above 0"
        )
    given = plain_value("pattern_lambda", crf.pattern_lambda)
    if isinstance(given, int | float | list) and np.min(given) == 0:
        raise ValueError(
            f"pattern_lambda is {given!r} and objective is 'max_margin', which needs a "
            "penalty; pass numbers above 0"
        )
