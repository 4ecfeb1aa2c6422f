"""A kind of abuse: the strategy for its cases, and the check that must hold for every case."""

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
        The printed name, and the prefix of the names of saved cases.
    cases
        Draws cases: small and simple ones shrink best.
    check
        Raises AssertionError or any other exception if the library is wrong. A crash of the process
        and a hang count as failures too.
    in_suite
        Number of cases in `make test`, always the same ones.
    share
        Share of the time in `make abuse`, relative to the other kinds.
    seconds
        Time limit of a case; generous, since the machine may be busy.
    """

    name: str
    cases: SearchStrategy[Case]
    check: Callable[[Case], None]
    in_suite: int
    share: float = 1.0
    seconds: float = 120.0
