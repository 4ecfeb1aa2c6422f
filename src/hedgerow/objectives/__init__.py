"""Objectives: from potentials, by way of marginals, to a loss and its slopes.

Slopes are the gradient of the loss with respect to the potentials themselves. What the potentials
are made of, weights or trees, takes it from there.
"""

from hedgerow.objectives.choice import Choice, default_decode, read_objective, stages
from hedgerow.objectives.labelwise import (
    Accuracy,
    ExpectedAccuracy,
    Objective,
    Pointwise,
    expect_labelwise,
    find_direction,
    measure_loss,
)
from hedgerow.objectives.likelihood import Expectations, expect, likelihood, log_likelihoods
from hedgerow.objectives.max_margin import max_margin
from hedgerow.objectives.slopes import Slopes
from hedgerow.objectives.targets import Partial, Targets

__all__ = [
    "Accuracy",
    "Choice",
    "Expectations",
    "ExpectedAccuracy",
    "Objective",
    "Partial",
    "Pointwise",
    "Slopes",
    "Targets",
    "default_decode",
    "expect",
    "expect_labelwise",
    "find_direction",
    "likelihood",
    "log_likelihoods",
    "max_margin",
    "measure_loss",
    "read_objective",
    "stages",
]
