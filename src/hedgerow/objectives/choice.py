"""Choice: which objective an estimator's parameters ask for."""

from __future__ import annotations

from typing import Any

from hedgerow.objectives.labelwise import Accuracy, ExpectedAccuracy, Objective, Pointwise
from hedgerow.objectives.likelihood import Likelihood
from hedgerow.objectives.max_margin import MaxMargin
from hedgerow.objectives.of_marginals import OfMarginals
from hedgerow.objectives.training_objective import TrainingObjective
from hedgerow.parameters import check_number

__all__ = ["read_objective"]


def read_objective(objective: Any, sharpness: Any, *, margin: bool) -> TrainingObjective:
    """Check the parameters ``objective`` and ``sharpness``; ``margin``: max_margin is offered."""
    check_number("sharpness", sharpness, above=0)
    names = ["likelihood", "pointwise", "accuracy", "expected_accuracy"]
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
        return _named(objective, float(sharpness))
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


def _named(name: str, sharpness: float) -> TrainingObjective:
    if name == "likelihood":
        return Likelihood()
    if name == "max_margin":
        return MaxMargin()
    if name == "pointwise":
        return OfMarginals(Pointwise())
    return OfMarginals(Accuracy(sharpness) if name == "accuracy" else ExpectedAccuracy())
