"""Weighting: how much sequences and labels count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.labels import Labels
from hedgerow.parameters import check_number
from hedgerow.sequences import Sequences

# Beyond this weights no longer fit the single precision of trees.
LARGEST = 1e12


def read_sample_weight(
    sample_weight: ArrayLike | None, sequences: Sequences
) -> NDArray[np.float64] | None:
    """Check the weights of sequences, (S,); None stays None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (sequences.n_sequences,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} but X has {sequences.n_sequences} "
            "sequences; pass one weight for each sequence"
        )
    bad = ~((weights >= 0) & (weights <= LARGEST))
    if bad.any():
        place = int(bad.argmax())
        raise ValueError(
            f"sample_weight[{place}] is {weights[place]}; weights must be finite and not negative, "
            f"and at most {LARGEST:g}"
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every sequence; at least one must count")
    return weights


def class_weights(
    class_weight: Mapping[Any, float] | str, labels: Labels, codes: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Weight of each label, (K,).

    Parameters
    ----------
    class_weight
        Weights by label, 1 for those left out; or "balanced": N / (n * count of
        the label), n being the number of labels that occur.
    labels, codes
        The labels, and those of the training positions (N,).
    """
    classes = labels.classes.tolist()
    if isinstance(class_weight, str):
        counts = np.bincount(codes, minlength=len(classes))
        return len(codes) / (np.count_nonzero(counts) * counts.clip(min=1))
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight is of type {type(class_weight).__name__}; expected a dict of weights by "
            "label, 'balanced' or None"
        )
    for label, weight in class_weight.items():
        if label not in classes:
            raise ValueError(
                f"class_weight has the label {label!r}, which does not occur in y; its labels are "
                f"{', '.join(map(repr, classes[:10]))}{', ...' if len(classes) > 10 else ''}"
            )
        check_number(f"class_weight[{label!r}]", weight, minimum=0)
        if weight > LARGEST:
            raise ValueError(f"class_weight[{label!r}] is {weight!r}; expected at most {LARGEST:g}")
    return np.array([class_weight.get(label, 1.0) for label in classes], dtype=np.float64)
