"""Objectives: from scores, via marginals, to a loss and its gradient.

Slopes are the gradient of the loss with respect to the scores. From these, models compute the
gradient with respect to their weights, or grow trees.
"""

from hedgerow.objectives.choice import ObjectiveParameters, read_objective
from hedgerow.objectives.f_measure import F1, F1Average
from hedgerow.objectives.label_costs import LabelCosts, LabelCostsParameter
from hedgerow.objectives.labelwise import Accuracy, ExpectedAccuracy, Objective, Pointwise
from hedgerow.objectives.likelihood import Likelihood, log_likelihoods
from hedgerow.objectives.max_margin import MaxMargin
from hedgerow.objectives.of_marginals import OfMarginals
from hedgerow.objectives.softmax_margin import SoftmaxMargin
from hedgerow.objectives.targets import Partial, Targets
from hedgerow.objectives.training_objective import (
    EdgeMemory,
    Measured,
    PairCounts,
    ScoredPart,
    Slopes,
    TrainingObjective,
)

__all__ = [
    "F1",
    "Accuracy",
    "EdgeMemory",
    "ExpectedAccuracy",
    "F1Average",
    "LabelCosts",
    "LabelCostsParameter",
    "Likelihood",
    "MaxMargin",
    "Measured",
    "Objective",
    "ObjectiveParameters",
    "OfMarginals",
    "PairCounts",
    "Partial",
    "Pointwise",
    "ScoredPart",
    "Slopes",
    "SoftmaxMargin",
    "Targets",
    "TrainingObjective",
    "log_likelihoods",
    "read_objective",
]
