"""Parameters of estimators: checks, and their plain values.

An estimator stores its parameters unchanged, as scikit-learn requires. Training, checkpoints and
model files use their plain values: None, bool, int, float, str, and lists and dicts of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.utils import check_random_state

# Parameters that may be objects, which cannot be saved.
OBJECTS = frozenset({"objective", "eval_metric", "callbacks", "random_state", "base", "queries"})
# Lists whose entries have no order, and may be sets.
OF_SETS = frozenset({"interaction_constraints"})

PLAIN_TYPES = frozenset({type(None), bool, int, float, str})
SCALARS = (str, Real, np.bool_)
UNORDERED = (AbstractSet, Mapping)
BYTES = (bytes, bytearray, memoryview)
EXPECTED = (
    "expected numbers, strings, bools or None, or a list, tuple, set, array, Series or dict of "
    "these"
)


def check_number(
    name: str,
    value: Any,
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    below: float | None = None,
    integer: bool = False,
    optional: bool = False,
) -> None:
    """Raise ValueError unless `value` is a finite number (or integer) within bounds.

    `minimum` and `maximum` are inclusive, `above` and `below` are exclusive. None is valid only if
    it is `optional`.
    """
    if optional and value is None:
        return
    if isinstance(value, Integral if integer else Real) and not isinstance(value, bool):
        # NumPy types may be too small for the bounds.
        number = int(value) if isinstance(value, Integral) else float(value)
        if (
            (isinstance(number, int) or math.isfinite(number))
            and (minimum is None or number >= minimum)
            and (above is None or number > above)
            and (maximum is None or number <= maximum)
            and (below is None or number < below)
        ):
            return
    is_bounded = maximum is not None or below is not None
    expected = "an integer" if integer else "a number" if is_bounded else "a finite number"
    if minimum is not None:
        expected += f" of at least {minimum}" if maximum is None else f" from {minimum}"
    if above is not None:
        expected += f" greater than {above}"
    if maximum is not None:
        expected += f" {'to' if above is None else 'and at most'} {maximum:g}"
    if below is not None:
        expected += f" and less than {below}"
    if optional:
        expected += ", or None"
    raise ValueError(f"{name} is {value!r}; expected {expected}")


def check_choice(name: str, value: Any, choices: tuple[Any, ...], advice: str = "") -> None:
    """Raise ValueError unless `value` is one of `choices`; `advice` ends the message."""
    try:
        found = bool(value in choices)
    except (TypeError, ValueError):  # of values that cannot be compared: arrays, pandas' NA
        found = False
    if not found:
        *others, last = map(repr, choices)
        raise ValueError(f"{name} is {value!r}; expected {', '.join(others)} or {last}{advice}")


def check_prefix(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is True, False or a non-empty string."""
    if not isinstance(value, (str, bool, np.bool_)) or value == "":
        raise ValueError(
            f"{name} is {value!r}; expected True, False, or a prefix of attribute names"
        )


def read_random_state(value: Any) -> np.random.RandomState:
    """A random state as in scikit-learn's estimators; ValueError if it is invalid."""
    try:
        random: np.random.RandomState = check_random_state(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state is {value!r}; expected an integer from 0 to 2**32 - 1, a "
            "numpy.random.RandomState, or None"
        ) from None
    return random


def plain_value(name: str, value: Any) -> Any:
    """The plain value of a parameter; equivalent parameters have equal values.

    Collections become lists: the elements of sets, which have no reproducible order, are sorted.
    Mappings become dicts, sorted by key.

    Raises TypeError, with the name of the parameter, if there is no plain value, or if it can be
    read only once, since a second `fit` would find nothing in it.

    Examples
    --------
    >>> import numpy as np
    >>> plain_value("start_labels", {"b", np.str_("a")})
    ['a', 'b']
    >>> plain_value("forbidden", {("O", "I"): 1}.keys())
    [['O', 'I']]
    """
    if type(value) in PLAIN_TYPES:
        return value
    if type(value) in (list, tuple):  # there may be very many
        return _plain_list(name, value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return plain_value(name, value.tolist())
    if isinstance(value, SCALARS):
        return _plain_scalar(value)
    if isinstance(value, Mapping):
        return _plain_dict(name, value)
    if isinstance(value, AbstractSet):
        # So the first invalid element is always the same one.
        elements = sorted(value, key=repr)
        return sorted(_plain_list(name, elements, "an element of "), key=_order)
    return _plain_list(name, _elements(name, value))


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Plain values of the parameters of an estimator, by name; None for objects."""
    return {
        name: None if is_object(name, value) else plain_value(name, value)
        for name, value in estimator.get_params(deep=False).items()
    }


def is_object(name: str, value: Any) -> bool:
    """Whether a parameter is an object, such as a callback, where that is allowed."""
    if name == "eval_metric" and isinstance(value, list | tuple | dict):
        metrics = value.values() if isinstance(value, dict) else value
        return not all(isinstance(metric, str) for metric in metrics)
    return name in OBJECTS and not isinstance(value, str | Integral | None)


def changed_parameters(estimator: Any) -> dict[str, Any]:
    """Parameters of an estimator that differ from its defaults, by name, as plain values."""
    defaults = type(estimator)().get_params(deep=False)
    values = {
        name: value if is_object(name, value) else plain_value(name, value)
        for name, value in estimator.get_params(deep=False).items()
    }
    return {name: value for name, value in values.items() if repr(value) != repr(defaults[name])}


def _plain_scalar(value: Any) -> bool | int | float | str:
    """The same value as a Python type, instead of a subclass or a NumPy type."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    return int(value) if isinstance(value, Integral) else float(value)


def _plain_list(name: str, elements: Sequence[Any], prefix: str = "") -> list[Any]:
    plain = []
    for number, element in enumerate(elements):
        if type(element) in PLAIN_TYPES:
            plain.append(element)
            continue
        where = f"{prefix}{name}" if prefix else f"{name}[{number}]"
        may_be_set = name in OF_SETS and isinstance(element, AbstractSet)
        if type(element) is not tuple and isinstance(element, UNORDERED) and not may_be_set:
            raise TypeError(
                f"{where} is of type {type(element).__name__}, whose elements have no order; "
                "expected a tuple or a list"
            )
        plain.append(plain_value(where, element))
    return plain


def _plain_dict(name: str, value: Mapping[Any, Any]) -> dict[Any, Any]:
    pairs = []
    for key, item in sorted(value.items(), key=lambda pair: repr(pair[0])):
        if key is not None and not isinstance(key, SCALARS):
            raise TypeError(
                f"{name} has the key {key!r} of type {type(key).__name__}; expected a string, a "
                "number or a bool"
            )
        pairs.append((plain_value(name, key), plain_value(f"{name}[{key!r}]", item)))
    return dict(sorted(pairs, key=lambda pair: _order(pair[0])))


def _elements(name: str, value: Any) -> list[Any]:
    """All elements of a collection, which must be readable more than once."""
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    native = nw.from_native(value, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        return native.to_list()
    is_frame = isinstance(native, nw.DataFrame | nw.LazyFrame)
    if is_frame or isinstance(value, BYTES) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is of type {type(value).__name__}; {EXPECTED}")
    if iter(value) is value:
        raise TypeError(
            f"{name} is of type {type(value).__name__}, which can be read only once, and fit may "
            "be called again; expected a list: wrap it in list(...)"
        )
    return list(value)


def _order(value: Any) -> tuple[str, Any]:
    """A sort key for plain values of any type."""
    if isinstance(value, list):
        return "list", [_order(element) for element in value]
    return type(value).__name__, value
