"""Fingerprints: digests that show whether data are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import ALONE, Comm

__all__ = ["fingerprint", "fingerprint_sequences"]

# Number of array elements that are digested at a time: copies are small, and Ctrl-C works.
BLOCK = 1 << 22


def fingerprint(*parts: Any) -> str:
    """A digest of arrays, text and numbers, and of dataclasses, lists and dicts of these."""
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def fingerprint_sequences(
    offsets: NDArray[np.int64],
    arrays: Iterable[NDArray[Any]],
    entries: tuple[NDArray[np.int64], Sequence[NDArray[Any]]] | None = None,
    comm: Comm = ALONE,
) -> str:
    """A digest of sequences, independent of their order and of the worker that has them.

    Parameters
    ----------
    offsets : (S + 1,)
        Sequence s holds the positions ``offsets[s]`` to ``offsets[s + 1]``.
    arrays : (N, ...)
        Values of the positions; equal numbers in single and double precision give the same digest.
    entries
        `indptr` and arrays of values, any number of them per position: position t has the elements
        ``indptr[t]`` to ``indptr[t + 1]``.
    comm
        Workers, each of which has its own sequences.
    """
    by_position = list(arrays)
    indptr, by_entry = (None, ()) if entries is None else entries
    total = np.zeros(4, np.uint64)
    for begin, end in pairwise(offsets.tolist()):
        digest = hashlib.sha256(str(end - begin).encode())
        for array in by_position:
            _feed_array(digest, _in_double_precision(array[begin:end]))
        if indptr is not None:
            _feed_array(digest, np.diff(indptr[begin : end + 1]))
            for array in by_entry:
                _feed_array(digest, array[indptr[begin] : indptr[end]])
        total += np.frombuffer(digest.digest(), np.uint64)  # modulo 2^64
    return comm.sum(total.view(np.int64)).tobytes().hex()


def _in_double_precision(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _feed(digest: hashlib._Hash, part: Any) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"array {part.dtype.str} {part.shape} ".encode())
        _feed_array(digest, part)
    elif isinstance(part, _core.StringIndex):
        _feed(digest, part.to_arrays())
    elif is_dataclass(part):
        # What is not compared, such as names of sequences, does not affect training.
        _feed(digest, [getattr(part, field.name) for field in fields(part) if field.compare])
    elif isinstance(part, Mapping):
        _feed(digest, list(part.items()))
    elif isinstance(part, (list, tuple)):
        digest.update(f"{len(part)} parts ".encode())
        for item in part:
            _feed(digest, item)
    else:
        assert part is None or isinstance(part, (bool, int, float, str))
        text = repr(part).encode()
        digest.update(f"text {len(text)} ".encode() + text)


def _feed_array(digest: hashlib._Hash, array: NDArray[Any]) -> None:
    """Feed the numbers in the order of their indices, whatever the memory layout."""
    rows = array if array.ndim else array[None]
    step = max(1, BLOCK * len(rows) // max(1, rows.size))
    for first in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[first : first + step])
        digest.update(block.reshape(-1).view(np.uint8).data)
