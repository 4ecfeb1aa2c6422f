"""Contributions: what each attribute adds to a score, its value times its weight."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.linear.weights import LinearWeights
from hedgerow.sequences import SparseRows
from hedgerow.tables import Table

__all__ = ["weight_contributions"]


def weight_contributions(
    weights: LinearWeights, names: list[str], row: SparseRows, signs: NDArray[np.int64]
) -> tuple[float, Table]:
    """What attributes add to a sum of label scores at one position: `Potential.contributions`.

    ``row`` holds the attributes of the position, ``names`` the names of all attributes, ``signs``
    (K,) the factor of each label's score. Returns the sum of the labels' bias weights times these
    factors, and a table of the attributes, whose offsets are all 0.
    """
    attributes, inverse = np.unique(row.indices, return_inverse=True)
    values = np.bincount(inverse, row.values, minlength=len(attributes)).astype(np.float64)
    layout = weights.layout.labels
    firsts = layout.offsets[attributes]
    counts = layout.offsets[attributes + 1] - firsts
    ends = np.cumsum(counts)
    places = np.arange(counts.sum()) + np.repeat(firsts - (ends - counts), counts)
    owners = np.repeat(np.arange(len(attributes)), counts)
    parts = values[owners] * weights.attributes[places] * signs[layout.outputs[places]]
    return float(np.einsum("k,k", signs, weights.biases)), Table(
        {
            "feature": np.fromiter((names[a] for a in attributes), np.object_, len(attributes)),
            "offset": np.zeros(len(attributes), np.int64),
            "value": values.astype(np.object_),
            "contribution": np.bincount(owners, parts, minlength=len(attributes)),
        }
    )
