"""Quality: how a reading compares with the truth, in figures."""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics import chunk_scores
from hedgerow.metrics.known_chunks import keep_known, look_like_chunks
from hedgerow.report.blob import as_number
from hedgerow.report.reading import Reading
from hedgerow.stats.sequence_bootstrap import resample
from hedgerow.stats.tallies import ChunkMetric, Tally, tally_shares


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
    """Scores that sum a reading up: name, value, what kind of number it is, and its interval."""
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
    n_right = reading.by_sequence(known & ~wrong)[has_label]
    tallies = {
        "Accuracy": tally_shares(n_right, n_known[has_label]),
        "Sequences without an error": tally_shares(~has_error[has_label], np.ones(len(n_right))),
    }
    if look_like_chunks(reading.labels):
        sides = keep_known(*_by_sequence(reading))
        true, predicted = (list(compress(side, has_label.tolist())) for side in sides)
        chunks = chunk_scores(true, predicted)
        tallies["Chunk F1"] = ChunkMetric("f1").tally(true, predicted)
        figures[2:2] = [
            ("Chunk F1", chunks.f1, "share"),
            ("Chunk precision", chunks.precision, "share"),
            ("Chunk recall", chunks.recall, "share"),
        ]
    intervals = {name: _find_interval(tally) for name, tally in tallies.items()}
    return [
        {"name": n, "value": as_number(value), "kind": kind, "interval": intervals.get(n)}
        for n, value, kind in figures
    ]


def _find_interval(tally: Tally) -> list[float] | None:
    """Confidence interval of a score, of 95 %, by resampled sequences; None of a single one."""
    n_sequences = tally.counts.shape[0]
    if n_sequences < 2:
        return None
    found = resample([tally.measure], n_sequences)
    return [found.low, found.high]


def _by_sequence(reading: Reading) -> tuple[list[list[Any]], list[list[Any]]]:
    """True and predicted labels, a list for each sequence; None for one that is not known."""
    assert reading.truth is not None
    names, bounds = np.array([*reading.labels, None], np.object_), reading.sequences.offsets[1:-1]

    def cut(codes: NDArray[np.int32]) -> list[list[Any]]:
        return [part.tolist() for part in np.split(names[codes], bounds)]

    return cut(reading.truth), cut(reading.predicted)
