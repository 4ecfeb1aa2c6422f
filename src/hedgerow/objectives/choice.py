"""Choice: the objective that the parameters of an estimator specify."""

from __future__ import annotations

from typing import Any, Protocol

from hedgerow.objectives.f_measure import F1, F1Average
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
    """The parameters of an estimator that are about objectives."""

    objective: str | Objective
    sharpness: float
    f1_labels: Any
    f1_average: F1Average
    label_costs: LabelCostsParameter


def read_objective(crf: ObjectiveParameters, *, margin: bool) -> TrainingObjective:
    """Check the parameters of objectives; ``margin``: whether max_margin is available."""
    objective: Any = crf.objective
    check_number("sharpness", crf.sharpness, above=0)
    named: dict[str, TrainingObjective] = {
        "likelihood": Likelihood(),
        "pointwise": OfMarginals(Pointwise()),
        "accuracy": OfMarginals(Accuracy(float(crf.sharpness))),
        "expected_accuracy": OfMarginals(ExpectedAccuracy()),
        "f1": OfMarginals(F1.read(crf.f1_labels, crf.f1_average)),
        "softmax_margin": SoftmaxMargin(LabelCosts.read(crf.label_costs)),
    }
    if margin:
        named["max_margin"] = MaxMargin(LabelCosts.read(crf.label_costs))
    if isinstance(objective, str):
        if objective == "max_margin" and not margin:
            raise ValueError("objective is 'max_margin', which only LinearCRF can be trained for")
        if objective not in named:
            expected = ", ".join(map(repr, named))
            raise ValueError(
                f"objective is {objective!r}; expected {expected}, or an object with the methods "
                "value and gradient"
            )
        return named[objective]
    if isinstance(objective, type) or not isinstance(objective, Objective):
        hint = f"; pass {objective.__name__}()" if isinstance(objective, type) else ""
        if objective is None:
            hint = (
                ". A loaded model has None if it was trained for a custom objective, which is not "
                "saved: set it again, set_params(objective=...)"
            )
        raise TypeError(
            f"objective is {objective!r}; expected a name, such as 'accuracy', or an object with "
            f"the methods value and gradient, see hedgerow.objectives.Objective{hint}"
        )
    return OfMarginals(objective)
