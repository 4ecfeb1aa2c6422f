"""Counting: numbers with nouns in messages."""

from __future__ import annotations

__all__ = ["count_of"]


def count_of(number: int, noun: str) -> str:
    """A number and what it counts, in the singular or the plural.

    >>> count_of(1, "round"), count_of(2000, "round")
    ('1 round', '2,000 rounds')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
