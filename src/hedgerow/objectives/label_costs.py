"""Label costs: the cost of predicting one label where another is true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.counting import count_of
from hedgerow.labels import Labels
from hedgerow.parameters import check_number, plain_value

__all__ = ["LabelCosts", "LabelCostsParameter"]

# The type of the parameter.
LabelCostsParameter = str | float | Mapping[Any, float | Mapping[Any, float]] | ArrayLike

# Costs are added to scores, which are accurate up to this size.
LARGEST = 1e5

NAME = "label_costs"
EXPECTED = (
    "expected 'hamming', a number, a dict {true label: cost} or {true label: {predicted label: "
    "cost}}, or a matrix with one row for each true label and one column for each predicted label"
)


@dataclass(frozen=True, eq=False)
class LabelCosts:
    """Costs as the user specifies them, before the labels are known.

    Attributes
    ----------
    usual : float
        Cost of every mistake without a specified cost.
    by_label : mapping
        Specified costs, by true label and then by predicted label.
    matrix : (K, K) or None
        All costs, by the codes of the true and the predicted label.
    """

    usual: float = 1.0
    by_label: Mapping[Any, float | Mapping[Any, float]] | None = None
    matrix: NDArray[np.float64] | None = None

    @classmethod
    def read(cls, costs: Any) -> LabelCosts:
        """Check the parameter ``label_costs``, as far as possible without the labels."""
        if isinstance(costs, Mapping) and any(isinstance(key, tuple) for key in costs):
            key = next(key for key in costs if isinstance(key, tuple))
            raise ValueError(
                f"{NAME} has the key {key!r}; expected true labels as keys, and dicts of costs by "
                "predicted label as values, such as {'A': {'B': 2.0}}"
            )
        plain = plain_value(NAME, costs)
        if isinstance(plain, str | None):
            if plain != "hamming":
                raise ValueError(f"{NAME} is {plain!r}; {EXPECTED}")
            return cls()
        if isinstance(plain, dict):
            _check_by_label(plain)
            return cls(by_label=plain)
        if isinstance(plain, list):
            return cls(matrix=_read_matrix(plain))
        check_number(NAME, plain, minimum=0, maximum=LARGEST)
        return cls(float(plain))

    def among(self, labels: Labels) -> NDArray[np.float64]:
        """Costs by the codes of the true and the predicted label, (K + 1, K).

        The last row is for an unknown label, code -1: all costs are 0 there.
        """
        n_labels = len(labels.classes)
        if self.matrix is not None:
            if len(self.matrix) != n_labels:
                raise ValueError(
                    f"{NAME} has shape {self.matrix.shape}, but y has "
                    f"{count_of(n_labels, 'label')}; expected shape ({n_labels}, {n_labels}), in "
                    f"the order {labels.shown()}"
                )
            return np.append(self.matrix, np.zeros((1, n_labels)), axis=0)
        costs = np.full((n_labels + 1, n_labels), self.usual)
        for label, of_label in (self.by_label or {}).items():
            (true,) = labels.read_codes([label], NAME)
            if isinstance(of_label, Mapping):
                costs[true, labels.read_codes(list(of_label), NAME)] = list(of_label.values())
            else:
                costs[true] = of_label
        np.fill_diagonal(costs, 0.0)
        costs[-1] = 0.0
        return costs


def _check_by_label(costs: dict[Any, Any]) -> None:
    for true, of_label in costs.items():
        place = f"{NAME}[{true!r}]"
        if not isinstance(of_label, dict):
            check_number(place, of_label, minimum=0, maximum=LARGEST)
            continue
        for predicted, cost in of_label.items():
            check_number(f"{place}[{predicted!r}]", cost, minimum=0, maximum=LARGEST)
            if predicted == true and cost != 0:
                raise ValueError(
                    f"{place}[{predicted!r}] is {cost!r}; a correct label has no cost: "
                    "expected 0, or leave it out"
                )


def _read_matrix(rows: list[Any]) -> NDArray[np.float64]:
    """A square matrix of costs, of any size."""
    try:
        matrix = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{NAME} is a list but not a matrix of numbers; {EXPECTED}") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{NAME} has shape {matrix.shape}; expected a square matrix")
    bad = ~((matrix >= 0) & (matrix <= LARGEST))
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"{NAME}[{row}][{column}] is {matrix[row, column]}; expected a number from 0 to "
            f"{LARGEST:g}"
        )
    if np.diagonal(matrix).any():
        place = int(np.flatnonzero(np.diagonal(matrix))[0])
        raise ValueError(
            f"{NAME}[{place}][{place}] is {matrix[place, place]}; a correct label has no cost: "
            "expected 0 on the diagonal"
        )
    return matrix
