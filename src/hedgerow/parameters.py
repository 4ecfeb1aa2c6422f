"""Checks of the parameters that estimators are made with."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


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
    try:
        found = bool(value in choices)
    except (TypeError, ValueError):  # of values that cannot be compared: arrays, pandas' NA
        found = False
    if not found:
        expected = " or ".join(map(repr, choices))
        raise ValueError(f"{name} is {value!r}; expected {expected}")


def check_prefix(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is True, False or a string with something in it."""
    if not isinstance(value, (str, bool, np.bool_)) or value == "":
        raise ValueError(
            f"{name} is {value!r}; expected True, False, or a prefix of attribute names"
        )


def read_random_state(value: Any) -> np.random.RandomState:
    """Random numbers as scikit-learn's estimators take them; ValueError for what is none."""
    try:
        random: np.random.RandomState = check_random_state(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state is {value!r}; expected an integer from 0 to 2**32 - 1, a "
            "numpy.random.RandomState, or None"
        ) from None
    return random


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
