"""Cells: values as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any


def to_cells(columns: Mapping[str, Sequence[Any]], empty: str) -> list[list[str]]:
    """Text of the values of columns, each given as a list of sequences of values.

    Floats have up to six significant digits; `empty` replaces None.
    """
    return [_to_text(flatten(sequences), empty) for sequences in columns.values()]


def flatten(sequences: Sequence[Any]) -> list[Any]:
    """One list of plain values, from lists and arrays alike."""
    lists = (values.tolist() if hasattr(values, "tolist") else values for values in sequences)
    return list(chain.from_iterable(lists))


def _to_text(values: list[Any], empty: str) -> list[str]:
    kinds = set(map(type, values))
    if kinds <= {str}:
        return values
    if kinds == {float}:
        return [f"{value:.6g}" for value in values]
    return [
        empty if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
        for value in values
    ]
