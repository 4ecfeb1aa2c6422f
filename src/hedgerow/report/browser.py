"""The browser: sequences, position by position, in as few bytes as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.estimator import Estimator
from hedgerow.report.blob import Blob, smallest
from hedgerow.report.derived import JOINTS, Plan, Texts, exceptions, plan_columns
from hedgerow.report.explanations import pack_explanations
from hedgerow.report.features import PARENTS, Features, NumberColumn, TextColumn
from hedgerow.report.reading import Reading

# Maximum number of bytes, before compression, for positions and their features.
BUDGET = 16_000_000
# Number of positions from which the size of a numeric column is estimated.
SAMPLE = 10_000
# A column is shown as the text of positions if it has this many texts, or one of these names.
MIN_TEXTS = 12
TEXT_NAMES = ("word", "token", "text", "form", "w", "w[0]", "word[0]", "w0", "0:word")


@dataclass(frozen=True, eq=False)
class Choice:
    """The positions that are included in the page.

    Attributes
    ----------
    sequences : (s,) int64
        Numbers of their sequences, ascending.
    positions : (n,) int64
        Numbers of the positions themselves, ascending.
    offsets : (s + 1,) int64
        Where each sequence begins and ends among them.
    """

    sequences: NDArray[np.int64]
    positions: NDArray[np.int64]
    offsets: NDArray[np.int64]


def pack_browser(
    model: Estimator,
    reading: Reading,
    features: Features,
    notes: list[str],
    *,
    names: Sequence[str] | None = None,
    compared: NDArray[np.int32] | None = None,
) -> tuple[dict[str, Any], list[Blob]]:
    """Sequences for the page.

    If there are too many, only the worst are packed, and `notes` says so.

    ``names`` are the names of the sequences, if any; ``compared`` (N,) are the labels that another
    model predicts.
    """
    texts = Texts()
    plans = plan_columns(_headline_first(features.texts), reading.sequences.offsets, texts)
    choice = _choose(reading, _bytes_per_position(reading, features, plans))
    _note_what_is_left_out(reading, features, choice, notes)
    positions, values, reasons = Blob("positions"), Blob("features"), Blob("explanations")
    data = _pack_positions(reading, choice, compared, positions)
    if names is not None:
        data["names"] = [str(names[s]) for s in choice.sequences.tolist()]
    data["features"] = _pack_features(features, plans, choice, texts, values)
    data["explanations"] = pack_explanations(model, reading, choice.positions, reasons, notes)
    return data, [positions, values, reasons]


def _choose(reading: Reading, bytes_per_position: float) -> Choice:
    """As many of the worst sequences as the budget allows; if none fits, a part of the worst."""
    offsets, lengths = reading.sequences.offsets, reading.sequences.lengths
    most = max(1, int(BUDGET / bytes_per_position))
    worst_first = np.argsort(reading.scores, kind="stable")
    fits = np.cumsum(lengths[worst_first]) <= most
    chosen = np.sort(worst_first[fits] if fits.any() else worst_first[:1])
    kept = np.minimum(lengths[chosen], most)
    begins = np.concatenate([[0], np.cumsum(kept)])
    places = np.arange(begins[-1]) + np.repeat(offsets[chosen] - begins[:-1], kept)
    return Choice(chosen, places, begins)


def _bytes_per_position(reading: Reading, features: Features, plans: list[Plan]) -> float:
    n_bytes = 6.0 + 2 * reading.top_labels.shape[1]
    n_bytes += sum(0.5 if plan.sources else 3 for plan in plans)
    n_bytes += sum(_narrow(column.values[:SAMPLE]).itemsize for column in features.numbers)
    if features.loose is not None:
        size = 4 if features.loose.values is None else 8
        n_bytes += size * len(features.loose.indices) / max(1, reading.sequences.n_positions)
    return float(n_bytes)


def _note_what_is_left_out(
    reading: Reading, features: Features, choice: Choice, notes: list[str]
) -> None:
    n_all, n_kept = reading.sequences.n_sequences, len(choice.sequences)
    if n_kept < n_all:
        worst = "worst" if n_kept == 1 else f"{n_kept:,} worst"
        notes.append(f"The section Sequences contains the {worst} of {n_all:,} sequences.")
    n_positions = int(reading.sequences.lengths[choice.sequences].sum())
    if len(choice.positions) < n_positions:
        notes.append(
            f"The section Sequences contains the first {len(choice.positions):,} of "
            f"{n_positions:,} positions of sequence {int(choice.sequences[0])}."
        )
    if features.n_left_out:
        n_columns = features.n_left_out + len(features.numbers)
        notes.append(
            f"The section Sequences shows {len(features.numbers)} of {n_columns:,} columns of "
            "numbers, those that change most often from position to position."
        )


def _pack_positions(
    reading: Reading, choice: Choice, compared: NDArray[np.int32] | None, blob: Blob
) -> dict[str, Any]:
    at, n_labels = choice.positions, len(reading.labels)

    def labels(codes: NDArray[np.int32]) -> dict[str, Any]:
        # An unknown label has the number after all labels.
        return blob.add(smallest(np.where(codes < 0, n_labels, codes), n_labels))

    tops = zip(reading.top_labels[at].T, reading.top_probs[at].T, strict=True)
    data = {
        "total": reading.sequences.n_sequences,
        "lengths": blob.add(np.diff(choice.offsets).astype(np.uint32)),
        "numbers": blob.add(choice.sequences.astype(np.uint32)),
        "scores": blob.add(reading.scores[choice.sequences]),
        "predicted": labels(reading.predicted[at]),
        "otherwise": labels(reading.otherwise[at]),
        "tops": [[labels(codes), blob.add(_to_bytes(probs))] for codes, probs in tops],
    }
    if compared is not None:
        data["compared"] = labels(compared[at])
    if reading.truth is not None and reading.truth_probs is not None:
        data["truth"] = labels(reading.truth[at])
        data["truth_probs"] = blob.add(_to_bytes(np.nan_to_num(reading.truth_probs[at])))
    return data


def _to_bytes(probs: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Probabilities in 255 steps."""
    return np.rint(probs * 255).astype(np.uint8)


