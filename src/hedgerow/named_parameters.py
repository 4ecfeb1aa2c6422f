"""Named parameters: suggestions for misspelled parameters and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from sklearn.base import BaseEstimator

from hedgerow.suggestions import suggest_argument, suggest_parameter

__all__ = ["NamedParameters", "explain_arguments"]

Self = TypeVar("Self", bound="NamedParameters")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@cache
def read_parameters(init: Callable[..., None]) -> list[Parameter]:
    """The parameters of an ``__init__``, without ``self``."""
    return list(signature(init).parameters.values())[1:]


class NamedParameters(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator with suggestions for unknown parameters."""

    def __new__(cls: type[Self], *values: Any, **parameters: Any) -> Self:
        """Raise TypeError for unknown parameters, with a suggestion.

        ``__init__``, which is called next, lists the parameters.
        """
        listed = read_parameters(cls.__init__)
        if values and listed and listed[0].kind is Parameter.KEYWORD_ONLY:
            name = cls.__name__
            raise TypeError(
                f"{name} got the positional argument {values[0]!r}, but takes keyword arguments "
                f"only; write {name}({listed[0].name}=...), for example"
            )
        if all(parameter.kind is not Parameter.VAR_KEYWORD for parameter in listed):
            cls._check_names(parameters, TypeError)
        crf: Self = super().__new__(cls)
        return crf

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """The names that scikit-learn reads, once for each class."""
        names: list[str] = super()._get_param_names()
        return names

    def set_params(self: Self, **params: Any) -> Self:
        """Set parameters of this estimator.

        Raises ValueError for unknown parameters.
        """
        self._check_names((name.partition("__")[0] for name in params), ValueError)
        super().set_params(**params)
        return self

    @classmethod
    def _check_names(cls, names: Iterable[str], error: type[Exception]) -> None:
        """Raise `error` if a name is not that of a parameter."""
        known = cls._get_param_names()
        for name in names:
            if name in known:
                continue
            what = f"{cls.__name__} has no parameter {name!r}"
            if name in signature(cls.fit).parameters:
                raise error(f"{what}; it is an argument of fit")
            kinds = [
                kind for base in NamedParameters.__subclasses__() for kind in base.__subclasses__()
            ]
            others = {kind.__name__: kind._get_param_names() for kind in kinds}
            raise error(what + suggest_parameter(name, known, others))


def explain_arguments(method: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a method with suggestions for unknown arguments or parameters."""
    known = signature(method).parameters

    @wraps(method)
    def checked(*values: Arguments.args, **named: Arguments.kwargs) -> Result:
        for name in named:
            if name not in known:
                owner: Any = type(values[0])
                what = f"{owner.__name__}.{method.__name__} has no argument {name!r}"
                parameters = owner._get_param_names()
                raise TypeError(what + suggest_argument(name, known, parameters, owner.__name__))
        return method(*values, **named)

    return checked
