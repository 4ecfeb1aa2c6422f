"""Checks of the parameters that estimators are made with."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def check_number(name: str, value: Any, *, minimum: float, integer: bool = False) -> None:
    """Raise ValueError unless `value` is a finite number (an integer) of at least `minimum`."""
    kind = Integral if integer else Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and value >= minimum:
        return
    expected = "an integer" if integer else "a finite number"
    raise ValueError(f"{name} is {value!r}; expected {expected} of at least {minimum}")


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise ValueError unless `value` is one of `choices`."""
    if value not in choices:
        expected = " or ".join(map(repr, choices))
        raise ValueError(f"{name} is {value!r}; expected {expected}")


def check_prefix(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is True, False or a string with something in it."""
    if not (isinstance(value, str) and value) and value not in (True, False):
        raise ValueError(
            f"{name} is {value!r}; expected True, False, or a prefix of attribute names"
        )


def check_share(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is a number above 0 and at most 1."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and 0 < value <= 1):
        raise ValueError(f"{name} is {value!r}; expected a number above 0 and at most 1")


def changed_parameters(estimator: Any) -> dict[str, Any]:
    """Parameters of an estimator that differ from its defaults, by name."""
    defaults = type(estimator)().get_params(deep=False)
    return {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if repr(value) != repr(defaults[name])
    }
