"""Label scores: precision, recall and F1 of single labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.encode.codes import is_missing
from hedgerow.metrics.pairs import pair_sequences
from hedgerow.metrics.scores import Scores


@dataclass(frozen=True, eq=False)
class LabelScores:
    """Accuracy and confusion matrix, and the scores of each label.

    Attributes
    ----------
    accuracy : float
        Share of positions that are correct, 0 to 1.
    n_positions : int
        Number of positions whose true label is known.
    labels : list
        The K labels that occur in y_true or y_pred, sorted.
    confusion : (K, K) int64
        Number of positions by [true label, predicted label].
    by_label : dict
        Precision, recall and F1 of each label.
    sequence_accuracy : float
        Share of sequences without an error, 0 to 1.
    """

    accuracy: float
    n_positions: int
    labels: list[Any]
    confusion: NDArray[np.int64]
    by_label: dict[Any, Scores]
    sequence_accuracy: float


def label_scores(y_true: Iterable[Sequence[Any]], y_pred: Iterable[Sequence[Any]]) -> LabelScores:
    """Compare labels position by position.

    A label need not occur in both y_true and y_pred. Positions whose true label is None, NaN or NA
    are left out.

    Parameters
    ----------
    y_true, y_pred
        Labels of each sequence.

    Examples
    --------
    >>> from hedgerow.metrics import label_scores
    >>> scores = label_scores([["A", "B", "B"], ["A"]], [["A", "B", "A"], ["A"]])
    >>> scores.accuracy, scores.sequence_accuracy
    (0.75, 0.5)
    >>> scores.labels, scores.confusion.tolist()
    (['A', 'B'], [[2, 0], [1, 1]])
    >>> scores.by_label["B"].recall
    0.5
    """
    known = [
        [(t, p) for t, p in zip(_plain(true), _plain(predicted), strict=True) if _is_known(t)]
        for true, predicted in pair_sequences(y_true, y_pred)
    ]
    known = [sequence for sequence in known if sequence]
    labels = _sort({label for sequence in known for pair in sequence for label in pair})
    codes = {label: code for code, label in enumerate(labels)}
    cells = [codes[t] * len(labels) + codes[p] for sequence in known for t, p in sequence]
    counted = np.bincount(np.array(cells, dtype=np.int64), minlength=len(labels) ** 2)
    confusion = counted.astype(np.int64).reshape(len(labels), len(labels))
    n_true, n_predicted = confusion.sum(axis=1).tolist(), confusion.sum(axis=0).tolist()
    n_correct = np.diagonal(confusion).tolist()
    counts = zip(n_true, n_predicted, n_correct, strict=True)
    n_whole = sum(all(t == p for t, p in sequence) for sequence in known)
    return LabelScores(
        accuracy=sum(n_correct) / len(cells) if cells else 0.0,
        n_positions=len(cells),
        labels=labels,
        confusion=confusion,
        by_label={
            label: Scores.from_counts(*three) for label, three in zip(labels, counts, strict=True)
        },
        sequence_accuracy=n_whole / len(known) if known else 0.0,
    )


def _plain(labels: Sequence[Any]) -> list[Any]:
    """Labels as Python objects: NumPy scalars print badly and are slow to hash."""
    return (
        labels.tolist()
        if isinstance(labels, np.ndarray)
        else [label.item() if isinstance(label, np.generic) else label for label in labels]
    )


def _is_known(label: Any) -> bool:
    return isinstance(label, str) or not is_missing(label)


def _sort(labels: set[Any]) -> list[Any]:
    """Sorted by value if they can be compared, otherwise by how they print, 1 before "1"."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (str(label), type(label).__name__))
