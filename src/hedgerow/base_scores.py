"""Base scores: label scores that the user passes, on top of which a model is trained."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.labels import Labels
from hedgerow.sequences import Sequences

__all__ = ["check_base_scores_given", "read_base_scores"]

# Larger scores would swamp the scores that are learned.
LARGEST = 1e9


def check_base_scores_given(base_scores: Any, *, expected: bool, name: str) -> None:
    """Raise ValueError unless scores are given if and only if a model was fitted with them.

    ``name`` is what messages call the model, such as "this TreeCRF".
    """
    if expected and base_scores is None:
        raise ValueError(
            f"{name} was fitted with base_scores and needs them here too; pass base_scores from "
            "the same model as in training, or an array of zeros if there are none"
        )
    if base_scores is not None and not expected:
        raise ValueError(
            f"base_scores are given, but {name} was fitted without them; leave them out here, or "
            "pass base_scores to its fit too"
        )


def read_base_scores(
    base_scores: Any, sequences: Sequences, labels: Labels
) -> NDArray[np.float64] | None:
    """Check scores of labels against their sequences, and concatenate them.

    Parameters
    ----------
    base_scores : list of (T, K), or (N, K)
        Finite numbers; None if there are none. Columns of a frame that are named after the labels
        may be in any order.
    sequences : Sequences
        The X that they belong to.
    labels : Labels
        The K classes.

    Returns
    -------
    (N, K) float64, C-contiguous, or None
    """
    if base_scores is None:
        return None
    if isinstance(base_scores, str | bytes | Mapping | AbstractSet):
        raise TypeError(
            f"base_scores is of type {type(base_scores).__name__}; "
            f"{_expected(sequences, labels, 'base_scores')}"
        )
    scores = _read_all(base_scores, sequences, labels)
    _check_values(scores, sequences, labels)
    return np.ascontiguousarray(scores)


def _read_all(base_scores: Any, sequences: Sequences, labels: Labels) -> NDArray[np.float64]:
    if sequences.flat or getattr(base_scores, "ndim", None) == 2:
        scores = _to_numbers(base_scores, "base_scores", labels)
        _check_shape(scores, sequences.n_positions, "base_scores", sequences, labels)
        return scores
    try:
        parts = list(base_scores)
    except TypeError:
        raise TypeError(
            f"base_scores is of type {type(base_scores).__name__}; "
            f"{_expected(sequences, labels, 'base_scores')}"
        ) from None
    if len(parts) != sequences.n_sequences:
        raise ValueError(
            f"base_scores has {count_of(len(parts), 'part')} but X has "
            f"{count_of(sequences.n_sequences, 'sequence')}; "
            f"{_expected(sequences, labels, 'base_scores')}"
        )
    scores = np.empty((sequences.n_positions, len(labels.classes)))
    for number, (begin, end) in enumerate(pairwise(sequences.offsets.tolist())):
        where = f"base_scores[{number}]"
        part = _to_numbers(parts[number], where, labels)
        _check_shape(part, end - begin, where, sequences, labels)
        scores[begin:end] = part
    return scores


def _to_numbers(values: Any, where: str, labels: Labels) -> NDArray[np.float64]:
    native = nw.from_native(values, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        values = _in_order(native, where, labels)
    try:
        found = np.asarray(values)
        if found.dtype.kind == "c" or np.ma.is_masked(values):
            raise ValueError("its values are complex, or some are masked")
        return found.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} is not an array of numbers: {error}") from None


def _in_order(frame: nw.DataFrame[Any], where: str, labels: Labels) -> NDArray[Any]:
    """Columns in the order of the labels, if they have names."""
    names, classes = list(map(str, frame.columns)), list(map(str, labels.classes.tolist()))
    has_names = names != list(map(str, range(len(names))))
    if sorted(names) == sorted(classes):
        places = {name: place for place, name in enumerate(names)}
        return frame.to_numpy()[:, [places[name] for name in classes]]
    if has_names and len(names) == len(classes):
        raise ValueError(
            f"the columns of {where} are {', '.join(map(repr, names))}, but the labels are "
            f"{labels.shown()}; name the columns after the labels, or pass an array with columns "
            "in this order"
        )
    return frame.to_numpy()


def _check_shape(
    scores: NDArray[np.float64], n_rows: int, where: str, sequences: Sequences, labels: Labels
) -> None:
    if scores.shape != (n_rows, len(labels.classes)):
        raise ValueError(
            f"{where} has shape {scores.shape}; {_expected(sequences, labels, where, n_rows)}"
        )


def _expected(sequences: Sequences, labels: Labels, where: str, n_rows: int | None = None) -> str:
    n_labels = len(labels.classes)
    columns = f"a column for each label, in this order: {labels.shown()}"
    if n_rows is not None:
        return f"expected ({n_rows}, {n_labels}), {columns}"
    if sequences.flat:
        return f"expected an array of shape ({sequences.n_positions}, {n_labels}), {columns}"
    return f"expected one array of shape (length, {n_labels}) for each sequence, {columns}"


def _check_values(scores: NDArray[np.float64], sequences: Sequences, labels: Labels) -> None:
    bad = ~(np.abs(scores) <= LARGEST)
    if not bad.any():
        return
    row, column = divmod(int(bad.argmax()), scores.shape[1])
    sequence, position = sequences.locate(row)
    value, label = float(scores[row, column]), labels.classes.tolist()[column]
    where = f"row {row}" if sequences.flat else f"position {position} of sequence {sequence}"
    advice = f"expected finite numbers from {-LARGEST:g} to {LARGEST:g}"
    if value == -np.inf:
        advice += (
            ". If they are logarithms of probabilities that may be 0, use "
            "np.log(np.maximum(probabilities, 1e-6)); for an impossible label, pass a number such "
            "as -1e4"
        )
    raise ValueError(f"base_scores is {value} at {where} for label {label!r}; {advice}")
