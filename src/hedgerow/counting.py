"""Counting: numbers with nouns in messages."""

from __future__ import annotations

__all__ = ["count_of"]


def count_of(number: int, noun: str) -> str:
    """A number and what it counts, in the singular or the plural.

    >>> count_of(1, "round"), count_of(2000, "round"), count_of(2, "entry")
    ('1 round', '2,000 rounds', '2 entries')
    """
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"
