"""Shapes of queries: conjunctions of literals whose constants are left open."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from hedgerow.lazy import LazyAttributes, lazy

__all__ = ["HERE", "NEAR", "SLOT", "VARIABLE", "Literal", "Shape", "Term", "order_of_offset"]

# Kinds of terms.
NEAR, VARIABLE, SLOT = 0, 1, 2


class Term(NamedTuple):
    """An argument of a literal.

    Attributes
    ----------
    kind : int
        `NEAR`: a position, given by its offset from the one that the query is about;
        `VARIABLE`: a variable of the query; `SLOT`: a constant, which is left open.
    number : int
        The offset, or the number of the variable or of the slot.
    """

    kind: int
    number: int


HERE = Term(NEAR, 0)


class Literal(NamedTuple):
    """A predicate and the terms that are its arguments."""

    predicate: str
    terms: tuple[Term, ...]


class Substitution(NamedTuple):
    """A substitution of variables that maps literals of a shape to literals of the same shape.

    Attributes
    ----------
    images : tuple of Literal
        What each literal is mapped to.
    variables : dict
        What each variable is replaced by.
    slots : tuple of pairs
        A slot, and the slot that it is mapped to.
    equal : frozenset of pairs
        Slots that replace the same variable, so that their constants must be the same.
    """

    images: tuple[Literal, ...]
    variables: dict[Term, Term]
    slots: tuple[tuple[int, int], ...]
    equal: frozenset[tuple[int, int]]

    @property
    def is_onto(self) -> bool:
        """Whether every literal is the image of some literal."""
        return len(set(self.images)) == len(self.images)

    @property
    def is_renaming(self) -> bool:
        """Whether variables are merely renamed."""
        targets = set(self.variables.values())
        return len(targets) == len(self.variables) and all(
            target.kind == VARIABLE for target in targets
        )

    def extend(self, literal: Literal, image: Literal) -> Substitution | None:
        """Map one more literal; None if that is not possible."""
        if literal.predicate != image.predicate:
            return None
        variables, slots, equal = dict(self.variables), list(self.slots), set(self.equal)
        for source, target in zip(literal.terms, image.terms, strict=True):
            if source.kind == VARIABLE:
                known = variables.setdefault(source, target)
                if known.kind == target.kind == SLOT:
                    equal.add(_pair(known.number, target.number))
                elif known != target:
                    return None
            elif source.kind == target.kind == SLOT:
                slots.append((source.number, target.number))
            elif source != target:
                return None
        return Substitution((*self.images, image), variables, tuple(slots), frozenset(equal))


@dataclass(frozen=True)
class Shape(LazyAttributes):
    """A conjunction of literals.

    Attributes
    ----------
    literals : tuple of Literal
        In the order in which they were added.
    types : tuple of str
        Type of each variable.
    """

    literals: tuple[Literal, ...] = ()
    types: tuple[str, ...] = ()

    @lazy
    def n_slots(self) -> int:
        """Number of constants that are left open."""
        return sum(term.kind == SLOT for literal in self.literals for term in literal.terms)

    def is_sound(self) -> bool:
        """Whether variables and slots are numbered in the order in which they appear."""
        terms = [term for literal in self.literals for term in literal.terms]
        variables = list(dict.fromkeys(term.number for term in terms if term.kind == VARIABLE))
        slots = [term.number for term in terms if term.kind == SLOT]
        return (
            variables == list(range(len(self.types)))
            and slots == list(range(len(slots)))
            and all(term.kind in (NEAR, VARIABLE, SLOT) for term in terms)
            and all(abs(term.number) < 1 << 31 for term in terms)
        )

    def prefix(self, n_literals: int) -> Shape:
        """The shape of the first literals alone."""
        literals = self.literals[:n_literals]
        numbers = [t.number for each in literals for t in each.terms if t.kind == VARIABLE]
        return Shape(literals, self.types[: max(numbers, default=-1) + 1])

    @lazy
    def n_parts(self) -> int:
        """Number of connected parts; 0 without literals.

        Literals that share a variable are in the same part.
        """
        parts: list[set[Term]] = []
        for literal in self.literals:
            joined = {term for term in literal.terms if term.kind == VARIABLE}
            touching = [part for part in parts if part & joined]
            parts = [part for part in parts if part not in touching]
            parts.append(joined.union(*touching))
        return len(parts)

    @lazy
    def canonical(self) -> tuple[Shape, tuple[int, ...]]:
        """The canonical shape, and the old number of each of its slots.

        Shapes that differ only in the order of literals, and in the numbers of variables and slots,
        have the same canonical shape.
        """
        return min(
            (_rename(order, self.types) for order in permutations(self.literals)),
            key=lambda renamed: [_sort_key(literal) for literal in renamed[0].literals],
        )

    @lazy
    def symmetries(self) -> list[tuple[int, ...]]:
        """Permutations of slots that result in the same query: for each slot, its new number.

        The first one is the identity.
        """
        return sorted(
            {
                tuple(target for _, target in sorted(substitution.slots))
                for substitution in self._substitutions
                if substitution.is_onto and substitution.is_renaming
            }
        )

    @lazy
    def redundant_if(self) -> list[frozenset[tuple[int, int]]]:
        """Conditions under which a literal is implied by the others.

        Each is a set of pairs of slots that have equal constants; the empty set means always.
        """
        conditions = {
            substitution.equal.union(_pair(*slots) for slots in substitution.slots)
            for substitution in self._substitutions
            if not substitution.is_onto
        }
        return [frozenset(pair for pair in each if pair[0] != pair[1]) for each in conditions]

    @lazy
    def _substitutions(self) -> list[Substitution]:
        """All substitutions that map each literal to one of the literals."""
        found = [Substitution((), {}, (), frozenset())]
        for literal in self.literals:
            extended = (before.extend(literal, to) for before in found for to in self.literals)
            found = [each for each in extended if each is not None]
        return found


def order_of_offset(offset: int) -> int:
    """Rank of an offset in names: 0, -1, 1, -2, 2 and so on."""
    return 2 * abs(offset) - (offset < 0)


def _sort_key(literal: Literal) -> tuple[tuple[tuple[int, int], ...], str]:
    terms = tuple(
        (kind, order_of_offset(number) if kind == NEAR else number)
        for kind, number in literal.terms
    )
    return terms, literal.predicate


def _rename(literals: tuple[Literal, ...], types: tuple[str, ...]) -> tuple[Shape, tuple[int, ...]]:
    """Number variables and slots by first appearance; also returns the old numbers of slots."""
    names: dict[Term, Term] = {}
    counts = {VARIABLE: 0, SLOT: 0}
    for literal in literals:
        for term in literal.terms:
            if term.kind != NEAR and term not in names:
                names[term] = Term(term.kind, counts[term.kind])
                counts[term.kind] += 1
    renamed = tuple(
        Literal(predicate, tuple(names.get(term, term) for term in terms))
        for predicate, terms in literals
    )
    ordered = tuple(types[term.number] for term in names if term.kind == VARIABLE)
    return Shape(renamed, ordered), tuple(term.number for term in names if term.kind == SLOT)


def _pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)
