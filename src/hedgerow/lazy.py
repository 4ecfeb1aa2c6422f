"""Lazy attributes: computed on first access, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["LazyAttributes", "lazy"]

Value = TypeVar("Value")


class lazy(Generic[Value]):  # noqa: N801  used as a decorator, as property is
    """A property of `LazyAttributes` that is computed once and stored in the object.

    Up to Python 3.11, `functools.cached_property` holds one lock for all objects of a class while
    it computes: a process forked at that moment by another thread inherits the locked lock, which
    is never released. Here threads that access it at the same time each compute the value, and the
    first to finish wins.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        assert issubclass(owner, LazyAttributes)
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> Value | lazy[Value]:
        """The value; afterwards it is found in the object itself."""
        if instance is None:
            return self
        value: Value = vars(instance).setdefault(self._name, self._compute(instance))
        return value


class LazyAttributes:
    """Base of classes with lazy attributes.

    Copies and pickles leave out computed values, since another thread may be adding one.
    """

    def __getstate__(self) -> dict[str, object]:
        """All other attributes."""
        state = dict(vars(self))  # in one step, so that no other thread can interfere
        return {
            name: value
            for name, value in state.items()
            if not isinstance(getattr(type(self), name, None), lazy)
        }
