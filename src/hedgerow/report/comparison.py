"""Comparison: two models on the same data, where they differ, and whether it is significant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.counting import count_of
from hedgerow.report.blob import as_number
from hedgerow.report.quality import measure_likelihood, score_all, tally_scores
from hedgerow.report.reading import Reading
from hedgerow.sequences import Sequences
from hedgerow.stats import mcnemar
from hedgerow.stats.sequence_bootstrap import resample


def check_same(sequences: Sequences, other: Sequences) -> None:
    """Raise ValueError if two models divide the data into different sequences."""
    if not np.array_equal(sequences.offsets, other.offsets):
        raise ValueError(
            f"the two models read different sequences: {_describe_size(sequences)}, and "
            f"{_describe_size(other)}; they need the same group column, or, in Python, X and "
            "X_compare with the same sequences in the same order"
        )


def recode(reading: Reading, other: Reading) -> tuple[Reading, NDArray[np.int32]]:
    """The reading of a model, and the predictions of another model as its codes, (N,).

    Labels that only the other model has are added to the reading.
    """
    labels = list(reading.labels)
    labels += [label for label in other.labels if label not in set(labels)]
    code_of = {label: code for code, label in enumerate(labels)}
    codes = np.array([code_of[label] for label in other.labels], np.int32)
    return replace(reading, labels=labels), codes[other.predicted]


def _describe_size(sequences: Sequences) -> str:
    positions = count_of(sequences.n_positions, "position")
    return f"{positions} of {count_of(sequences.n_sequences, 'sequence')}"


def compare(
    reading: Reading, other: Reading, predicted: NDArray[np.int32], names: tuple[str, str]
) -> dict[str, Any]:
    """Scores of both models, their differences, and which model is correct where.

    ``predicted`` (N,) are the predictions of the other model, see `recode`.
    """
    described: dict[str, Any] = {
        "names": names,
        "n_differ": int(np.sum(reading.predicted != predicted)),
    }
    known = reading.known
    if not known.any():
        return described
    right_a, right_b = (
        known & (codes == reading.truth) for codes in (reading.predicted, predicted)
    )
    has_label = reading.by_sequence(known) > 0
    whole_a, whole_b = (
        (reading.by_sequence(known & ~right) == 0)[has_label] for right in (right_a, right_b)
    )
    likelihoods = [measure_likelihood(one) for one in (reading, other)]
    scores = _compare_scores(reading, predicted)
    scores.append(
        {"name": "Log-likelihood per position", "values": list(map(as_number, likelihoods))}
    )
    return described | {
        "scores": scores,
        "positions": _count_cells(right_a[known], right_b[known]),
        "sequences": _count_cells(whole_a, whole_b),
        "p_value": mcnemar(whole_a, whole_b).p_value,
        "labels": _errors_by_label(reading, right_a, right_b),
    }


def _compare_scores(reading: Reading, predicted: NDArray[np.int32]) -> list[dict[str, Any]]:
    """For each score: both values, the difference, its 95 % interval and p-value."""
    sides = [tally_scores(reading, codes) for codes in (reading.predicted, predicted)]
    scores: list[dict[str, Any]] = []
    for name, first in sides[0].items():
        pair = [first, sides[1][name]]
        score: dict[str, Any] = {"name": name, "values": [score_all(tally) for tally in pair]}
        n_sequences = first.counts.shape[0]
        if n_sequences > 1:
            found = resample([tally.measure for tally in pair], n_sequences)
            score |= {"interval": [found.low, found.high], "p_value": found.p_value}
        scores.append(score)
    return scores


def _count_cells(right_a: NDArray[np.bool_], right_b: NDArray[np.bool_]) -> dict[str, int]:
    return {
        "both": int(np.sum(right_a & right_b)),
        "only_a": int(np.sum(right_a & ~right_b)),
        "only_b": int(np.sum(right_b & ~right_a)),
        "neither": int(np.sum(~right_a & ~right_b)),
    }


def _errors_by_label(
    reading: Reading, right_a: NDArray[np.bool_], right_b: NDArray[np.bool_]
) -> dict[str, list[int]]:
    """For each true label: the number of positions, and which model is correct there."""
    known, n_labels = reading.known, len(reading.labels)

    def count(chosen: NDArray[np.bool_]) -> list[int]:
        assert reading.truth is not None
        counts: list[int] = np.bincount(reading.truth[chosen], minlength=n_labels).tolist()
        return counts

    return {
        "total": count(known),
        "only_a": count(right_a & ~right_b),
        "only_b": count(right_b & ~right_a),
        "neither": count(known & ~right_a & ~right_b),
    }
