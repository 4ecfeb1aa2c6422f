"""Places: the position of a feature, at an offset or at an ancestor.

An offset is a number of positions; from `PARENT` on it means ancestors: `PARENT` for the parent,
``PARENT + 1`` for the grandparent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._core import PARENT
from hedgerow.ancestors import ancestor_name

__all__ = ["PARENT", "at_offset", "name_places", "with_offset"]


def with_offset(name: str, offset: int) -> str:
    """A column and its position: ``speed``, ``speed[-1]``, ``speed[parent]``."""
    if offset >= PARENT:
        return f"{name}[{ancestor_name(offset - PARENT + 1)}]"
    return f"{name}[{offset:+d}]" if offset else name


def at_offset(offset: int) -> str:
    """A position as text: an empty string, `` at -1``, `` at parent``."""
    if offset >= PARENT:
        return f" at {ancestor_name(offset - PARENT + 1)}"
    return f" at {offset:+d}" if offset else ""


def name_places(
    names: NDArray[np.object_], offsets: NDArray[Any]
) -> tuple[NDArray[np.object_], NDArray[Any]]:
    """Features and offsets for tables: ancestors are part of the name of the feature."""
    is_ancestor = offsets >= PARENT
    if not is_ancestor.any():
        return names, offsets
    shown = names.copy()
    for place in np.flatnonzero(is_ancestor).tolist():
        shown[place] = with_offset(str(names[place]), int(offsets[place]))
    return shown, np.where(is_ancestor, 0, offsets).astype(offsets.dtype)
