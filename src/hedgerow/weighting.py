"""Weighting: weights of sequences and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.counting import count_of
from hedgerow.labels import Labels
from hedgerow.parameters import check_number
from hedgerow.sequences import Sequences

# Larger weights would exceed the single precision of trees.
LARGEST = 1e12


@dataclass(frozen=True, eq=False)
class SampleWeight:
    """Weights of the S sequences or of the N positions; both are None if there are no weights.

    Attributes
    ----------
    by_sequence : (S,) or None
        Weight of each sequence.
    by_position : (N,) or None
        Weight of each position, if positions differ within a sequence; `by_sequence` is None then.
    """

    by_sequence: NDArray[np.float64] | None = None
    by_position: NDArray[np.float64] | None = None

    def of_positions(self, sequences: Sequences) -> NDArray[np.float64] | None:
        """Weight of each position, (N,), in either case."""
        if self.by_sequence is None:
            return self.by_position
        return np.repeat(self.by_sequence, sequences.lengths)


def read_sample_weight(
    sample_weight: ArrayLike | None, sequences: Sequences, comm: Comm = ALONE
) -> SampleWeight:
    """Check the weights of sequences, (S,), or of the rows of a flat X, (N,).

    If, on any worker, rows of one sequence have different weights, all workers get weights by
    position.
    """
    if sample_weight is None:
        return SampleWeight()
    ways = "one weight for each sequence" + ", or one for each row" * sequences.flat
    weights = _to_numbers(sample_weight, ways)
    of_rows = sequences.flat and weights.shape == (sequences.n_positions,)
    if not of_rows and weights.shape != (sequences.n_sequences,):
        sizes = count_of(sequences.n_sequences, "sequence")
        sizes += f" and {count_of(sequences.n_positions, 'row')}" * sequences.flat
        raise ValueError(f"sample_weight has shape {weights.shape} but X has {sizes}; pass {ways}")
    _check_weights(weights)
    by_sequence = weights[sequences.offsets[:-1]] if of_rows else weights
    differ = of_rows and bool(np.any(np.repeat(by_sequence, sequences.lengths) != weights))
    largest, differ_anywhere = comm.max(np.array([weights.max(initial=0.0), float(differ)]))
    if not largest:
        of = "row" if of_rows else "sequence"
        raise ValueError(f"sample_weight is zero for every {of}; at least one must be positive")
    if not differ_anywhere:
        return SampleWeight(by_sequence=by_sequence)
    rows = weights if of_rows else np.repeat(weights, sequences.lengths)
    return SampleWeight(by_position=rows)


def _to_numbers(sample_weight: ArrayLike, expected: str) -> NDArray[np.float64]:
    try:
        weights = np.asarray(sample_weight)
        if weights.dtype.kind == "c":
            raise ValueError("its values are complex")
        if np.ma.is_masked(sample_weight):
            raise ValueError("some of its values are masked")
        return weights.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight is not an array of numbers: {error}; pass {expected}"
        ) from None


def _check_weights(weights: NDArray[np.float64]) -> None:
    bad = ~((weights >= 0) & (weights <= LARGEST))
    if bad.any():
        place = int(bad.argmax())
        raise ValueError(
            f"sample_weight[{place}] is {weights[place]}; weights must be finite and not negative, "
            f"and at most {LARGEST:g}"
        )


def class_weights(
    class_weight: Mapping[Any, float] | str, labels: Labels, counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Weight of each label, (K,).

    Parameters
    ----------
    class_weight
        Weights by label, 1 for those left out; or "balanced": N / (n * count of the label), with N
        training positions and n labels that occur.
    labels, counts
        The labels, and how many training positions have each, (K,).
    """
    classes = labels.classes.tolist()
    if isinstance(class_weight, str):
        balanced: NDArray[np.float64] = counts.sum() / (
            np.count_nonzero(counts) * counts.clip(min=1)
        )
        return balanced
    for label, weight in class_weight.items():
        if label not in classes:
            raise ValueError(
                f"class_weight has the label {label!r}, which does not occur in y; the labels of "
                f"y are {', '.join(map(repr, classes[:10]))}{', ...' if len(classes) > 10 else ''}"
            )
        check_number(f"class_weight[{label!r}]", weight, minimum=0)
        if weight > LARGEST:
            raise ValueError(f"class_weight[{label!r}] is {weight!r}; expected at most {LARGEST:g}")
    return np.array([class_weight.get(label, 1.0) for label in classes], dtype=np.float64)
