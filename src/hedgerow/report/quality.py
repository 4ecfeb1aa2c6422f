"""Quality: how a reading compares with the truth, in figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.known_chunks import look_like_chunks, score_known_chunks
from hedgerow.report.blob import as_number
from hedgerow.report.reading import Reading


def count_confusion(reading: Reading) -> dict[str, list[int]]:
    """How often a label was taken for another: truth, predicted, count, where it is not 0."""
    assert reading.truth is not None
    n_labels, known = len(reading.labels), reading.known
    pairs = reading.truth[known].astype(np.int64) * n_labels + reading.predicted[known]
    cells, counts = np.unique(pairs, return_counts=True)
    truth, predicted = np.divmod(cells, n_labels)
    columns = {"truth": truth, "predicted": predicted, "count": counts}
    return {name: column.tolist() for name, column in columns.items()}


def measure(reading: Reading) -> list[dict[str, Any]]:
    """Scores that sum a reading up: name, value, and what kind of number it is."""
    known, wrong = reading.known, reading.wrong
    if not known.any():
        return []
    has_label, has_error = reading.by_sequence(known) > 0, reading.by_sequence(wrong) > 0
    n_known = np.maximum(reading.by_sequence(known), 1)
    likelihood = (reading.scores * n_known)[has_label].sum(dtype=np.float64) / known.sum()
    assert reading.calibration is not None
    n_otherwise = np.sum(known & (reading.otherwise == reading.truth))
    other = "marginals" if reading.decode == "viterbi" else "Viterbi"
    figures = [
        ("Accuracy", 1 - wrong.sum() / known.sum(), "share"),
        (f"Accuracy by {other}", n_otherwise / known.sum(), "share"),
        ("Sequences without an error", 1 - has_error[has_label].mean(), "share"),
        ("Log-likelihood per position", likelihood, "number"),
        ("Calibration error", reading.calibration.errors()[0], "share"),
    ]
    if look_like_chunks(reading.labels):
        chunks = score_known_chunks(*_by_sequence(reading))
        figures[2:2] = [
            ("Chunk F1", chunks.f1, "share"),
            ("Chunk precision", chunks.precision, "share"),
            ("Chunk recall", chunks.recall, "share"),
        ]
    return [{"name": n, "value": as_number(value), "kind": kind} for n, value, kind in figures]


def _by_sequence(reading: Reading) -> tuple[list[list[Any]], list[list[Any]]]:
    """True and predicted labels, a list for each sequence; None for one that is not known."""
    assert reading.truth is not None
    names, bounds = np.array([*reading.labels, None], np.object_), reading.sequences.offsets[1:-1]

    def cut(codes: NDArray[np.int32]) -> list[list[Any]]:
        return [part.tolist() for part in np.split(names[codes], bounds)]

    return cut(reading.truth), cut(reading.predicted)
