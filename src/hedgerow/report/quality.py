"""Quality: scores of a reading."""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.decoding import Decode
from hedgerow.metrics import chunk_scores
from hedgerow.metrics.known_chunks import keep_known, look_like_chunks
from hedgerow.report.blob import as_number
from hedgerow.report.reading import OTHER, Reading
from hedgerow.stats.sequence_bootstrap import resample
from hedgerow.stats.tallies import ChunkMetric, Tally, tally_shares

# Names of the decoders.
IN_WORDS: dict[Decode, str] = {"viterbi": "Viterbi", "marginal": "marginals"}


def count_confusion(reading: Reading) -> dict[str, list[int]]:
    """Confusion counts that are not 0: true label, predicted label, count."""
    assert reading.truth is not None
    n_labels, known = len(reading.labels), reading.known
    pairs = reading.truth[known].astype(np.int64) * n_labels + reading.predicted[known]
    cells, counts = np.unique(pairs, return_counts=True)
    truth, predicted = np.divmod(cells, n_labels)
    columns = {"truth": truth, "predicted": predicted, "count": counts}
    return {name: column.tolist() for name, column in columns.items()}


def measure(reading: Reading) -> list[dict[str, Any]]:
    """Summary scores of a reading: name, value, kind of number, and confidence interval."""
    known = reading.known
    if not known.any():
        return []
    tallies = tally_scores(reading, reading.predicted)
    values = {name: score_all(tally) for name, tally in tallies.items()}
    assert reading.calibration is not None
    n_otherwise = np.sum(known & (reading.otherwise == reading.truth))
    figures = [
        ("Accuracy", values["Accuracy"], "share"),
        (f"Accuracy by {IN_WORDS[OTHER[reading.decode]]}", n_otherwise / known.sum(), "share"),
        ("Sequences without an error", values["Sequences without an error"], "share"),
        ("Log-likelihood per position", measure_likelihood(reading), "number"),
        ("Calibration error", reading.calibration.errors()[0], "share"),
    ]
    if "Chunk F1" in tallies:
        chunks = chunk_scores(*keep_known(*_by_sequence(reading, reading.predicted)))
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


def measure_likelihood(reading: Reading) -> float:
    """Log-likelihood per labelled position."""
    n_known = reading.by_sequence(reading.known)
    return float((reading.scores * n_known).sum(dtype=np.float64) / n_known.sum())


def compare_decoders(reading: Reading) -> dict[str, Any]:
    """Scores of both decoders, and the number of positions that they label differently."""
    codes = {reading.decode: reading.predicted, OTHER[reading.decode]: reading.otherwise}
    rows: dict[str, list[float | int | None]] = {}
    for decode in OTHER:
        for name, tally in tally_scores(reading, codes[decode]).items():
            rows.setdefault(name, []).append(as_number(score_all(tally)))
    return {
        "names": [IN_WORDS[decode] for decode in OTHER],
        "rows": [[name, *values] for name, values in rows.items()],
        "n_differ": int(np.sum(reading.predicted != reading.otherwise)),
    }


def tally_scores(reading: Reading, predicted: NDArray[np.int32]) -> dict[str, Tally]:
    """Counts of the sequences that have labels, by the name of the score computed from them.

    The dict is empty if no label is known.
    """
    known = reading.known
    n_known = reading.by_sequence(known)
    has_label = n_known > 0
    if not has_label.any():
        return {}
    n_known = n_known[has_label]
    n_right = reading.by_sequence(known & (predicted == reading.truth))[has_label]
    tallies = {
        "Accuracy": tally_shares(n_right, n_known),
        "Sequences without an error": tally_shares(n_right == n_known, np.ones(len(n_right))),
    }
    if look_like_chunks(reading.labels):
        sides = keep_known(*_by_sequence(reading, predicted))
        true, guessed = (list(compress(side, has_label.tolist())) for side in sides)
        tallies["Chunk F1"] = ChunkMetric("f1").tally(true, guessed)
    return tallies


def score_all(tally: Tally) -> float:
    """The score of all sequences together."""
    return tally.measure(np.ones(tally.counts.shape[0]))


def _find_interval(tally: Tally) -> list[float] | None:
    """95 % confidence interval of a score by the bootstrap; None for a single sequence."""
    n_sequences = tally.counts.shape[0]
    if n_sequences < 2:
        return None
    found = resample([tally.measure], n_sequences)
    return [found.low, found.high]


def _by_sequence(
    reading: Reading, predicted: NDArray[np.int32]
) -> tuple[list[list[Any]], list[list[Any]]]:
    """True and predicted labels, one list per sequence; None for an unknown label."""
    assert reading.truth is not None
    names, bounds = np.array([*reading.labels, None], np.object_), reading.sequences.offsets[1:-1]

    def cut(codes: NDArray[np.int32]) -> list[list[Any]]:
        return [part.tolist() for part in np.split(names[codes], bounds)]

    return cut(reading.truth), cut(predicted)
