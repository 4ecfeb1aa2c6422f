"""Formatting for the terminal: tables, sizes, percentages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# A matrix of this many labels fits on a page; of larger ones the largest entries are listed.
FEW_LABELS = 8


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is left-aligned and whose others are right-aligned."""
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def format_share(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.2f} %"


def format_size(n_bytes: float) -> str:
    """The size of a file."""
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"
