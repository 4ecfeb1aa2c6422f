"""Device: where arrays are stored and kernels run. Only its implementation uses CuPy."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Device", "DeviceArray", "Kernels", "read_source"]

DeviceArray = Any
"""An array of a device. Like those of NumPy it has a shape, a dtype, slices and views."""

FOLDER = Path(__file__).parent / "kernels"
INCLUDE = re.compile(r'^#include "(.+)"\n', re.MULTILINE)

# Kernels whose results equal those of the CPU bit for bit: products and sums are rounded
# separately.
EXACT = ("trees",)


class Kernels(ABC):
    """The kernels of a source file, compiled for some number of labels."""

    @abstractmethod
    def launch(
        self,
        name: str,
        grid: int | tuple[int, int],
        block: int,
        *arguments: Any,
        shared_bytes: int = 0,
    ) -> None:
        """Run a kernel on a grid of blocks of threads.

        Arguments are arrays, None for a null pointer, int for an int of 32 bits, float for a
        double, and NumPy scalars, which keep their type.
        """


class Device(ABC):
    """One device, which executes operations in order."""

    n_multiprocessors: int
    shared_bytes: int
    """Memory that the threads of a block can share."""

    def __init__(self) -> None:
        self._kernels: dict[tuple[str, int], Kernels] = {}

    @abstractmethod
    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """An array that is not filled."""

    @abstractmethod
    def clear(self, array: DeviceArray, byte: int = 0) -> None:
        """Set all bytes to 0, or to another byte."""

    @abstractmethod
    def write(self, array: NDArray[Any], out: DeviceArray) -> None:
        """Copy an array to one of the device."""

    @abstractmethod
    def download(self, array: DeviceArray) -> NDArray[Any]:
        """Copy an array from the device, after all previous operations."""

    @abstractmethod
    def fetch(self, array: DeviceArray) -> Callable[[], NDArray[Any]]:
        """Start copying an array from the device; returns a function that waits for it."""

    @abstractmethod
    def take(self, array: DeviceArray, rows: DeviceArray) -> DeviceArray:
        """Some rows of an array."""

    @abstractmethod
    def put(self, array: DeviceArray, rows: DeviceArray, values: DeviceArray) -> None:
        """Overwrite some rows of an array."""

    @abstractmethod
    def free_bytes(self) -> int:
        """Memory that is not in use."""

    @abstractmethod
    def record(self, steps: Callable[[], None]) -> Callable[[], None]:
        """A function that repeats the launches of ``steps``, which must always be the same."""

    @abstractmethod
    def compile(self, source: str, options: tuple[str, ...], *, exact: bool) -> Kernels:
        """Compile source code; ``exact``: no fused multiply-add."""

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """An array of zeros."""
        array = self.empty(shape, dtype)
        self.clear(array)
        return array

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        """Copy an array to the device."""
        copy = self.empty(array.shape, array.dtype)
        if array.size:
            self.write(np.ascontiguousarray(array), copy)
        return copy

    def kernels(self, name: str, n_labels: int) -> Kernels:
        """Kernels of a source file, compiled when first used."""
        if (name, n_labels) not in self._kernels:
            self._kernels[name, n_labels] = self.compile(
                read_source(name), (f"-DN_LABELS={n_labels}",), exact=name in EXACT
            )
        return self._kernels[name, n_labels]


def read_source(name: str) -> str:
    """The text of a source file, with its includes inlined, each once."""
    seen: set[str] = set()

    def include(file: str) -> str:
        if file in seen:
            return ""
        seen.add(file)
        text = (FOLDER / file).read_text(encoding="utf-8").replace("#pragma once\n", "")
        return INCLUDE.sub(lambda match: include(match[1]), text)

    return include(f"{name}.cu")
