"""Refinement: which literals can be added to a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from hedgerow.relational.mode import POSITION, Argument, Mode
from hedgerow.relational.shape import NEAR, SLOT, VARIABLE, Literal, Shape, Term, order_of_offset

__all__ = ["Language"]


class _Choice(NamedTuple):
    """What fills an argument: a known term, or None for a new variable or constant of this type."""

    term: Term | None
    sign: str
    type: str


@dataclass(frozen=True)
class Language:
    """Queries that modes allow.

    Attributes
    ----------
    modes : tuple of Mode
        How each predicate may be used.
    depth : int
        Maximum number of literals.
    window : int
        Maximum offset at which a query can refer to other positions.
    max_variables : int
        Maximum number of variables.
    """

    modes: tuple[Mode, ...]
    depth: int
    window: int
    max_variables: int

    def refine(self, shape: Shape) -> Iterator[Shape]:
        """All shapes with one more literal that are connected, or can still become connected.

        Literals that share no variable are not connected: their conjunction is a conjunction of
        queries, which trees find by themselves.
        """
        if len(shape.literals) == self.depth or (shape.literals and not shape.types):
            return
        remaining = self.depth - len(shape.literals) - 1
        # Each literal to come can join as many parts as it has bound arguments.
        most_parts = 1 + remaining * max(self._most_bound - 1, 0)
        for mode in self.modes:
            for choices in product(*(self._choices(a, shape) for a in mode.arguments)):
                refined = _add(shape, mode.predicate, choices)
                if refined is None or len(refined.types) > self.max_variables:
                    continue
                has_variables = any(term.kind == VARIABLE for term in refined.literals[-1].terms)
                if shape.literals and not has_variables:
                    continue
                if refined.n_parts <= most_parts:
                    yield refined

    @property
    def _most_bound(self) -> int:
        """The largest number of arguments of a mode that can be bound already."""
        return max(
            sum(argument.sign in ("+", "+-") for argument in mode.arguments) for mode in self.modes
        )

    def _choices(self, argument: Argument, shape: Shape) -> list[_Choice]:
        """The possible fillers of an argument."""
        sign, kind = argument
        choices = []
        if sign in ("+", "+-"):
            if kind == POSITION:
                offsets = sorted(range(-self.window, self.window + 1), key=order_of_offset)
                choices += [_Choice(Term(NEAR, offset), "+", kind) for offset in offsets]
            choices += [
                _Choice(Term(VARIABLE, number), "+", kind)
                for number, type_ in enumerate(shape.types)
                if type_ == kind
            ]
        if sign in ("-", "+-"):
            choices.append(_Choice(None, "-", kind))
        if sign == "#":
            choices.append(_Choice(None, "#", kind))
        return choices


def _add(shape: Shape, predicate: str, choices: tuple[_Choice, ...]) -> Shape | None:
    """A shape with one more literal; None if it has that literal already."""
    types, n_slots, terms = list(shape.types), shape.n_slots, []
    for choice in choices:
        if choice.term is not None:
            terms.append(choice.term)
        elif choice.sign == "#":
            terms.append(Term(SLOT, n_slots))
            n_slots += 1
        else:
            terms.append(Term(VARIABLE, len(types)))
            types.append(choice.type)
    literal = Literal(predicate, tuple(terms))
    if literal in shape.literals:
        return None
    return Shape((*shape.literals, literal), tuple(types))
