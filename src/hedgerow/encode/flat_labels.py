"""Flat labels: lists of label lists become one array, as scikit-learn's functions need."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.counting import count_of
from hedgerow.encode.codes import is_missing


def flatten_labels(y: Any) -> tuple[NDArray[Any], list[int] | None]:
    """Labels of all positions, (N,), and the lengths of the sequences unless y was flat."""
    if not isinstance(y, Iterable):
        raise TypeError(f"y is {y!r}; expected one label for every position")
    parts = list(y)
    if not parts or isinstance(parts[0], str) or not isinstance(parts[0], Iterable):
        return np.fromiter(parts, np.object_, len(parts)), None
    lists = [list(part) for part in parts]
    lengths = list(map(len, lists))
    return np.fromiter(chain.from_iterable(lists), np.object_, sum(lengths)), lengths


def are_missing(labels: NDArray[Any], missing_label: Any = None) -> NDArray[np.bool_]:
    """Which flat labels are missing, (N,): None, NaN, NA and ``missing_label``."""
    return np.array(
        [
            is_missing(label) or (missing_label is not None and label == missing_label)
            for label in labels
        ],
        np.bool_,
    )


def repeat_weights(
    sample_weight: ArrayLike, lengths: list[int] | None, n_positions: int
) -> NDArray[np.float64]:
    """Weights of the positions, (N,), from weights of the sequences, or of the rows of a flat X."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    n_expected, of = (n_positions, "row") if lengths is None else (len(lengths), "sequence")
    if weights.shape != (n_expected,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected one weight for each of "
            f"{count_of(n_expected, of)}"
        )
    return weights if lengths is None else np.repeat(weights, lengths)
