"""History: loss and metrics of each training step."""

from __future__ import annotations

from typing import Any

from hedgerow import notebook
from hedgerow.counting import count_of

__all__ = ["History"]


class History(dict[str, list[float]]):
    """A dict of lists, one value per step, that prints as a summary.

    A list that is shorter than the others has the values of the last steps.

    Examples
    --------
    >>> History({"loss": [0.7, 0.5, 0.4], "eval_accuracy": [0.8, 0.9, 0.85]})
    3 steps        first  best  at step  last
    loss             0.7   0.4        3   0.4
    eval_accuracy    0.8   0.9        2  0.85
    """

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return max(map(len, self.values()), default=0)

    def at(self, step: int) -> dict[str, float]:
        """All values at a step, counted from 1."""
        place = step - 1 - self.n_steps
        return {
            name: float(figures[place])
            for name, figures in self.items()
            if 0 <= len(figures) + place < len(figures)
        }

    def __repr__(self) -> str:
        header, rows = self._summary()
        texts = [header, *([*map(notebook.format_value, row)] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        return "\n".join(
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            )
            for row in texts
        )

    def _repr_html_(self) -> str:
        header, rows = self._summary()
        return notebook.card(
            f"History of {header[0]}",
            notebook.table(["", *header[1:]], rows),
            notebook.curves(self),
        )

    def _summary(self) -> tuple[list[str], list[list[Any]]]:
        """Every metric at the first step, at its best step, and at the last step."""
        rows = []
        for name, figures in self.items():
            if figures:
                known = [figure for figure in figures if figure == figure] or figures
                is_loss = name.endswith("loss") and "neg_" not in name
                best = min(known) if is_loss else max(known)
                step = self.n_steps - len(figures) + figures.index(best) + 1
                rows.append([name, float(figures[0]), float(best), step, float(figures[-1])])
        return [count_of(self.n_steps, "step"), "first", "best", "at step", "last"], rows
