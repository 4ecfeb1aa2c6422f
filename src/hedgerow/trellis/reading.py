"""Reading arrays in the format of the kernels."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.trellis.trellis import Scores

__all__ = ["KernelArrays", "kernel_arrays", "read_codes", "read_floats", "read_weights"]

Floats = NDArray[np.float64]
KernelArrays = tuple[Floats, Floats, NDArray[Any] | None, NDArray[np.int64]]


def kernel_arrays(scores: Scores, *, single_edges: bool = False) -> KernelArrays:
    """Nodes, arcs, edges and offsets; with ``single_edges``, float32 edges are not converted."""
    offsets = _whole_numbers(np.asarray(scores.offsets), np.dtype(np.int64))
    if offsets is None:
        raise ValueError(f"offsets are {scores.offsets}; expected whole numbers")
    edges = scores.edges
    if edges is not None:
        is_single = single_edges and np.asarray(edges).dtype == np.float32
        edges = np.ascontiguousarray(edges) if is_single else read_floats(edges)
    return read_floats(scores.nodes), read_floats(scores.arcs), edges, offsets


def read_floats(array: ArrayLike) -> NDArray[np.float64]:
    """Scores or probabilities."""
    return np.ascontiguousarray(array, dtype=np.float64)


def read_codes(labels: ArrayLike, n_labels: int) -> NDArray[np.int32]:
    """Label codes, (N,), in the format of the kernels: integers from 0 to ``n_labels - 1``."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ValueError(
            f"labels must have an entry for each position, (N,); they have shape {given.shape}"
        )
    codes = _whole_numbers(given, np.dtype(np.int32))
    if codes is None or (len(codes) and not 0 <= codes.min() <= codes.max() < n_labels):
        position, label = next(
            (position, label)
            for position, label in enumerate(given.tolist())
            if not (isinstance(label, Real) and label in range(n_labels))
        )
        raise ValueError(
            f"labels must be integers from 0 to n_labels - 1 = {n_labels - 1}; got {label!r} at "
            f"position {position}"
        )
    return codes


def read_weights(weights: ArrayLike) -> NDArray[np.float64]:
    """Weights in the format of the kernels."""
    numbers = np.ascontiguousarray(weights, dtype=np.float64)
    if not np.isfinite(numbers).all():
        where = np.flatnonzero(~np.isfinite(numbers))[0]
        raise ValueError(
            f"weight {where} is {numbers.ravel()[where]}; weights must be finite numbers"
        )
    return numbers


def _whole_numbers(given: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any] | None:
    """The same numbers as integers; None if they are not integers."""
    if given.dtype == kind:
        return np.ascontiguousarray(given)
    try:
        with np.errstate(invalid="ignore"):
            numbers = given.astype(kind)
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if np.array_equal(numbers, given) else None
