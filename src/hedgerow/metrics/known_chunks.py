"""Known chunks: whether labels mark chunks, and chunk scores if some labels are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import compress
from typing import Any

from hedgerow.metrics.chunks import ChunkScores, chunk_scores


def look_like_chunks(labels: Iterable[Any]) -> bool:
    """Whether labels mark the beginning and the inside of chunks: O, B-NP, I-NP."""
    found = set(labels) - {"O"}
    return bool(found) and all(
        isinstance(label, str) and re.match(r"[BIESLU]-.", label) for label in found
    )


def score_known_chunks(y_true: Any, y_pred: Any, scheme: str | None = None) -> ChunkScores:
    """Chunk scores, without the positions that have no label."""
    return chunk_scores(*keep_known(y_true, y_pred), scheme)


def keep_known(y_true: Any, y_pred: Any) -> tuple[list[list[Any]], list[list[Any]]]:
    """True and predicted labels of the positions that have a label."""
    has_label = [[label is not None for label in labels] for labels in y_true]
    true, predicted = (
        [list(compress(labels, keep)) for labels, keep in zip(side, has_label, strict=True)]
        for side in (y_true, y_pred)
    )
    return true, predicted
