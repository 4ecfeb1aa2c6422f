"""Modes: how a predicate may be used in a query, such as ``head(+t,-t)``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from hedgerow.counting import count_of
from hedgerow.relational.database import Database
from hedgerow.relational.fact_reader import to_list
from hedgerow.suggestions import suggest

__all__ = ["POSITION", "Mode", "check_modes", "default_modes", "read_modes"]

Sign = Literal["+", "-", "#", "+-"]

# The type of positions.
POSITION = "t"
# Relations between neighbouring positions that need no facts, and how far they go.
BUILT_IN = {"next": 1, "prev": -1}

FORM = re.compile(r"\s*([^(),]*[^(),\s])\s*\(([^()]*)\)\s*")
ARGUMENT = re.compile(r"\s*(\+-|\+|-|#)\s*(\w+)\s*")


class Argument(NamedTuple):
    """One argument of a mode.

    Attributes
    ----------
    sign : {"+", "-", "#", "+-"}
        "+": a variable that is bound already; "-": a new variable; "+-": either of them; "#": a
        constant that occurs in the data.
    type : str
        Variables are shared between arguments of one type only; ``t`` is that of positions.
    """

    sign: Sign
    type: str


@dataclass(frozen=True)
class Mode:
    """How a predicate may be used in a query.

    Examples
    --------
    >>> mode = Mode.parse("head(+t, -t)")
    >>> mode.predicate, [argument.sign for argument in mode.arguments]
    ('head', ['+', '-'])
    >>> str(mode)
    'head(+t,-t)'
    """

    predicate: str
    arguments: tuple[Argument, ...]

    @classmethod
    def parse(cls, text: Any) -> Mode:
        """Read a mode as users write it."""
        if isinstance(text, Mode):
            return text
        if not isinstance(text, str):
            raise TypeError(
                f"modes holds {text!r} of type {type(text).__name__}; expected strings such as "
                "'head(+t,-t)'"
            )
        form = FORM.fullmatch(text)
        if form is None:
            raise ValueError(
                f"mode {text!r} cannot be read; expected a predicate and its arguments, such as "
                "'head(+t,-t)'"
            )
        parts = form[2].split(",") if form[2].strip() else []
        return cls(form[1], tuple(_read_argument(part, text) for part in parts))

    def __str__(self) -> str:
        return f"{self.predicate}({','.join(sign + kind for sign, kind in self.arguments)})"

    @property
    def needs(self) -> set[str]:
        """Types of variables that must be bound already, except positions, which always are."""
        return {kind for sign, kind in self.arguments if sign == "+"} - {POSITION}

    @property
    def binds(self) -> set[str]:
        """Types of the variables that it introduces."""
        return {kind for sign, kind in self.arguments if sign in ("-", "+-")}


def read_modes(modes: Any) -> tuple[Mode, ...]:
    """Read modes, without duplicates."""
    such_as = "a list of strings such as ['word(+t,#w)', 'head(+t,-t)']"
    read = tuple(dict.fromkeys(map(Mode.parse, to_list(modes, "modes", such_as))))
    if not read:
        raise ValueError("modes is empty; expected at least one, such as 'word(+t,#w)', or None")
    return read


def default_modes(database: Database) -> tuple[Mode, ...]:
    """Modes of all predicates of positions: constants as arguments, variables for links."""
    modes = []
    for name, relation in sorted(database.relations.items()):
        if relation.is_position and relation.is_position[0]:
            signs: list[Sign] = ["-" if is_one else "#" for is_one in relation.is_position[1:]]
            types = [POSITION if is_one else "constant" for is_one in relation.is_position[1:]]
            rest = map(Argument, signs, types)
            modes.append(Mode(name, (Argument("+", POSITION), *rest)))
    if not modes:
        raise ValueError(
            "no position of X has a fact, so there are no queries about positions; pass modes "
            "that say how background facts are used"
        )
    return tuple(modes)


def check_modes(modes: tuple[Mode, ...], database: Database) -> None:
    """Raise ValueError for modes that do not fit the facts, or can never be used."""
    for mode in modes:
        if mode.predicate not in database.relations and mode.predicate not in BUILT_IN:
            known = sorted(database.relations)
            raise ValueError(
                f"mode '{mode}': no fact of X has the predicate {mode.predicate!r}"
                + (suggest(mode.predicate, known) or f"; its predicates are {', '.join(known)}")
            )
        _check_arguments(mode, database)
    bound = {POSITION}
    usable = [mode for mode in modes if mode.needs <= bound]
    while {kind for mode in usable for kind in mode.binds} - bound:
        bound |= {kind for mode in usable for kind in mode.binds}
        usable = [mode for mode in modes if mode.needs <= bound]
    for mode in modes:
        lacking = sorted(mode.needs - bound)
        if lacking:
            raise ValueError(
                f"mode '{mode}' can never be used: no usable mode introduces a variable "
                f"of type {lacking[0]!r}; give another mode an argument -{lacking[0]}, or correct "
                "the type"
            )


def _check_arguments(mode: Mode, database: Database) -> None:
    relation = database.relations.get(mode.predicate)
    are_positions = (True, True) if relation is None else relation.is_position
    written = f"{mode.predicate}({','.join('t' if each else 'c' for each in are_positions)})"
    if len(mode.arguments) != len(are_positions):
        first = ", the position itself first" if are_positions[:1] == (True,) else ""
        raise ValueError(
            f"mode '{mode}' has {count_of(len(mode.arguments), 'argument')}, but facts of "
            f"{mode.predicate} have {len(are_positions)}{first}: {written}, t being a position "
            "and c a constant"
        )
    for number, (argument, is_position) in enumerate(
        zip(mode.arguments, are_positions, strict=True), 1
    ):
        if (argument.type == POSITION) != is_position:
            kind = "a position, of type t" if is_position else "a constant, not of type t"
            raise ValueError(
                f"mode '{mode}': argument {number} of {mode.predicate} is {kind}, in the facts of "
                f"X: {written}"
            )


def _read_argument(part: str, text: str) -> Argument:
    form = ARGUMENT.fullmatch(part)
    if form is None:
        raise ValueError(
            f"mode {text!r}: argument {part.strip()!r} cannot be read; expected a sign and a type "
            "(t for positions), such as +file (a variable that is bound already), -file (a new "
            "one), +-file (either of them) or #file (a constant of the data)"
        )
    if form[1] == "#" and form[2] == POSITION:
        raise ValueError(
            f"mode {text!r}: {part.strip()!r} asks for constants of type t, which is that of "
            "positions; positions are bound to variables, +t or -t"
        )
    return Argument(cast("Sign", form[1]), form[2])
