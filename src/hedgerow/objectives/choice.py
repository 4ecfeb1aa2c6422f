"""Choice: which objective an estimator's parameters ask for."""

from __future__ import annotations

from typing import Any, Protocol

from hedgerow.objectives.label_costs import LabelCosts, LabelCostsParameter
from hedgerow.objectives.labelwise import Accuracy, ExpectedAccuracy, Objective, Pointwise
from hedgerow.objectives.likelihood import Likelihood
from hedgerow.objectives.max_margin import MaxMargin
from hedgerow.objectives.of_marginals import OfMarginals
from hedgerow.objectives.softmax_margin import SoftmaxMargin
from hedgerow.objectives.training_objective import TrainingObjective
from hedgerow.parameters import check_number

__all__ = ["ObjectiveParameters", "read_objective"]


class ObjectiveParameters(Protocol):
    """An estimator, as far as its parameters are about objectives."""

    objective: str | Objective
    sharpness: float
    label_costs: LabelCostsParameter


def read_objective(crf: ObjectiveParameters, *, margin: bool) -> TrainingObjective:
    """Check the parameters of objectives; ``margin``: max_margin is offered."""
    objective: Any = crf.objective
    check_number("sharpness", crf.sharpness, above=0)
    costs = LabelCosts.read(crf.label_costs)
    names = ["likelihood", "pointwise", "accuracy", "expected_accuracy", "softmax_margin"]
    names += ["max_margin"] if margin else []
    if isinstance(objective, str):
        if objective == "max_margin" and not margin:
            raise ValueError("objective is 'max_margin', which only LinearCRF can be trained for")
        if objective not in names:
            expected = ", ".join(map(repr, names))
            raise ValueError(
                f"objective is {objective!r}; expected {expected}, or an object with the methods "
                "value and gradient"
            )
        return _named(objective, float(crf.sharpness), costs)
    if isinstance(objective, type) or not isinstance(objective, Objective):
        hint = f"; pass {objective.__name__}()" if isinstance(objective, type) else ""
        if objective is None:
            hint = (
                ". A model that was loaded has None if it was trained for an object, which no file "
                "keeps: set it again, set_params(objective=...)"
            )
        raise TypeError(
            f"objective is {objective!r}; expected a name, such as 'accuracy', or an object with "
            f"the methods value and gradient, see hedgerow.objectives.Objective{hint}"
        )
    return OfMarginals(objective)


def _named(name: str, sharpness: float, costs: LabelCosts) -> TrainingObjective:
    if name == "likelihood":
        return Likelihood()
    if name == "softmax_margin":
        return SoftmaxMargin(costs)
    if name == "max_margin":
        return MaxMargin(costs)
    if name == "pointwise":
        return OfMarginals(Pointwise())
    return OfMarginals(Accuracy(sharpness) if name == "accuracy" else ExpectedAccuracy())
