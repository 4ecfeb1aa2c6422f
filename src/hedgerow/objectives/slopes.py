"""Slopes: a loss, and how it changes with the potentials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Slopes"]


@dataclass(frozen=True, eq=False)
class Slopes:
    """A loss, and how it changes with the potentials."""

    loss: float
    nodes: NDArray[np.float64]
    """(N, K)"""
    arcs: NDArray[np.float64]
    """(K, K), or (A,) with an automaton"""
    edges: NDArray[np.float64] | None
    """(N, K, K), if the potentials have edges."""
