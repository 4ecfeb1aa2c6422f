"""True and predicted labels side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hedgerow.counting import count_of

Pairs = list[tuple[Sequence[Any], Sequence[Any]]]


def pair_sequences(y_true: Iterable[Sequence[Any]], y_pred: Iterable[Sequence[Any]]) -> Pairs:
    """Check that both have the same number of labels, and return one pair per sequence."""
    for name, labels in (("y_true", y_true), ("y_pred", y_pred)):
        if not isinstance(labels, Iterable):
            raise TypeError(
                f"{name} is {labels!r}; expected a list with one list of labels for every sequence"
            )
    y_true, y_pred = list(y_true), list(y_pred)
    if len(y_true) != len(y_pred):
        raise ValueError(
            f"y_true has {count_of(len(y_true), 'sequence')} but y_pred has {len(y_pred)}"
        )
    pairs = list(zip(y_true, y_pred, strict=True))
    for s, (true, predicted) in enumerate(pairs):
        for labels in (true, predicted):
            if isinstance(labels, str) or not hasattr(labels, "__len__"):
                kind = "a string" if isinstance(labels, str) else f"{labels!r}"
                raise TypeError(
                    f"sequence {s} is {kind}; expected lists of labels: wrap flat labels, "
                    "[y_true], or cut them into sequences"
                )
        if len(true) != len(predicted):
            raise ValueError(
                f"sequence {s} has {count_of(len(true), 'label')} in y_true but "
                f"{len(predicted):,} in y_pred"
            )
    return pairs
