"""Tables: columns by name, which pandas and polars turn into a frame."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

__all__ = ["Table"]

Table = dict[str, NDArray[Any]]
