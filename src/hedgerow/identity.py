"""Identities of sequences: numbers for random draws that do not depend on their order.

A sequence with a name, such as the group of its rows, is identified by it; others by their
contents. Groups that merely number the sequences (of all workers) are not names.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.comm import ALONE, Comm
from hedgerow.sequences import Sequences, SparseRows, merely_count

__all__ = [
    "digest_categories",
    "draw_uniforms",
    "find_uniform",
    "identify_positions",
    "identify_sequences",
]

Identities = NDArray[np.uint64]

# Bits of random numbers, and how many of them workers compare in one message.
BITS, BITS_AT_ONCE = 53, 11


def identify_sequences(
    sequences: Sequences,
    *more: NDArray[Any] | None,
    attributes: Identities | None = None,
    n_threads: int = 1,
    comm: Comm = ALONE,
) -> Identities:
    """A number for each sequence, (S,), the same for any number of threads.

    ``attributes`` are digests of the names of attributes, (A,), used instead of their numbers.

    ``more`` are further arrays about the sequences: (N, ...) by position, or (S,) by sequence. They
    tell apart sequences with the same name or contents, on one worker or several, because every
    sequence needs its own number. If these arrays are the same as well, it does not matter which
    sequence has which number.
    """
    names = _find_names(sequences, comm)
    parts = comm.gather(
        _digest_contents(sequences, n_threads, attributes)
        if names is None
        else _digest_strings(map(str, names))
    )
    found = np.concatenate(parts)
    order = np.argsort(found, kind="stable")
    if (np.diff(found[order]) == 0).any():  # only then do the others matter
        ties = np.concatenate(comm.gather(_digest_arrays(sequences, more, n_threads)))
        order = np.lexsort((ties, found))
    ordered = found[order]
    is_new = np.append(True, ordered[1:] != ordered[:-1])[: len(order)]
    firsts = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    numbers = (np.arange(len(order)) - firsts).astype(np.uint64)
    found[order] = _mix(ordered + numbers)
    first = sum(map(len, parts[: comm.rank]))
    mine: Identities = found[first : first + len(parts[comm.rank])]
    return mine


def identify_positions(
    identities: Identities, offsets: NDArray[np.int64], *, n_threads: int = 1
) -> Identities:
    """A number for each position, (N,), from those of the sequences."""
    return _core.identify_positions(identities, offsets, n_threads)


def draw_uniforms(identities: Identities, key: int, *, n_threads: int = 1) -> NDArray[np.float64]:
    """A random number for each identity under a key, uniform in [0, 1)."""
    return _core.draw_uniforms(identities, key, n_threads)


def find_uniform(
    uniforms: NDArray[np.float64], place: int, comm: Comm, *, n_threads: int = 1
) -> float:
    """The number at a place, from 0, among the sorted random numbers of all workers.

    Workers do not send the numbers, only counts of those that begin with the same bits.
    """
    if comm.size == 1:
        return _core.find_uniform(uniforms, place, n_threads)
    numbers = (uniforms * 2.0**BITS).astype(np.int64)
    found, n_left = 0, BITS
    while n_left:
        n_next = min(BITS_AT_ONCE, n_left)
        n_left -= n_next
        counts = comm.sum(np.bincount(numbers >> n_left, minlength=1 << n_next))
        n_up_to = np.cumsum(counts)
        digit = int(np.searchsorted(n_up_to, place, side="right"))
        place -= int(n_up_to[digit] - counts[digit])
        found = (found << n_next) + digit
        numbers = numbers[numbers >> n_left == digit] - (digit << n_left)
    return found * 2.0**-BITS


def digest_categories(sequences: Sequences) -> list[Identities]:
    """Digests of the text columns, (N,) each: workers may number categories differently."""
    return [
        # A missing value has the code -1.
        np.append(_digest_strings(column.categories), np.uint64(0))[column.codes]
        for column in sequences.categorical
    ]


def _find_names(sequences: Sequences, comm: Comm) -> list[Any] | None:
    """Names of the sequences, (S,); None if they have none."""
    parts = comm.gather(sequences.numbers)
    given = [part for part in parts if part is not None]
    if len(given) < comm.size:
        return sequences.ids
    return None if merely_count(chain.from_iterable(given)) else sequences.numbers


def _digest_contents(
    sequences: Sequences, n_threads: int, attributes: Identities | None
) -> Identities:
    """Digests of the contents of sequences, (S,)."""
    columns = digest_categories(sequences)
    arrays = [sequences.dense, sequences.parents, sequences.base_scores, *columns]
    return _digest_arrays(sequences, arrays, n_threads, sequences.sparse, attributes)


def _digest_strings(strings: Iterable[str]) -> Identities:
    digests = (hashlib.blake2b(string.encode(), digest_size=8).digest() for string in strings)
    return np.fromiter((int.from_bytes(digest, "little") for digest in digests), np.uint64)


def _digest_arrays(
    sequences: Sequences,
    arrays: Iterable[NDArray[Any] | None],
    n_threads: int,
    sparse: SparseRows | None = None,
    attributes: Identities | None = None,
) -> Identities:
    """Digests of the parts of arrays and rows that belong to each sequence, (S,)."""
    offsets, numbers = sequences.offsets, np.arange(sequences.n_sequences + 1)
    parts: list[tuple[NDArray[Any], NDArray[np.int64]]] = [(sequences.lengths, numbers)]
    for array in arrays:
        if array is not None:
            parts.append((array, offsets if len(array) == sequences.n_positions else numbers))
    if sparse is not None:
        held = sparse.indices if attributes is None else attributes[sparse.indices]
        bounds = sparse.indptr[offsets]
        parts += [(np.diff(sparse.indptr), offsets), (held, bounds)]
        parts += [] if sparse.values is None else [(sparse.values, bounds)]
    as_bytes = [(_to_bytes(array), bounds.astype(np.int64, copy=False)) for array, bounds in parts]
    return _core.digest_sequences(as_bytes, sequences.n_sequences, n_threads)


def _to_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of each row."""
    rows = np.ascontiguousarray(array).reshape(len(array), math.prod(array.shape[1:]))
    return rows.view(np.uint8)


def _mix(numbers: Identities) -> Identities:
    """A bijection that leaves no visible order: the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Identities = mixed ^ (mixed >> np.uint64(31))
    return found
