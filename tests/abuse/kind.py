"""A kind of abuse: where its cases come from, and what must hold for every one of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis.strategies import SearchStrategy

__all__ = ["Case", "Kind"]

# Plain JSON values, so that a failure can be saved as a file and read by a person.
Case = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """Attributes
    ----------
    name
        As it is printed, and as the names of its saved cases begin.
    cases
        Draws cases: small and simple ones shrink best.
    check
        Raises, AssertionError or anything else, if the library does wrong. A crash of the process
        and a hang count as failures too.
    in_suite
        Number of cases that `make test` tries, always the same ones.
    share
        Share of the time in `make abuse`, relative to the other kinds.
    seconds
        A case that takes longer than this hangs. The machine may be busy: be generous.
    """

    name: str
    cases: SearchStrategy[Case]
    check: Callable[[Case], None]
    in_suite: int
    share: float = 1.0
    seconds: float = 120.0