def _pack_features(
    features: Features, plans: list[Plan], choice: Choice, texts: Texts, blob: Blob
) -> dict[str, Any]:
    chosen = [_part_of(plan, choice) for plan in plans]
    left_over = [
        np.flatnonzero(exceptions(plan, chosen, choice.offsets, texts)) if plan.sources else None
        for plan in chosen
    ]
    used = [
        plan.codes if left is None else plan.codes[left]
        for plan, left in zip(chosen, left_over, strict=True)
    ]
    numbers = np.unique(np.concatenate([np.zeros(1, np.int64), *used]))
    strings = ["", *texts.numbers]
    columns = [
        _pack_text(plan, left, codes, numbers, blob)
        for plan, left, codes in zip(chosen, left_over, used, strict=True)
    ]
    columns += [_pack_numbers(column, choice, blob) for column in features.numbers]
    return {
        "columns": columns,
        "texts": blob.add_text([strings[number] for number in numbers.tolist()]),
        "headline": 0 if plans and _is_headline(plans[0].column) else None,
        "loose": _pack_loose(features, choice, blob),
    }


def _part_of(plan: Plan, choice: Choice) -> Plan:
    at = choice.positions
    return replace(
        plan, column=replace(plan.column, codes=plan.column.codes[at]), codes=plan.codes[at]
    )


def _pack_text(
    plan: Plan,
    left_over: NDArray[np.int64] | None,
    codes: NDArray[np.int64],
    numbers: NDArray[np.int64],
    blob: Blob,
) -> dict[str, Any]:
    """A column of texts; for a derived column, only what its sources do not determine."""
    places = smallest(np.searchsorted(numbers, codes), len(numbers) - 1)
    packed: dict[str, Any] = {"name": plan.column.name, "codes": blob.add(places)}
    if left_over is not None:
        packed["sources"] = [[source.column, source.shift] for source in plan.sources]
        packed["joint"] = plan.joint
        # Differences between consecutive numbers are small, and compress well.
        packed["steps"] = blob.add(np.diff(left_over, prepend=0).astype(np.uint32))
    return packed


def _pack_numbers(column: NumberColumn, choice: Choice, blob: Blob) -> dict[str, Any]:
    return {"name": column.name, "values": blob.add(_narrow(column.values[choice.positions]))}


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Integers in the smallest dtype that represents them, other numbers in single precision."""
    with np.errstate(over="ignore"):  # values beyond the range of float32 are shown as infinity
        single = values.astype(np.float32)
    if not np.isfinite(single).all() or (values != np.rint(values)).any():
        return single
    low, high = values.min(initial=0), values.max(initial=0)
    for dtype in (np.uint8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return values.astype(dtype)
    return single


def _pack_loose(features: Features, choice: Choice, blob: Blob) -> dict[str, Any] | None:
    rows, names = features.loose, features.loose_names
    if rows is None or names is None:
        return None
    kept = np.zeros(len(rows.indptr) - 1, np.bool_)
    kept[choice.positions] = True
    counts = np.diff(rows.indptr)
    entries = np.repeat(kept, counts)
    used, places = np.unique(rows.indices[entries], return_inverse=True)
    packed = {
        "counts": blob.add(smallest(counts[kept], int(counts.max(initial=0)))),
        "codes": blob.add(smallest(places, len(used))),
        "names": blob.add_text([names[number] for number in used.tolist()]),
    }
    if rows.values is not None:
        packed["values"] = blob.add(_narrow(rows.values[entries]))
    return packed


def _headline_first(columns: list[TextColumn]) -> list[TextColumn]:
    """Put first the column that reads like the text of a sequence, by its name or its texts."""
    if not columns:
        return []
    by_name = {column.name.lower(): column for column in columns}
    first = next((by_name[name] for name in TEXT_NAMES if name in by_name), None)
    own = [column for column in columns if column.name != PARENTS]
    first = first or _middle_of_richest(own or columns)
    return [first, *(column for column in columns if column is not first)]


def _is_headline(column: TextColumn) -> bool:
    """Whether a column is informative enough to represent a position."""
    if column.name == PARENTS:
        return False
    return column.name.lower() in TEXT_NAMES or len(column.texts) >= MIN_TEXTS


def _middle_of_richest(columns: list[TextColumn]) -> TextColumn:
    """The column with the most distinct texts among those that are not joined from others.

    The columns of a window have about the same number of texts: the middle one is chosen.
    """
    plain = [column for column in columns if not _is_joined(column)] or columns
    most = max(len(column.texts) for column in plain)
    rich = [column for column in plain if len(column.texts) >= 0.9 * most]
    return rich[(len(rich) - 1) // 2]


def _is_joined(column: TextColumn) -> bool:
    n_texts = len(column.texts)
    return any(2 * sum(joint in text for text in column.texts) > n_texts for joint in JOINTS)
