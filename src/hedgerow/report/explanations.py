"""Explanations: why positions have their labels, for the positions of most interest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.estimator import Estimator
from hedgerow.explain import Contributions
from hedgerow.model import Inputs
from hedgerow.report.blob import Blob, round_off
from hedgerow.report.reading import Reading
from hedgerow.threads import count_threads

# Maximum number of positions that are explained, and of features in each explanation.
MAX_POSITIONS = 1000
MAX_FEATURES = 8


def pack_explanations(
    model: Estimator,
    reading: Reading,
    positions: NDArray[np.int64],
    blob: Blob,
    notes: list[str],
) -> dict[str, Any]:
    """Explain errors first, then the least certain labels, among the positions of the page.

    Returns their indices in `positions`, (n,), and for each a list of the two labels, their
    log-odds, the bias, the main features, the number of other features and their sum, and the
    transitions.
    """
    places, rivals = _choose(reading, positions)
    if len(places) < len(positions):
        notes.append(
            f"Explanations are included for {len(places):,} of {len(positions):,} positions: "
            "errors first, then the least certain labels."
        )
    found = _explain(model, reading, positions[places], rivals)
    return {"places": blob.add(places.astype(np.uint32)), "found": blob.add_text(found)}


def _choose(
    reading: Reading, positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Positions to explain, as ascending indices, and the label to compare with.

    This is the true label where the predicted one is wrong and the true one is possible, otherwise
    the most probable label other than the predicted one.
    """
    labels, probs = reading.top_labels[positions], reading.top_probs[positions]
    predicted, wrong = reading.predicted[positions], reading.wrong[positions]
    if labels.shape[1] < 2:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    is_other = labels != predicted[:, None]
    first_other = is_other.argmax(axis=1)[:, None]
    rivals = np.take_along_axis(labels, first_other, axis=1)[:, 0]
    possible = np.take_along_axis(probs, first_other, axis=1)[:, 0] > 0
    possible &= reading.predicted_probs[positions] > 0
    certainty = probs[:, 0].astype(np.float64)
    if reading.truth is not None and reading.truth_probs is not None:
        true_probs = np.nan_to_num(reading.truth_probs[positions])
        has_odds = wrong & (true_probs > 0)
        rivals = np.where(has_odds, reading.truth[positions], rivals)
        certainty = np.where(wrong, true_probs - 1, certainty)
    order = np.argsort(np.where(possible, certainty, np.inf), kind="stable")
    kept = np.sort(order[: min(MAX_POSITIONS, int(possible.sum()))])
    return kept, rivals[kept]


def _explain(
    model: Estimator,
    reading: Reading,
    positions: NDArray[np.int64],
    rivals: NDArray[np.int32],
) -> list[Any]:
    """Explanations of some positions, ascending."""
    sequences = reading.sequences
    owners = np.searchsorted(sequences.offsets, positions, side="right") - 1
    is_used = np.zeros(sequences.n_sequences, np.bool_)
    is_used[owners] = True
    used = np.flatnonzero(np.repeat(is_used, sequences.lengths))
    offsets = np.concatenate([[0], np.cumsum(sequences.lengths[is_used])])
    codes = np.stack([reading.predicted[positions], rivals], axis=1).tolist()
    pairs = {
        place: (label, against)
        for place, (label, against) in zip(
            np.searchsorted(used, positions).tolist(), codes, strict=True
        )
    }
    found = model.model_.contributions(
        Inputs(sequences.select(used, offsets)),
        pairs,
        reading.predicted[used],
        n_threads=count_threads(model.n_jobs),
    )
    return [
        [*pair, *_describe(parts, reading.log_odds(position, *pair))]
        for position, pair, parts in zip(positions.tolist(), pairs.values(), found, strict=True)
    ]


def _describe(parts: Contributions, log_odds: float) -> list[Any]:
    """An explanation as lists; features are sorted by the size of their contributions."""
    features, transitions = parts.features, parts.transitions
    sizes = features["contribution"]
    order = np.argsort(-np.abs(sizes), kind="stable")
    kept, others = order[:MAX_FEATURES], order[MAX_FEATURES:]
    return [
        *round_off([log_odds, parts.bias]),
        [
            [
                str(features["feature"][i]),
                int(features["offset"][i]),
                _show(features["value"][i]),
                *round_off([sizes[i]]),
            ]
            for i in kept.tolist()
        ],
        len(others),
        *round_off([sizes[others].sum()]),
        [
            [int(offset), list(map(str, labels)), *round_off([size])]
            for offset, labels, size in zip(
                transitions["offset"],
                transitions["labels"],
                transitions["contribution"],
                strict=True,
            )
        ],
    ]


def _show(value: Any) -> str | None:
    """A value as text; None if it is missing, or outside the sequence."""
    if value is None:
        return None
    return f"{value:.6g}" if isinstance(value, float) else str(value)
