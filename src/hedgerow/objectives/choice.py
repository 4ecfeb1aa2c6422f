"""Choice: which objective an estimator's parameters ask for."""

from __future__ import annotations

from typing import Any, Literal

from hedgerow.decoding import Decode
from hedgerow.objectives.labelwise import Accuracy, ExpectedAccuracy, Objective, Pointwise
from hedgerow.parameters import check_number

__all__ = ["Choice", "default_decode", "read_objective", "stages"]

# The likelihood and the margin depend on whole labellings, all other objectives on the marginals.
Choice = Objective | Literal["likelihood", "max_margin"]

# Training for accuracy begins with this share of the sharpness asked for, which then doubles.
FIRST_SHARE = 1 / 8


def read_objective(objective: Any, sharpness: Any, *, margin: bool) -> Choice:
    """Check the parameters ``objective`` and ``sharpness``; ``margin``: max_margin is offered."""
    check_number("sharpness", sharpness, minimum=0)
    if sharpness == 0:
        raise ValueError("sharpness is 0; expected more than 0")
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
    return objective


def default_decode(objective: Choice) -> Decode:
    """How a model decodes unless it is told: by what it was trained for."""
    return "viterbi" if isinstance(objective, str) else "marginal"


def stages(objective: Objective) -> list[Objective]:
    """What to train for in turn: smoother objectives first, then the one that was asked for.

    "Gradually increasing" the sharpness while starting from the last solution is the advice of
    Gross et al. (2006), footnote 3.
    """
    if not isinstance(objective, Accuracy):
        return [objective]
    found, share = [], FIRST_SHARE
    while share <= 1:
        found.append(Accuracy(share * objective.sharpness))
        share *= 2
    return list(found)


def _named(name: str, sharpness: float) -> Choice:
    if name == "likelihood":
        return "likelihood"
    if name == "max_margin":
        return "max_margin"
    if name == "pointwise":
        return Pointwise()
    return Accuracy(sharpness) if name == "accuracy" else ExpectedAccuracy()
