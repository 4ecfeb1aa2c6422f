"""Queries by name, and in words: a shape with the constants of its slots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from hedgerow.relational.mode import POSITION
from hedgerow.relational.shape import NEAR, SLOT, VARIABLE, Literal, Shape, Term

__all__ = ["Query", "describe_query", "name_query"]

# Names of variables: for positions, and for everything else.
POSITIONS, OTHERS = "PQRSTU", "XYZVWA"
AND = " & "


class Query(NamedTuple):
    """A shape, and the constants of its slots."""

    shape: Shape
    constants: tuple[str, ...]

    @property
    def canonical(self) -> Query:
        """The same query in canonical form, from which its name is made."""
        shape, slots = self.shape.canonical
        return Query(shape, tuple(self.constants[slot] for slot in slots))

    @property
    def name(self) -> str:
        """Its name, see `name_query`."""
        return name_query(*self.canonical)


def name_query(shape: Shape, constants: Sequence[str]) -> str:
    """The name of a query, which is unique.

    A literal about the position itself stands alone, ``word=cat``; a literal about another position
    comes after the name of that position: ``previous: word=the``, ``head(P) & P: pos=VERB``.

    Parameters
    ----------
    shape : Shape
        A canonical shape.
    constants : list of str
        Constant of each slot.
    """
    names = _Names(shape, constants)
    return AND.join(
        names.subject(literal, "{}: ") + names.statement(literal) for literal in shape.literals
    )


def describe_query(shape: Shape, constants: Sequence[str]) -> str:
    """A query as a sentence: ``this position has ls(X) and the previous position has cd(X)``."""
    names = _Names(shape, constants)
    parts = []
    for subject, literals in groupby(shape.literals, names.who):
        statements = " and ".join(map(names.statement, literals))
        parts.append(f"{subject} has {statements}" if subject else statements)
    return " and ".join(parts)


class _Names:
    """Names of what a shape is made of."""

    def __init__(self, shape: Shape, constants: Sequence[str]) -> None:
        self._types, self._constants = shape.types, constants
        self._variables = []
        for number, kind in enumerate(shape.types):
            letters = POSITIONS if kind == POSITION else OTHERS
            rank = sum(
                (before == POSITION) == (kind == POSITION) for before in shape.types[:number]
            )
            suffix = str(rank // len(letters)) if rank >= len(letters) else ""
            self._variables.append(letters[rank % len(letters)] + suffix)

    def is_position(self, term: Term) -> bool:
        """Whether a term is a position."""
        is_variable = term.kind == VARIABLE
        return term.kind == NEAR or (is_variable and self._types[term.number] == POSITION)

    def subject(self, literal: Literal, form: str) -> str:
        """The position that a literal is about, formatted; empty for this position, or for none."""
        terms = literal.terms
        if not (terms and self.is_position(terms[0])) or terms[0] == (NEAR, 0):
            return ""
        return form.format(self._term(terms[0]))

    def who(self, literal: Literal) -> str:
        """The position that a literal is about, in words."""
        terms = literal.terms
        if not (terms and self.is_position(terms[0])):
            return ""
        if terms[0].kind == VARIABLE:
            return f"position {self._term(terms[0])}"
        offset = terms[0].number
        known = {0: "this position", -1: "the previous position", 1: "the next position"}
        return known.get(offset) or f"the position {abs(offset)} steps {_side(offset)}"

    def statement(self, literal: Literal) -> str:
        """A literal without the position that it is about."""
        terms = list(literal.terms)
        if terms and self.is_position(terms[0]):
            del terms[0]
        value = ""
        if [term.kind for term in terms].count(SLOT) == 1 and terms[-1].kind == SLOT:
            value = "=" + _quote_if_needed(self._constants[terms.pop().number])
        arguments = f"({','.join(map(self._term, terms))})" if terms else ""
        return literal.predicate + arguments + value

    def _term(self, term: Term) -> str:
        if term.kind == VARIABLE:
            return self._variables[term.number]
        if term.kind == SLOT:
            return json.dumps(self._constants[term.number], ensure_ascii=False)
        known = {0: "here", -1: "previous", 1: "next"}
        return known.get(term.number) or f"{abs(term.number)} {_side(term.number)}"


def _side(offset: int) -> str:
    return "before" if offset < 0 else "after"


def _quote_if_needed(text: str) -> str:
    """A constant, quoted if it could be mistaken for a part of the query."""
    return json.dumps(text, ensure_ascii=False) if AND in text or text[:1] == '"' else text
