"""Raw data: the arguments of an estimator's methods, before they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import ArrayLike

__all__ = ["RawData"]


@dataclass(frozen=True, eq=False)
class RawData:
    """X and y, and everything that may come with them, see `hedgerow.TreeCRF.fit`."""

    X: Any
    y: Any = None
    groups: Any = None
    parents: Any = None
    base_scores: Any = None
    X_base: Any = None
    sample_weight: ArrayLike | None = None

    def repeatable(self) -> RawData:
        """The same data, which can be read more than once."""
        return self._convert(lambda part: list(part) if isinstance(part, Iterator) else part)

    def in_lists(self) -> RawData:
        """One sequence as a list of one sequence."""
        return self._convert(lambda part: None if part is None else [part])

    def _convert(self, convert: Callable[[Any], Any]) -> RawData:
        return RawData(**{field.name: convert(getattr(self, field.name)) for field in fields(self)})

    @staticmethod
    def looks_like(value: Any) -> bool:
        """Whether it is a dict with the keys of an eval set, including X and y."""
        return isinstance(value, Mapping) and {"X", "y"} <= set(value) <= set(NAMES)


# Allowed keys of an eval set; it has no weights.
NAMES = [field.name for field in fields(RawData) if field.name != "sample_weight"]
