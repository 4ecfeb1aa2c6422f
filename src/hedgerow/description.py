"""Descriptions: parameters as JSON values, which are equal for equivalent parameters.

A checkpoint stores them to identify its training run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from sys import modules
from types import FunctionType
from typing import Any

import numpy as np

from hedgerow.fingerprint import fingerprint
from hedgerow.parameters import is_object, plain_value

__all__ = ["describe", "show"]

ADVICE = (
    "make it a dataclass whose fields are numbers, strings, bools, None, NumPy arrays, or lists "
    "or dicts of these, or train without a checkpoint"
)


def describe(name: str, value: Any) -> Any:
    """Describe the parameter `name`.

    An object is described by the name of its class and by its state, which is the first of these
    that exists: what its method ``get_params()`` returns, as for scikit-learn's objects; the fields
    of a dataclass, except those with ``compare=False``; its attributes. A function is described by
    its name, a `functools.partial` by its function and arguments. Raises TypeError if the state is
    hidden, or contains anything but plain values, NumPy arrays, dataclasses and functions.
    """
    if not is_object(name, value):
        return _describe_value(name, plain_value(name, value))
    if name == "random_state":  # a checkpoint stores the seed that was drawn from it
        return f"a {_class_name(value)}"
    if type(value) in (list, tuple):  # of metrics, some of which are names
        return [describe(name, item) for item in value]
    if type(value) is dict:
        return {"pairs": [[key, describe(name, value[key])] for key in value]}
    try:
        if isinstance(value, FunctionType):
            return _describe_function(name, value)
        if isinstance(value, partial):
            return _describe_object(name, value, _read_partial(value))
        return _describe_object(name, value, _read_state(name, value))
    except TypeError as error:
        if isinstance(value, FunctionType):
            raise TypeError(f"{error}, or train without a checkpoint") from None
        raise TypeError(
            f"{name} is a {_class_name(value)}, which a checkpoint cannot compare: {error}; "
            f"{ADVICE}"
        ) from None


def show(described: Any) -> str:
    """A description as Python source, for a message."""
    if isinstance(described, list):
        return f"[{', '.join(map(show, described))}]"
    if not isinstance(described, dict):
        return repr(described)
    if "function" in described:
        return str(described["function"])
    if "class" in described:
        state = ", ".join(f"{name}={show(value)}" for name, value in described["state"].items())
        return f"{described['class']}({state})"
    if "array" in described:
        return f"array({described['array']}, shape={described['shape']})"
    if "float" in described:
        return str(described["float"])
    return f"{{{', '.join(f'{show(key)}: {show(value)}' for key, value in described['pairs'])}}}"


def _read_state(where: str, value: Any) -> dict[str, Any]:
    """The state of an object, by name."""
    if callable(getattr(value, "get_params", None)):
        return dict(value.get_params())
    if _is_dataclass(value):
        return _read_fields(value)
    for base in type(value).__mro__[:-1]:
        is_builtin = "__module__" not in vars(base)  # such as dict
        if is_builtin or vars(base).get("__slots__"):
            raise TypeError(
                f"{where} is a {base.__name__}, whose attributes do not hold its whole state"
            )
    return dict(vars(value))


def _read_partial(value: partial[Any]) -> dict[str, Any]:
    return {"func": value.func, "args": value.args, "keywords": value.keywords}


def _is_dataclass(value: Any) -> bool:
    """Whether its own class is a dataclass; a subclass of one may have more state."""
    return "__dataclass_fields__" in vars(type(value))


def _read_fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value) if field.compare}


def _describe_object(where: str, value: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    described = {name: _describe_value(f"{where}.{name}", state[name]) for name in sorted(state)}
    return {"class": _class_name(value), "state": described}


def _describe_function(where: str, function: FunctionType) -> dict[str, str]:
    """A function is described by its name, which must identify it."""
    has_name = function.__name__.isidentifier() and not function.__closure__
    if not has_name and getattr(modules.get(function.__module__), function.__name__, 0) != function:
        raise TypeError(
            f"{where} is a function that has no name, or uses variables of an enclosing function, "
            "so a checkpoint cannot compare it; define it with def at the top level of a module"
        )
    return {"function": f"{function.__module__}.{function.__qualname__}"}


def _describe_value(where: str, value: Any) -> Any:
    if isinstance(value, FunctionType):
        return _describe_function(where, value)
    if _is_dataclass(value):
        return _describe_object(where, value, _read_fields(value))
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind != "O":
        return {"array": fingerprint(value), "shape": list(value.shape)}
    if isinstance(value, Mapping):
        keys = plain_value(where, dict.fromkeys(value))  # in a reproducible order
        return {"pairs": [[key, _describe_value(f"{where}[{key!r}]", value[key])] for key in keys]}
    plain = value if isinstance(value, list | tuple) else plain_value(where, value)
    if isinstance(plain, list | tuple):
        return [_describe_value(f"{where}[{place}]", item) for place, item in enumerate(plain)]
    is_json = not isinstance(plain, float) or math.isfinite(plain)
    return plain if is_json else {"float": repr(plain)}


def _class_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
