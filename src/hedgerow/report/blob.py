"""Blobs: arrays and texts, packed so that a page can hold many and read them when needed."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Where each array begins is a multiple of this, so that the page can look at it as it lies.
ALIGNMENT = 8
# dtypes that have a typed array in the page.
DTYPES = ("u1", "u2", "u4", "i2", "i4", "f4")


class Blob:
    """Arrays one after the other, which the page unpacks together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: NDArray[Any]) -> dict[str, Any]:
        """Append an array, and say where the page finds it."""
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
        """All of it, deflated, in letters that mean nothing in HTML."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 6)).decode()


def smallest(codes: NDArray[Any], largest: int) -> NDArray[Any]:
    """The same codes, 0 to `largest`, in the smallest unsigned dtype that holds them."""
    fits = (dtype for dtype in (np.uint8, np.uint16, np.uint32) if largest <= np.iinfo(dtype).max)
    return codes.astype(next(fits))


def as_number(value: Any) -> float | int | None:
    """A number as JSON has it: None for NaN and infinity."""
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def round_off(values: Any, digits: int = 6) -> list[float | int | None]:
    """Numbers of so many digits that count, for a picture."""
    return [as_number(f"{float(value):.{digits}g}") for value in values]
