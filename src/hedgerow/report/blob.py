"""Blobs: arrays and texts, packed so that a page can contain many and read them when needed."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Arrays begin at multiples of this, so that the page can view them without copying.
ALIGNMENT = 8
# dtypes that have a typed array in the page.
DTYPES = ("u1", "u2", "u4", "i2", "i4", "f4")


class Blob:
    """Arrays one after another, which the page unpacks together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: NDArray[Any]) -> dict[str, Any]:
        """Append an array, and return where the page finds it."""
        dtype = array.dtype.str[1:]
        assert dtype in DTYPES
        data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        place = {"blob": self.name, "dtype": dtype, "start": self._size, "length": array.size}
        padding = bytes(-len(data) % ALIGNMENT)
        self._parts += [data, padding]
        self._size += len(data) + len(padding)
        return place

    def add_text(self, value: Any) -> dict[str, Any]:
        """Append a JSON value, as the bytes of its text."""
        text = json.dumps(value, allow_nan=False)
        return self.add(np.frombuffer(text.encode(), np.uint8))

    def pack(self) -> str:
        """Everything, deflated, in characters that have no special meaning in HTML."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 6)).decode()


def smallest(codes: NDArray[Any], largest: int) -> NDArray[Any]:
    """The same codes, 0 to `largest`, in the smallest unsigned dtype that can represent them."""
    fits = (dtype for dtype in (np.uint8, np.uint16, np.uint32) if largest <= np.iinfo(dtype).max)
    return codes.astype(next(fits))


def as_number(value: Any) -> float | int | None:
    """A number for JSON: None for NaN and infinity."""
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def round_off(values: Any, digits: int = 6) -> list[float | int | None]:
    """Numbers rounded to this many significant digits, for a picture."""
    return [as_number(f"{float(value):.{digits}g}") for value in values]
