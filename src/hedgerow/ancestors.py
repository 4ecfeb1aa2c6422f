"""Ancestors of positions in tree-shaped graphs: their names and indices."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from hedgerow.sequences import Sequences

__all__ = ["ancestor_name", "find_ancestors", "generation_of"]


def ancestor_name(generation: int) -> str:
    """The name of an ancestor.

    >>> [ancestor_name(generation) for generation in (1, 2, 3)]
    ['parent', 'grandparent', 'parent^3']
    """
    return {1: "parent", 2: "grandparent"}.get(generation, f"parent^{generation}")


def generation_of(feature: str) -> int:
    """The generation of a feature, from the suffix of its name; 0 if it is not of an ancestor.

    >>> generation_of("word[grandparent]"), generation_of("word[parent^12]"), generation_of("word")
    (2, 12, 0)
    """
    found = re.search(r"\[(?:(parent)|(grandparent)|parent\^(\d+))\]$", feature)
    if found is None:
        return 0
    return int(found[3]) if found[3] else 1 if found[1] else 2


def find_ancestors(sequences: Sequences, n: int) -> NDArray[np.int64]:
    """Parents of each position, their parents, and so on, -1 beyond roots: (n, N).

    Without parents, sequences are chains, and the parent is the previous position.
    """
    begins = np.repeat(sequences.offsets[:-1], sequences.lengths)
    positions = np.arange(sequences.n_positions)
    places = positions - begins - 1 if sequences.parents is None else sequences.parents
    # One more entry, the last, is the parent of roots and of itself: -1.
    parents = np.append(np.where(places < 0, -1, begins + places), -1)
    found = np.empty((n, len(positions)), np.int64)
    above = positions
    for generation in range(n):
        above = found[generation] = parents[above]
    return found
