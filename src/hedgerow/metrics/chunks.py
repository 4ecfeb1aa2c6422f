"""Chunk scores: precision, recall and F1 of whole chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hedgerow.metrics.pairs import pair_sequences
from hedgerow.metrics.scores import Scores

Chunk = tuple[str, int, int]
"""Type, first and last position."""


@dataclass(frozen=True)
class ChunkScores(Scores):
    """Precision, recall and F1 of chunks, 0 to 1."""

    by_type: dict[str, Scores]
    """Precision, recall and F1 of each chunk type."""


@dataclass(frozen=True)
class StrictScheme:
    """Which prefixes begin a chunk, which continue it, and which end it.

    If no prefix ends a chunk, it ends with the last label that continues it.
    """

    opening: str
    continuing: str
    closing: str


STRICT_SCHEMES = {
    "IOB2": StrictScheme("B", "I", ""),
    "IOE2": StrictScheme("IE", "IE", "E"),
    "IOBES": StrictScheme("BS", "IE", "ES"),
    "BILOU": StrictScheme("BU", "IL", "LU"),
}
# Labels without a type.
UNTYPED = frozenset("OBILESU")
ALIASES = {"BIO": "IOB2", "BIOES": "IOBES"}


def chunk_scores(
    y_true: Iterable[Sequence[str]], y_pred: Iterable[Sequence[str]], scheme: str | None = None
) -> ChunkScores:
    """Compare chunks as the CoNLL evaluation script does, or strictly by a scheme.

    Labels are ``O``, or a prefix (B, I, L, E, S, U), alone or with a hyphen and a type. A predicted
    chunk is correct if a true chunk has the same type, beginning and end.

    Parameters
    ----------
    y_true, y_pred
        Labels of each sequence.
    scheme
        None reads labels leniently, as the CoNLL evaluation script does: both IOB1 and IOB2 are
        understood, and an ``I-`` after another type begins a chunk. "IOB2" (or "BIO"), "IOE2",
        "IOBES" (or "BIOES") or "BILOU" counts only chunks that follow this scheme, as the strict
        mode of seqeval does: an ``I-`` without a beginning is ignored.

    Examples
    --------
    >>> from hedgerow.metrics import chunk_scores
    >>> chunk_scores([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-VP"]]).f1
    0.6666666666666666
    >>> chunk_scores([["B-NP", "I-NP"]], [["I-NP", "I-NP"]]).n_predicted
    1
    >>> chunk_scores([["B-NP", "I-NP"]], [["I-NP", "I-NP"]], scheme="IOB2").n_predicted
    0
    """
    find = _choose_reader(scheme)
    counts: dict[str, list[int]] = {}
    for true, predicted in pair_sequences(y_true, y_pred):
        true_chunks, predicted_chunks = find(true), find(predicted)
        for place, chunks in enumerate(
            (true_chunks, predicted_chunks, true_chunks & predicted_chunks)
        ):
            for kind, _, _ in chunks:
                counts.setdefault(kind, [0, 0, 0])[place] += 1
    by_type = {kind: Scores.from_counts(*counts[kind]) for kind in sorted(counts)}
    totals = [sum(column) for column in zip(*counts.values(), strict=True)] or [0, 0, 0]
    return ChunkScores(**vars(Scores.from_counts(*totals)), by_type=by_type)


def count_chunks(
    y_true: Iterable[Sequence[str]], y_pred: Iterable[Sequence[str]], scheme: str | None = None
) -> list[tuple[int, int, int]]:
    """Numbers of true, predicted and correct chunks of each sequence, see `chunk_scores`."""
    find = _choose_reader(scheme)
    found = ((find(true), find(predicted)) for true, predicted in pair_sequences(y_true, y_pred))
    return [(len(true), len(predicted), len(true & predicted)) for true, predicted in found]


def _choose_reader(scheme: str | None) -> Callable[[Sequence[str]], set[Chunk]]:
    if scheme is None:
        return find_chunks
    name = ALIASES.get(scheme, scheme)
    if name not in STRICT_SCHEMES:
        expected = ", ".join(repr(known) for known in STRICT_SCHEMES)
        raise ValueError(f"scheme is {scheme!r}; expected one of {expected}, or leave it out")
    return lambda labels: _find_strictly(labels, name)


def find_chunks(labels: Sequence[str]) -> set[Chunk]:
    """All chunks of a labelling, which may violate its scheme."""
    for label in set(labels):
        if "-" not in str(label) and str(label) not in UNTYPED:
            raise ValueError(
                f"label {label!r} does not mark chunks; expected 'O', or a prefix such as B or I, "
                "alone or with a hyphen and a type, as in 'B-NP'; for other labels use label_scores"
            )
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


def _find_strictly(labels: Sequence[str], name: str) -> set[Chunk]:
    """All chunks that follow a scheme; labels that violate it are in no chunk."""
    scheme = STRICT_SCHEMES[name]
    prefixes = {"O", *scheme.opening, *scheme.continuing}
    chunks = set()
    start, kind_before = -1, ""  # Start is -1 outside of chunks.
    for t, label in enumerate([*labels, "O"]):
        prefix, _, kind = str(label).partition("-")
        if prefix not in prefixes:
            raise ValueError(
                f"label {label!r} does not fit scheme {name!r}; expected 'O', or one of "
                f"{', '.join(sorted(prefixes - {'O'}))}, alone or with a hyphen and a type, as in "
                f"'{scheme.opening[0]}-NP'; choose another scheme, or leave scheme out"
            )
        if start >= 0 and not (prefix in scheme.continuing and kind == kind_before):
            if not scheme.closing:
                chunks.add((kind_before, start, t - 1))
            start = -1
        if start < 0 and prefix in scheme.opening:
            start = t
        if start >= 0 and prefix in scheme.closing:
            chunks.add((kind, start, t))
            start = -1
        kind_before = kind
    return chunks
