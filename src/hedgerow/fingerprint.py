"""Fingerprints: digests that tell whether data are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core

__all__ = ["fingerprint"]

# Numbers of an array that are digested at one go: copies are small, and Ctrl-C is heard.
BLOCK = 1 << 22


def fingerprint(*parts: Any) -> str:
    """A digest of arrays, text and numbers, and of dataclasses, lists and dicts of such."""
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: hashlib._Hash, part: Any) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"array {part.dtype.str} {part.shape} ".encode())
        _feed_array(digest, part)
    elif isinstance(part, _core.StringIndex):
        _feed(digest, part.to_arrays())
    elif is_dataclass(part):
        # What is not to be compared, such as names of sequences, changes no training.
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
    """Feed the numbers in the order of their indices, however they lie in memory."""
    rows = array if array.ndim else array[None]
    step = max(1, BLOCK * len(rows) // max(1, rows.size))
    for first in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[first : first + step])
        digest.update(block.reshape(-1).view(np.uint8).data)
