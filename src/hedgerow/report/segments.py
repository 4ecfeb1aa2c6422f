"""Segments: runs of one label, or chunks if labels mark them, and whether they were found."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.chunks import Chunk, find_chunks
from hedgerow.metrics.known_chunks import look_like_chunks
from hedgerow.report.blob import round_off
from hedgerow.report.reading import Reading

# Upper bounds of the bins of a histogram of lengths; the last bin has none.
LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)


# Labels that change almost everywhere, such as the letters of words, do not form segments.
MIN_MEAN_LENGTH = 1.2


def describe_segments(reading: Reading) -> dict[str, Any] | None:
    """Counts and lengths of true and predicted segments by label.

    None for tree-shaped graphs, if no label is known, and if labels change almost everywhere.
    """
    if reading.sequences.parents is not None or not reading.known.any():
        return None
    has_chunks = look_like_chunks(reading.labels)
    find = _find_chunks if has_chunks else _find_runs
    assert reading.truth is not None
    names, true = find(reading, reading.truth)
    if not has_chunks and (not len(true) or _lengths(true).mean() < MIN_MEAN_LENGTH):
        return None
    _, predicted = find(reading, np.where(reading.known, reading.predicted, -1))
    matched = set(map(tuple, true.tolist())) & set(map(tuple, predicted.tolist()))
    n_labels = len(names)
    n_matched = np.bincount([code for code, _, _ in matched], minlength=n_labels)
    used = max((int(_lengths(side).max()) for side in (true, predicted) if len(side)), default=1)
    bins = [*(edge for edge in LENGTHS if edge < used), used]
    return {
        "kind": "chunks" if has_chunks else "runs",
        "names": names,
        "matched": n_matched.tolist(),
        "bins": bins,
        "true": _summarise(true, n_labels, bins),
        "predicted": _summarise(predicted, n_labels, bins),
    }


def _lengths(segments: NDArray[np.int64]) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = segments[:, 2] - segments[:, 1]
    return lengths


def _summarise(segments: NDArray[np.int64], n_labels: int, bins: list[int]) -> dict[str, Any]:
    """For each label: count, mean and median of the lengths, and their histogram."""
    of_label = [_lengths(segments[segments[:, 0] == code]) for code in range(n_labels)]
    return {
        "count": [len(lengths) for lengths in of_label],
        "mean": round_off(np.mean(lengths) if len(lengths) else 0 for lengths in of_label),
        "median": round_off(np.median(lengths) if len(lengths) else 0 for lengths in of_label),
        "histogram": [
            np.bincount(np.searchsorted(bins, lengths), minlength=len(bins)).tolist()
            for lengths in of_label
        ],
    }


def _find_runs(reading: Reading, codes: NDArray[np.int32]) -> tuple[list[str], NDArray[np.int64]]:
    """Runs of one label, (n, 3): code, first position, position after the last."""
    begins = np.ones(len(codes), np.bool_)
    begins[1:] = codes[1:] != codes[:-1]
    begins[reading.sequences.offsets[:-1]] = True
    firsts = np.flatnonzero(begins)
    runs = np.stack([codes[firsts], firsts, np.append(firsts[1:], len(codes))], axis=1)
    return reading.labels, runs[runs[:, 0] >= 0].astype(np.int64)


def _find_chunks(reading: Reading, codes: NDArray[np.int32]) -> tuple[list[str], NDArray[np.int64]]:
    """Chunks, (n, 3): code of the type, first position, position after the last."""
    names = sorted({label.partition("-")[2] for label in reading.labels if label != "O"})
    texts = np.array([*reading.labels, "O"], np.object_)[codes].tolist()
    offsets = reading.sequences.offsets.tolist()
    found: list[Chunk] = []
    for begin, end in pairwise(offsets):
        chunks = sorted(find_chunks(texts[begin:end]), key=lambda chunk: chunk[1])
        found += [(kind, begin + first, begin + last + 1) for kind, first, last in chunks]
    code_of = {name: code for code, name in enumerate(names)}
    rows = [(code_of[kind], first, stop) for kind, first, stop in found]
    return names, np.array(rows, np.int64).reshape(-1, 3)
