"""Scores that people report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["ChunkScores", "chunk_scores"]


@dataclass(frozen=True)
class ChunkScores:
    """Precision, recall and F1 of chunks, 0 to 1."""

    precision: float
    recall: float
    f1: float
    n_true: int
    n_predicted: int
    n_correct: int
    by_type: dict[str, ChunkScores]
    """The same for each chunk type; empty in the entries themselves."""


def chunk_scores(y_true: Iterable[Sequence[str]], y_pred: Iterable[Sequence[str]]) -> ChunkScores:
    """Compare chunks as the CoNLL evaluation script does.

    Labels are ``O``, or a prefix (B, I, L, E, S, U), a hyphen and a type. A predicted chunk counts
    when a true chunk has the same type, beginning and end. Both IOB1 and IOB2 are understood, and
    labellings that break their scheme are read leniently: an ``I-`` after another type begins a
    chunk.

    Examples
    --------
    >>> from hedgerow.metrics import chunk_scores
    >>> chunk_scores([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-VP"]]).f1
    0.6666666666666666
    """
    counts: dict[str, list[int]] = {}
    y_true, y_pred = list(y_true), list(y_pred)
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences but y_pred has {len(y_pred)}")
    for s, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        if isinstance(true, str) or isinstance(predicted, str):
            raise TypeError(
                f"sequence {s} is a string; expected lists of labels: wrap flat labels, [y_true], "
                "or cut them into sequences"
            )
        if len(true) != len(predicted):
            raise ValueError(
                f"sequence {s} has {len(true)} labels in y_true but {len(predicted)} in y_pred"
            )
        true_chunks, predicted_chunks = _chunks(true), _chunks(predicted)
        for place, chunks in enumerate(
            (true_chunks, predicted_chunks, true_chunks & predicted_chunks)
        ):
            for kind, _, _ in chunks:
                counts.setdefault(kind, [0, 0, 0])[place] += 1
    by_type = {kind: _score(counts[kind], {}) for kind in sorted(counts)}
    totals = [sum(column) for column in zip(*counts.values(), strict=True)] or [0, 0, 0]
    return _score(totals, by_type)


def _chunks(labels: Sequence[str]) -> set[tuple[str, int, int]]:
    """All (type, first, last) of a labelling."""
    chunks = set()
    start, before, kind_before = 0, "O", ""
    for t, label in enumerate([*labels, "O"]):
        prefix, _, kind = str(label).partition("-")
        changed = kind != kind_before
        ends = before != "O" and (changed or before in "LESU" or prefix in "OBSU")
        if ends:
            chunks.add((kind_before, start, t - 1))
        if prefix != "O" and (ends or before == "O" or changed):
            start = t
        before, kind_before = prefix, kind
    return chunks


def _score(counts: list[int], by_type: dict[str, ChunkScores]) -> ChunkScores:
    n_true, n_predicted, n_correct = counts
    precision = n_correct / n_predicted if n_predicted else 0.0
    recall = n_correct / n_true if n_true else 0.0
    f1 = 2 * n_correct / (n_true + n_predicted) if n_correct else 0.0
    return ChunkScores(precision, recall, f1, n_true, n_predicted, n_correct, by_type)
