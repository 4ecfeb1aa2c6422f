"""Identities of sequences: numbers that draws depend on, whatever the order of the sequences.

A sequence that has a name, such as the group of its rows, is known by it; others are known by what
they hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.comm import ALONE, Comm
from hedgerow.sequences import Sequences

__all__ = ["draw_uniforms", "identify_positions", "identify_sequences"]

Identities = NDArray[np.uint64]


def identify_sequences(
    sequences: Sequences, *more: NDArray[Any] | None, comm: Comm = ALONE
) -> Identities:
    """A number for each sequence, (S,).

    ``more`` are arrays that belong to it: (N, ...) by position, or (S,) by sequence. Sequences of
    any worker that hold the same have different numbers; which has which does not matter.
    """
    own = np.fromiter(_digest(sequences, more), np.uint64, sequences.n_sequences)
    parts = comm.gather(own)
    found = np.concatenate(parts)
    order = np.argsort(found, kind="stable")
    ordered = found[order]
    is_new = np.append(True, ordered[1:] != ordered[:-1])[: len(order)]
    firsts = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    numbers = (np.arange(len(order)) - firsts).astype(np.uint64)
    found[order] = _mix(ordered + numbers)
    first = sum(map(len, parts[: comm.rank]))
    return found[first : first + len(own)]


def identify_positions(identities: Identities, offsets: NDArray[np.int64]) -> Identities:
    """A number for each position, (N,), from those of the sequences."""
    lengths = np.diff(offsets)
    places = np.arange(offsets[-1], dtype=np.uint64) - np.repeat(offsets[:-1], lengths).astype(
        np.uint64
    )
    return _mix(_mix(np.repeat(identities, lengths)) ^ places)


def draw_uniforms(identities: Identities, key: int) -> NDArray[np.float64]:
    """A random number of each identity under a key, uniform in [0, 1)."""
    bits = _mix(_mix(np.array(key, np.uint64)) ^ identities)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _digest(sequences: Sequences, more: tuple[NDArray[Any] | None, ...]) -> Iterator[int]:
    """Digests of 64 bits, one per sequence."""
    if sequences.ids is not None:
        for name in sequences.ids:
            yield _to_number(hashlib.blake2b(repr(name).encode(), digest_size=8))
        return
    columns = [column.codes for column in sequences.categorical]
    arrays = [sequences.dense, sequences.parents, sequences.base_scores, *columns, *more]
    by_position = [
        np.ascontiguousarray(array).reshape(len(array), -1)
        for array in arrays
        if array is not None and len(array) == sequences.n_positions
    ]
    by_sequence = [
        np.ascontiguousarray(array)
        for array in more
        if array is not None and len(array) != sequences.n_positions
    ]
    sparse = sequences.sparse
    for number, (begin, end) in enumerate(pairwise(sequences.offsets.tolist())):
        digest = hashlib.blake2b((end - begin).to_bytes(8, "little"), digest_size=8)
        for array in by_position:
            digest.update(array[begin:end].reshape(-1).view(np.uint8).data)
        for array in by_sequence:
            digest.update(array[number : number + 1].view(np.uint8).data)
        if sparse is not None:
            first, last = int(sparse.indptr[begin]), int(sparse.indptr[end])
            digest.update(np.diff(sparse.indptr[begin : end + 1]).view(np.uint8).data)
            digest.update(sparse.indices[first:last].view(np.uint8).data)
            if sparse.values is not None:
                digest.update(sparse.values[first:last].view(np.uint8).data)
        yield _to_number(digest)


def _to_number(digest: hashlib.blake2b) -> int:
    return int.from_bytes(digest.digest(), "little")


def _mix(numbers: Identities) -> Identities:
    """A bijection that leaves no visible order: the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Identities = mixed ^ (mixed >> np.uint64(31))
    return found
